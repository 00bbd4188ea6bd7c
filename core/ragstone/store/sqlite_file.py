"""What every SQLite file of ragstone's needs: a connection that a fork does not inherit, and transactions that end."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragstone.store.forks import ForkSafe


class SqliteFile(ForkSafe):
    """One process's way into a file: at most one connection, closed while the process forks.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)

    def let_go(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def disown(self) -> object:
        """Forget the connection without closing it: it is the parent process's."""
        connection, self._connection = self._connection, None
        return connection

    def _keep(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Use this connection from now on."""
        self._connection, self._file = connection, identity(self._path)
        return connection

    def _replaced(self) -> bool:
        """Whether the file was deleted or replaced since the connection was made."""
        return self._file != identity(self._path)


@contextmanager
def committed(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Commit the transaction that has begun, or take it back when the block raises or the commit does."""
    try:
        yield
        connection.execute("COMMIT")  # where the disk is full, this fails and leaves the transaction open
    except BaseException:
        with suppress(sqlite3.Error):  # some errors have ended it already
            connection.execute("ROLLBACK")
        raise


def identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another that has taken its name; (0, 0) where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
