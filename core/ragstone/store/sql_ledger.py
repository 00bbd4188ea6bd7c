"""The account of judge calls, tokens and money in a database that SQLAlchemy reaches."""

from contextlib import suppress
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from ragstone.store.errors import SinkError
from ragstone.store.ledger import forgotten, total, windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragstone.limits.budget import Entry
    from ragstone.store.sql_database import SqlDatabase


class SQLLedger:
    """The account that all processes on one database share. Windows older than two days are forgotten.

    Args:
        database: The database; see `SQLSink.ledger`.
    """

    def __init__(self, database: "SqlDatabase") -> None:
        self._database = database
        self._spending = database.table("spending")

    def spend(self, entries: "Sequence[Entry]", /) -> str | None:
        """Enter all amounts, or none: then return the name of the limit that refused. Atomic between processes.

        Raises:
            SinkError: The database cannot be reached. Nothing is spent then.
        """
        if not entries:
            return None
        new = False
        with self._database.transaction() as connection:
            # One window after the other, in the same order everywhere: so no two transactions wait for each other.
            sums: list[dict[str, object]] = []
            for (name, starts_at), mine in windows(entries).items():
                before = self._locked(connection, name, starts_at)
                if before is None:
                    new, before = True, self._made(connection, name, starts_at)
                amount = total(before, mine)
                if amount is None:
                    connection.rollback()  # with the empty windows that were made
                    return mine[0].name
                sums.append({"old_name": name, "old_start": starts_at, "amount": amount})
            same = sa.and_(
                self._spending.c.name == sa.bindparam("old_name"),
                self._spending.c.starts_at == sa.bindparam("old_start"),
            )
            connection.execute(self._spending.update().where(same), sums)
        if new:
            with suppress(SinkError):  # it is spent all the same; the next window tries again
                self._forget(forgotten(entries))
        return None

    def _locked(self, connection: sa.Connection, name: str, starts_at: int) -> float | None:
        """Keep a window's row from other transactions and return its sum; None where there is no row."""
        columns = self._spending.c
        row = sa.select(columns.amount).where(columns.name == name, columns.starts_at == starts_at)
        return connection.execute(row.with_for_update()).scalar()

    def _made(self, connection: sa.Connection, name: str, starts_at: int) -> float:
        """Make a window's row and keep it; return its sum, which is not 0 where another transaction was first."""
        row = {"name": name, "starts_at": starts_at, "amount": 0.0}
        insert = self._database.insert(self._spending)
        amount = None
        while amount is None:  # once, unless another transaction forgets it at this moment
            if insert is not None:
                connection.execute(insert.on_conflict_do_nothing(), row)
            else:
                with suppress(IntegrityError), connection.begin_nested():
                    connection.execute(self._spending.insert(), row)
            amount = self._locked(connection, name, starts_at)
        return amount

    def _forget(self, before: int) -> None:
        old = self._spending.c.starts_at < before
        with self._database.transaction() as connection:
            connection.execute(self._spending.delete().where(old))
