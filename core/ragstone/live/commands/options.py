"""Databases and outboxes that the commands of live traffic name."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from ragstone.cli.options import NotThere, database_file
from ragstone.live.database import DatabaseSink, SQLiteSink, SQLSink
from ragstone.live.outbox import Outbox, OutboxError


def database_sink(name: str, option: str = "", *, new: bool = False) -> DatabaseSink:
    """Return the sink of a database that is named by its path or its URL; its file must be there unless `new`."""
    path = database_file(name)
    if path is not None and not (new or Path(path).is_file()):
        raise NotThere(f"{name}: no such file; name the database of a Monitor's SQLiteSink or SQLSink")
    if path is not None and not new and _begins_as_json(path):
        raise NotThere(f"{name}: is no database; a results file is for `ragstone report {name}`")
    try:
        return SQLSink(name) if "://" in name else SQLiteSink(name)
    except ValueError as error:
        raise click.UsageError(f"{option}{name}: {error}") from None


def _begins_as_json(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(1) == b"{"


@contextmanager
def opened_outbox(name: str | Path, *, make: bool = False) -> Generator[Outbox, None, None]:
    """Open an outbox that is there, or one that is to be made, and close it."""
    path = Path(name)
    if not (path.is_file() or (make and not path.exists())):
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise NotThere(f"--outbox {path}: {what}; name the file that the app's monitor has as outbox=")
    try:
        with closing(Outbox(path.absolute())) as outbox:
            yield outbox
    except (OutboxError, OSError) as error:
        raise NotThere(f"--outbox {error}") from None
