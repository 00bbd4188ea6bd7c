r"""Outcomes, replies and texts as a journal's file holds them: JSON, read back exactly.

What UTF-8 cannot carry (half a surrogate pair, as a judge may write it) goes in as bytes in place of text.
"""

import json
from contextlib import suppress
from math import isfinite
from typing import cast

from ragstone.judge import LLMReply
from ragstone.outcome import Outcome, Score, Unscored

Stored = str | bytes
Columns = tuple[object, ...]

_NOT_FINAL = frozenset({"judge_error", "timeout", "cancelled", "over_budget"})


def is_final(outcome: Outcome) -> bool:
    """Whether asking again would be in vain: False for what failed for a reason outside of the sample.

    Example:
        >>> is_final(Unscored(metric="demo", reason="timeout", detail="60 s", version="1"))
        False
    """
    return isinstance(outcome, Score) or outcome.reason not in _NOT_FINAL


def outcome_columns(key: str, outcome: Outcome) -> Columns:
    """Return the row of table `outcomes`: key, whether it is a score, JSON.

    Example:
        >>> _, *stored = outcome_columns("key", Score(metric="demo", value=0.5, reason="", version="1"))
        >>> read_outcome(*stored).value
        0.5
    """
    return key, *_outcome(outcome)


def reply_columns(key: str, reply: LLMReply) -> Columns:
    """Return the row of table `replies`: key, JSON.

    Example:
        >>> _, stored = reply_columns("key", LLMReply("yes", input_tokens=9))
        >>> read_reply(stored)
        LLMReply(text='yes', input_tokens=9, output_tokens=None, probabilities=None)
    """
    given = reply.probabilities
    probabilities = None if given is None else {choice: float(p) for choice, p in given.items()}
    return key, _text(_json([reply.text, _whole(reply.input_tokens), _whole(reply.output_tokens), probabilities]))


def read_outcome(scored: object, stored: object) -> Outcome:
    """Return the outcome of which the columns are.

    Raises:
        ValueError: They are damaged.
    """
    kind: type[Score] | type[Unscored] = Score if scored else Unscored
    if isinstance(stored, str):
        with suppress(ValueError):
            return kind.model_validate_json(stored)
    return kind.model_validate(json.loads(cast("Stored", stored)))


def read_reply(stored: object) -> LLMReply:
    """Return the reply of which the column is.

    Raises:
        ValueError: It is damaged.
    """
    text, input_tokens, output_tokens, probabilities = json.loads(cast("Stored", stored))
    return LLMReply(text, input_tokens, output_tokens, probabilities)


def read_text(stored: object) -> str:
    """Return the text of which the column is."""
    return stored.decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else cast("str", stored)


def _outcome(outcome: Outcome) -> Columns:
    scored = isinstance(outcome, Score)
    # pydantic writes null for what JSON has no number for, and something else for half a surrogate pair in a key.
    if isfinite(outcome.usage.seconds) and (not isinstance(outcome, Score) or all(map(str.isascii, outcome.breakdown))):
        with suppress(ValueError):  # half a surrogate pair elsewhere
            return scored, outcome.model_dump_json()
    return scored, _text(_json(outcome.model_dump()))


def _text(text: str) -> Stored:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _whole(number: int | None) -> int | None:
    return None if number is None else int(number)  # an adapter may hand on a number of numpy's
