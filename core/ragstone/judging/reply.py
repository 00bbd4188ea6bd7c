"""Reading the judge's reply: one JSON value of the asked form, or a failure that says what was wrong."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ragstone.judging.choice import choose
from ragstone.judging.thoughts import bare_message, find_thoughts

R = TypeVar("R", bound="Reply")
_FENCE_LINE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n")
_BYTE_ORDER_MARK = "\ufeff"
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_MAYBE_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")


class BadReply(ValueError):  # noqa: N818 - named for what it is about, as CannotScore is
    """The judge's reply cannot be used; the message says what was wrong, in words for the judge."""


class Reply(BaseModel):
    """Base of the forms that a judge's reply may have: exact types, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def unfence(text: str) -> str:
    r"""Return what stands inside a Markdown code fence that wraps a whole message; other text as it is.

    The flow takes fences off before it parses a reply; the parser itself accepts none.

    Example:
        >>> unfence('```json\n{"a": 1}\n```')
        '{"a": 1}'
        >>> unfence('Here: ```x```')
        'Here: ```x```'
    """
    bare = text.strip()
    opening = _FENCE_LINE.match(bare)
    if opening is None or bare.count("```") != 2 or not bare.endswith("```"):
        return text
    inside = bare[opening.end() : -3].rstrip(" \t")
    return inside[:-1].removesuffix("\r") if inside.endswith("\n") else inside


def bare_answer(text: str, choices: Sequence[str] | None = None) -> tuple[str, bool]:
    r"""Return the answer in what a judge wrote, and whether thoughts stood before it.

    What stands before the last closing mark of thoughts (`</think>`, `[/THINK]`, `</thinking>`, `</reasoning>`, the
    final channel of gpt-oss) is no part of the answer, whether the thoughts were opened or not. A byte-order mark and
    a Markdown fence around all of the answer are removed; a choice is read whatever its case, and with emphasis,
    quotes or one full stop or exclamation mark. A text that is an answer as a whole is never cut, so a mark that the
    answer quotes stays. A text that holds a second answer outside of its thoughts comes back as it is, which no
    parser accepts.

    Args:
        text: What the judge wrote.
        choices: The words of which the answer is one; None for JSON.

    Example:
        >>> bare_answer('Let me see.</think>\n\n{"ids": [1]}')
        ('{"ids": [1]}', True)
        >>> bare_answer("**Yes.**", ("yes", "no"))
        ('yes', False)
    """
    thoughts = None if is_answer(text, choices) else find_thoughts(text)
    if thoughts is None:
        return _unwrapped(text, choices), False
    if any(is_answer(piece, choices) for piece in thoughts.outside):
        return text, False
    return _unwrapped(bare_message(text[thoughts.end :]).strip(), choices), True


def is_answer(text: str, choices: Sequence[str] | None = None) -> bool:
    """Return whether a text is one of the choices, or one JSON value, and nothing else.

    Example:
        >>> is_answer("Yes!", ("yes", "no")), is_answer('{"ids": []} or so')
        (True, False)
    """
    bare = _unwrapped(text, choices)
    if choices is not None:
        return bare in choices
    try:
        parse_json(bare)
    except BadReply:
        return False
    return True


def is_same_answer(one: str, other: str, choices: Sequence[str] | None = None) -> bool:
    """Return whether two texts are answers of the same value, however each is written.

    Example:
        >>> is_same_answer('{"id": 1, "ok": true}', '{"ok":true,"id":1}'), is_same_answer('{"ok": 1}', '{"ok": true}')
        (True, False)
    """
    if not (is_answer(one, choices) and is_answer(other, choices)):
        return False
    values = [_unwrapped(text, choices) for text in (one, other)]
    if choices is None:
        values = [json.dumps(parse_json(value), sort_keys=True) for value in values]
    return values[0] == values[1]


def _unwrapped(text: str, choices: Sequence[str] | None) -> str:
    """Return a text without a byte-order mark and a fence around it; the choice that it is, if it is one."""
    if text[:1] == _BYTE_ORDER_MARK or text.lstrip()[:1] == _BYTE_ORDER_MARK:
        text = text.lstrip().lstrip(_BYTE_ORDER_MARK)
    bare = unfence(text)
    return bare if choices is None else choose(bare, choices)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise BadReply(f"the key {twice[:40]!r} stands twice in one object")
    return value


def _no_constant(name: str) -> float:
    raise BadReply(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadReply(f"the number {digits[:20]} is too large")
    return value


def parse_json(text: str) -> Any:  # noqa: ANN401 - a JSON value has no narrower type before it is validated
    """Return the one JSON value that `text` is.

    Half characters (lone surrogates, which no encoding can carry) in it become U+FFFD.

    Raises:
        BadReply: It is empty, is not JSON, holds more than one value or anything around it, repeats a key in
            an object, or holds NaN, Infinity or a number that no float holds.

    Example:
        >>> parse_json('{"ids": [1]}')
        {'ids': [1]}
        >>> parse_json('{"ids": [1]} {"ids": [2]}')
        Traceback (most recent call last):
        ragstone.judging.reply.BadReply: there is more than one value, or text after the JSON
    """
    if not text.strip():
        raise BadReply("it was empty")
    try:
        value = _loads(text)
        if _MAYBE_HALF.search(text):
            value = _loads(_HALF_CHARACTER.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
        return value
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise BadReply("there is more than one value, or text after the JSON") from None
        raise BadReply(f"it is not bare JSON ({error.msg} at character {error.pos})") from None
    except RecursionError:
        raise BadReply("it is nested too deeply") from None
    except BadReply:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise BadReply(f"it is not usable JSON ({str(error)[:80]})") from None


def _loads(text: str) -> Any:  # noqa: ANN401 - as parse_json
    return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)


def parse_reply(text: str, form: type[R]) -> R:
    """Return `text` as the given form of reply.

    Raises:
        BadReply: It is not one JSON value, or not of that form.
    """
    value = parse_json(text)
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:40] for part in first["loc"]) or "the whole"
        what = "not a JSON object" if first["type"] == "model_type" else first["msg"]
        raise BadReply(f"{where}: {what}") from None


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice of the judge, as `ragstone.Metric.ask_choice` returns it.

    Attributes:
        choice: The word that it chose.
        probabilities: Of each choice; None without log-probabilities.

    Example:
        >>> Answer("no", {"yes": 0.25, "no": 0.75}).probability("yes")
        0.25
    """

    choice: str
    probabilities: Mapping[str, float] | None = None

    def probability(self, choice: str) -> float | None:
        """Return the probability of a choice, None without log-probabilities."""
        return None if self.probabilities is None else self.probabilities[choice]


def parse_choice(text: str, choices: Iterable[str]) -> str:
    """Return the choice that `text` is, bare or as a JSON string.

    Raises:
        BadReply: It is none of the choices, exactly.

    Example:
        >>> parse_choice(" yes ", ("yes", "no")), parse_choice('"no"', ("yes", "no"))
        ('yes', 'no')
    """
    options = tuple(choices)
    for option in options:
        if text.strip() in (option, f'"{option}"'):
            return option
    raise BadReply(f"it is not exactly one of: {', '.join(options)}")


def exactly(given: Iterable[str], wanted: Iterable[str], what: str) -> None:
    """Check that the judge answered on each item once and on nothing else.

    Raises:
        BadReply: An id is missing or unknown.
    """
    got, want = set(given), set(wanted)
    if missing := sorted(want - got, key=_natural):
        raise BadReply(f"no {what} for id {', '.join(missing[:10])}")
    if unknown := sorted(got - want, key=_natural):
        raise BadReply(f"unknown id {', '.join(i[:20] for i in unknown[:10])}")


def _natural(value: str) -> tuple[int, str]:
    return (len(value), value)
