"""The account of judge calls, tokens and money in a SQLite file."""

import time
from typing import TYPE_CHECKING

from ragstone.plain import clean_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragstone.limits.budget import Entry
    from ragstone.store.sqlite import SqliteDatabase

KEPT = 2 * 86_400
"""How long a window is remembered after its start, in seconds."""


def windows(entries: "Sequence[Entry]") -> "dict[tuple[str, int], list[Entry]]":
    """Return the entries by the row that holds their sum, in the order in which all processes take the rows.

    Example:
        >>> from ragstone.limits.budget import Entry
        >>> list(windows([Entry("b", 0, 1, None), Entry("a", 60, 1, None), Entry("a", 0, 1, None)]))
        [('a', 0), ('a', 60), ('b', 0)]
    """
    by_window: dict[tuple[str, int], list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.starts_at)):
        by_window.setdefault((clean_key(entry.name), entry.starts_at), []).append(entry)
    return by_window


def forgotten(entries: "Sequence[Entry]") -> int:
    """Return the time before which windows are forgotten: never one that is spent in, whatever the clock says.

    Example:
        >>> from ragstone.limits.budget import Entry
        >>> forgotten([Entry("a", 172_860, 1, None)])
        60
    """
    return min(int(time.time()), *(entry.starts_at for entry in entries)) - KEPT


def total(before: float, entries: "Sequence[Entry]") -> float | None:
    """Return the sum of a window after its entries; None where one of them would exceed its limit.

    Example:
        >>> from ragstone.limits.budget import Entry
        >>> total(1.0, [Entry("a", 0, 2, 3)]), total(1.5, [Entry("a", 0, 2, 3)]), total(9.0, [Entry("a", 0, 2, None)])
        (3.0, None, 11.0)
    """
    amount = before
    for entry in entries:
        amount += entry.amount
        if entry.limit is not None and amount > entry.limit:
            return None
    return amount


class SQLiteLedger:
    """The account that all processes on one SQLite file share. Windows older than two days are forgotten.

    Args:
        database: The file; see `SQLiteSink.ledger`.
    """

    def __init__(self, database: "SqliteDatabase") -> None:
        self._database = database

    def spend(self, entries: "Sequence[Entry]", /) -> str | None:
        """Enter all amounts, or none: then return the name of the limit that refused. Atomic between processes.

        Raises:
            SinkError: The file cannot be reached. Nothing is spent then.
        """
        if not entries:
            return None
        with self._database.transaction() as connection:
            sums: list[tuple[float, str, int]] = []
            new = False
            for (name, starts_at), mine in windows(entries).items():
                row: tuple[float] | None = connection.execute(
                    "SELECT amount FROM spending WHERE name = ? AND starts_at = ?", (name, starts_at)
                ).fetchone()
                new = new or row is None
                amount = total(row[0] if row else 0.0, mine)
                if amount is None:
                    return mine[0].name
                sums.append((amount, name, starts_at))
            if new:
                connection.execute("DELETE FROM spending WHERE starts_at < ?", (forgotten(entries),))
            connection.executemany(
                "INSERT INTO spending (amount, name, starts_at) VALUES (?, ?, ?) "
                "ON CONFLICT (name, starts_at) DO UPDATE SET amount = excluded.amount",
                sums,
            )
        return None
