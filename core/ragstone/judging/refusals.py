"""What a provider says by an error: slow down, never, not this parameter, or not this text."""

import re
from contextlib import suppress
from typing import NamedTuple

# 403 is OpenAI's for log-probabilities of reasoning models
REFUSALS = frozenset({400, 403, 404, 422})
"""The HTTP statuses with which servers refuse a parameter that they do not know."""
_CONTENT = re.compile(
    r"context.?(length|window|size)|maximum context|token limit|(too|input) (long|many tokens)|prompt is too"
    r"|content.?(filter|policy|management|violat)|moderat|flagged|guardrail|responsible.?ai|prohibited|safety|jailbreak"
    r"|sensitive|inappropriate|policy.?violation|usage.?polic|blocked",
    re.IGNORECASE,
)
_SLOW_DOWN = frozenset({429, 500, 502, 503, 504, 529})
_WAYS_OUT = {
    401: "check the API key",
    403: "check what the API key may use",
    404: "check the address and the model's name",
}
_STATUS_NAMES = ("status_code", "http_status", "status", "code")
# A quota that is used up comes back tomorrow or with a payment, not with patience.
NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


def is_about_content(error: str) -> bool:
    """Whether a provider's error is about the text that it was sent: too long for the model, or moderated.

    Example:
        >>> is_about_content("context_length_exceeded"), is_about_content("Your input was flagged")
        (True, True)
        >>> is_about_content("unsupported_parameter")
        False
    """
    return _CONTENT.search(error) is not None


class Refusal(NamedTuple):
    """What a provider says by an exception.

    Attributes:
        wait: The seconds for which it says "slow down"; 0 where it names no time, None where it does not say so.
        way_out: What to do about a refusal for good, 401, 403 or 404; None where it is none, as of a text that was
            moderated.
    """

    wait: float | None = None
    way_out: str | None = None

    @property
    def may_be_of_one_sample(self) -> bool:
        """Whether it may be about what was sent: a 403 that does not say why."""
        return self.way_out == _WAYS_OUT[403]


def read_refusal(error: BaseException) -> Refusal:
    """The meaning for later calls of an exception, or of one that it was raised from.

    Read are a status (429, 500, 502, 503, 504 or 529 say "slow down") under the names that clients give it, here or in
    `response`; a number `retry_after`; and the headers retry-after-ms and Retry-After, in seconds.

    Example:
        >>> class TooMany(Exception):
        ...     status_code, retry_after = 429, 2
        >>> read_refusal(TooMany()).wait, read_refusal(ValueError()).wait is None
        (2.0, True)
    """
    wait: float | None = None
    way_out: str | None = None
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen and wait is None:
        seen.add(id(cause))
        response = getattr(cause, "response", None)
        values = [getattr(source, name, None) for source in (cause, response) for name in _STATUS_NAMES]
        statuses = {value for value in values if isinstance(value, int)}
        if not is_about_content(f"{cause} {getattr(cause, 'body', '')}") or 401 in statuses:
            way_out = way_out or next((_WAYS_OUT[status] for status in statuses & _WAYS_OUT.keys()), None)
        if str(getattr(cause, "code", None)) in NO_QUOTA:
            break
        wait = _seconds(getattr(cause, "retry_after", None))
        if wait is None and statuses & _SLOW_DOWN:
            wait = _in_headers(response)
        cause = cause.__cause__
    return Refusal(wait, way_out)


def _in_headers(response: object) -> float:
    get = getattr(getattr(response, "headers", None), "get", None)
    if not callable(get):
        return 0.0
    milliseconds = _seconds(get("retry-after-ms"))
    # A plain dict minds the case.
    seconds = _seconds(get("retry-after") or get("Retry-After"))
    return milliseconds / 1000 if milliseconds is not None else seconds or 0.0


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    with suppress(ValueError, OverflowError):
        seconds = float(value)
        return seconds if 0 <= seconds < float("inf") else None
    return None
