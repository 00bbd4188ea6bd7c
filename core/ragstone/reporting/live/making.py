"""A page from a database."""

import os
import time
from datetime import datetime, timedelta

from ragstone.reporting.live.gather import gather
from ragstone.reporting.live.page import page
from ragstone.reporting.live.since import seconds_since


def report(database: str | os.PathLike[str], *, since: str | datetime | timedelta | None = None) -> str:
    """Return the page of a results database, as HTML: one text that loads nothing and runs nothing.

    The database is read, never changed, while monitors go on writing to it.

    Args:
        database: The path of a SQLite file that a `Monitor` writes, or the SQLAlchemy URL of its `SQLSink`.
        since: Leave out samples submitted before: "30m", "24h" or "7d" ago, a timedelta ago, or a date and time
            (ISO 8601 or a datetime; UTC where it names no zone). None: all.

    Raises:
        DatabaseError: There is no such database, it is another program's, it cannot be read, or a newer ragstone
            wrote it.
        ImportError: A URL needs a package that is not installed; the message says which.
        ValueError: `since` is no time.

    Example:
        >>> report("no-such.db")
        Traceback (most recent call last):
        ragstone.reporting.live.read.DatabaseError: no-such.db: no such file; give the path of a Monitor's SQLiteSink, \
or a database URL
    """
    now = time.time()
    return page(gather(database, seconds_since(since, now=now)), made_at=now)
