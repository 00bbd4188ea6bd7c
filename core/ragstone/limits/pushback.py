"""Reading from an exception whether a provider said "slow down", whichever client raised it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

_STATUSES = frozenset({429, 500, 502, 503, 504, 529})
_STATUS_NAMES = ("status_code", "http_status", "status", "code")
# A quota that is used up comes back tomorrow or with a payment, not with patience.
_HOPELESS = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


@dataclass(frozen=True, slots=True)
class Pushback:
    """A provider's wish for fewer calls.

    Attributes:
        seconds: How long it said to wait; None where it did not say.
    """

    seconds: float | None


def pushback(error: BaseException) -> Pushback | None:
    """Return what an exception, or one that it was raised from, says of slowing down; None if it says nothing.

    Read are a status of 429, 500, 502, 503, 504 or 529 under the names that clients give it, here or in `response`; a
    number `retry_after`; and the headers retry-after-ms and Retry-After, in seconds or as a date.

    Example:
        >>> class TooMany(Exception):
        ...     status_code, retry_after = 429, 2
        >>> pushback(TooMany()), pushback(ValueError())
        (Pushback(seconds=2.0), None)
    """
    for each in causes(error):
        if str(getattr(each, "code", None)) in _HOPELESS:
            return None
        response = getattr(each, "response", None)
        seconds = _seconds(getattr(each, "retry_after", None))
        if seconds is not None or not _STATUSES.isdisjoint(statuses(each)):
            return Pushback(_in_headers(response) if seconds is None else seconds)
    return None


def statuses(error: BaseException) -> list[int]:
    """Return the HTTP statuses that an exception names."""
    sources = (error, getattr(error, "response", None))
    statuses = [getattr(source, name, None) for source in sources for name in _STATUS_NAMES]
    return [status for status in statuses if isinstance(status, int)]


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, the one that it was raised from, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _in_headers(response: object) -> float | None:
    get = getattr(getattr(response, "headers", None), "get", None)
    if not callable(get):
        return None
    milliseconds = _seconds(get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    told: object = get("retry-after")
    if told is None:
        told = get("Retry-After")  # a plain dict minds the case
    seconds = _seconds(told)
    if seconds is None and isinstance(told, str):
        try:
            seconds = max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError):
            return None
    return seconds


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < float("inf") else None
