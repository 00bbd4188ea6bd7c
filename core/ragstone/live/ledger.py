"""What was spent, in a database: one sum for each limit and window, which all processes on it share."""

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragstone.results.connection import Database, Transaction

TABLE = (
    "CREATE TABLE spending (name TEXT NOT NULL, starts_at BIGINT NOT NULL, amount DOUBLE PRECISION NOT NULL, "
    "PRIMARY KEY (name, starts_at))"
)
_SPEND = """
INSERT INTO spending (name, starts_at, amount) VALUES (:name, :starts_at, :amount)
ON CONFLICT (name, starts_at) DO UPDATE SET amount = spending.amount + excluded.amount
"""
_SPENT = "SELECT amount FROM spending WHERE name = :name AND starts_at = :starts_at"
_REMEMBERED = 2 * 86_400  # seconds after its start that a window is remembered


def spent_today(connection: "Transaction") -> dict[str, float]:
    """Return what was spent since midnight (UTC), by unit, where a budget limits the day."""
    today = int(time.time() // 86_400) * 86_400
    query = "SELECT name, amount FROM spending WHERE starts_at = :today AND name LIKE '%_per_day' ORDER BY name"
    rows = connection.execute(query, {"today": today}).fetchall()
    return {name.removesuffix("_per_day"): amount for name, amount in rows}


class Entry(NamedTuple):
    """An amount under one limit in one window of time.

    Attributes:
        name: The limit's name, such as "calls_per_minute".
        starts_at: When the window starts, in seconds since 1970 (UTC).
        amount: What is added; negative where an estimate was too high.
        limit: What the window's sum may not exceed; None adds the amount whatever the sum.
    """

    name: str
    starts_at: int
    amount: float
    limit: float | None


class _RefusedError(Exception):
    """A limit refuses: nothing of the transaction is kept."""


def spend(database: "Database", entries: "Sequence[Entry]") -> str | None:
    """Enter all amounts, or none: then return the name of the limit that refused.

    Atomic between all processes on the database. Windows older than two days are forgotten.

    Raises:
        SinkError: The database cannot be reached. Nothing is spent then, and the evaluation waits.
    """
    if not entries:
        return None
    new = False
    try:
        with database.transaction() as connection:
            # In one order everywhere, so that no two transactions wait for each other.
            for entry in sorted(entries, key=lambda entry: (entry.name, entry.starts_at)):
                row = {"name": entry.name, "starts_at": entry.starts_at, "amount": entry.amount}
                connection.execute(_SPEND, row)
                ((amount,),) = connection.execute(_SPENT, row).fetchall()
                if entry.limit is not None and amount > entry.limit:
                    raise _RefusedError(entry.name)
                new = new or amount == entry.amount
            if new:
                # Never a window that is spent in, whatever the clock says.
                oldest = min(int(time.time()), *(entry.starts_at for entry in entries)) - _REMEMBERED
                connection.execute("DELETE FROM spending WHERE starts_at < :oldest", {"oldest": oldest})
    except _RefusedError as refusal:
        return str(refusal)
    return None
