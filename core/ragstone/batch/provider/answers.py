"""Reading the files that a batch endpoint gives back: which request got which answer."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ragstone.clients.chat import read_completion
from ragstone.errors import LONGEST
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.values import as_dict

_NOT_RUN = frozenset({"batch_expired", "batch_cancelled", "batch_canceled", "request_cancelled"})


@dataclass(frozen=True, slots=True)
class Answered:
    """One line of an output or error file.

    Attributes:
        key: The request's custom id.
        status: The HTTP status of its own; 0 where it was not run.
        body: What the model's endpoint answered; {} where there is nothing.
        error: Of the batch endpoint itself, as "code: message"; "" where there is none.
        not_run: Whether the batch ended before it was its turn.
    """

    key: str
    status: int
    body: dict[str, object]
    error: str
    not_run: bool

    @property
    def problem(self) -> str:
        """What went wrong, in the words of the provider, perhaps with keys."""
        said = as_dict(self.body.get("error")).get("message") or self.body.get("error") or self.body.get("message")
        text = self.error or (f"status {self.status}: {said}" if said else f"status {self.status}, and no completion")
        return text[:LONGEST]

    def reply(self, choices: tuple[str, ...] | None) -> LLMReply | None:
        """Return the judge's reply; None if there is none.

        Args:
            choices: The words of which the request wanted one.
        """
        if self.status != 200:
            return None
        return read_completion(self.body, LLMRequest("", "", "", {}, choices=choices))


def read_answers(content: bytes) -> Iterator[Answered]:
    r"""Yield the answers in a file's lines, in whatever order they come; lines that are none are left out.

    Example:
        >>> [a.problem for a in read_answers(b'{"custom_id": "k", "response": {"status_code": 500, "body": {}}}\noops')]
        ['status 500, and no completion']
    """
    start = 0
    while start < len(content):  # not split at once, which would be a second copy of a big file
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        answered = _answered(content[start:end])
        start = end + 1
        if answered is not None:
            yield answered


def _answered(line: bytes) -> Answered | None:
    try:
        value = as_dict(json.loads(line))
    except (ValueError, RecursionError):
        return None
    key = value.get("custom_id")
    if not isinstance(key, str):
        return None
    response, error = as_dict(value.get("response")), as_dict(value.get("error"))
    status = response.get("status_code")
    code = error.get("code")
    return Answered(
        key,
        status if isinstance(status, int) else 0,
        as_dict(response.get("body")),
        f"{code}: {error.get('message')}" if error else "",
        code in _NOT_RUN,
    )
