"""From when on: a time, or a stretch of time before now."""

import re
from datetime import datetime, timedelta, timezone

_UNITS = {"m": 60, "h": 3_600, "d": 86_400}
_AGO = re.compile(r"(\d{1,9})([mhd])")


def seconds_since(since: str | datetime | timedelta | None, *, now: float) -> float | None:
    """Return a time in seconds since 1970 (UTC); None for None.

    Args:
        since: "30m", "24h" or "7d" before now, a timedelta before now, or a date and time: ISO 8601 or a datetime,
            in UTC where it names no zone.
        now: In seconds since 1970 (UTC).

    Raises:
        ValueError: It is none of these; the message says what to write.

    Example:
        >>> seconds_since("24h", now=100_000.0), seconds_since("1970-01-02", now=0.0)
        (13600.0, 86400.0)
    """
    if since is None:
        return None
    if isinstance(since, timedelta):
        return now - since.total_seconds()
    if isinstance(since, str):
        if ago := _AGO.fullmatch(since.strip()):
            return now - int(ago[1]) * _UNITS[ago[2]]
        since = _parsed(since)
    return (since if since.tzinfo else since.replace(tzinfo=timezone.utc)).timestamp()


def _parsed(text: str) -> datetime:
    try:
        # Python 3.10 does not know the Z of UTC.
        return datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text.strip()))
    except ValueError:
        raise ValueError(
            f"since: {text!r} is no time; write 30m, 24h or 7d (before now), or a date such as 2026-01-31 or "
            "2026-01-31T09:00 (UTC, or with its zone: +02:00)"
        ) from None
