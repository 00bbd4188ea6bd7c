"""From when on."""

from datetime import datetime, timedelta, timezone

import pytest

from ragstone.reporting.live.since import seconds_since

NOW = datetime(2026, 9, 24, 12, tzinfo=timezone.utc).timestamp()


def test_times():
    for since, expected in (
        ("30m", "2026-09-24T11:30Z"),
        ("24h", "2026-09-23T12:00Z"),
        (" 7d ", "2026-09-17T12:00Z"),
        ("2026-09-01", "2026-09-01T00:00Z"),
        ("2026-09-01T10:30", "2026-09-01T10:30Z"),
        ("2026-09-01 10:30:00+02:00", "2026-09-01T08:30Z"),
        ("2026-09-01T10:30:00Z", "2026-09-01T10:30Z"),
        (timedelta(hours=1), "2026-09-24T11:00Z"),
        (datetime(2026, 9, 1), "2026-09-01T00:00Z"),  # noqa: DTZ001 - naive is what is tested
        (datetime(2026, 9, 1, tzinfo=timezone(timedelta(hours=-3))), "2026-09-01T03:00Z"),
    ):
        begin = seconds_since(since, now=NOW)
        assert f"{datetime.fromtimestamp(begin, timezone.utc):%Y-%m-%dT%H:%MZ}" == expected
    assert seconds_since(None, now=NOW) is None


def test_what_is_no_time_says_what_to_write():
    for since in ("", "yesterday", "7", "-3d", "1w", "2026-13-01", "24 h", "9999999999d", "\x00"):
        with pytest.raises(ValueError, match="since: .* is no time; write 30m, 24h or 7d"):
            seconds_since(since, now=NOW)
