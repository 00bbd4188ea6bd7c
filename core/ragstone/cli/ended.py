"""A run of the command that may end early: by Ctrl-C, with results that cannot be written, or with its journal."""

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import click

from ragstone.batch.interrupts import Interrupts
from ragstone.cli.results import ResultsLost
from ragstone.store.journal import Journal, JournalError


class _JournalLost(click.ClickException):
    exit_code = 2


def open_journal(path: str, stack: contextlib.ExitStack) -> Journal:
    """Open what --journal names, and close it with the stack.

    Raises:
        click.UsageError: It cannot be used.
    """
    try:
        journal = Journal(path)
    except JournalError as error:
        raise click.UsageError(f"--journal {error}") from error
    stack.callback(_close, journal)
    return journal


def _close(journal: Journal) -> None:
    with contextlib.suppress(JournalError):  # what there was to say of it has been said by `flush`
        journal.close()


def run_to_end(
    interrupts: Interrupts, all_rows: Callable[[], Coroutine[Any, Any, None]], journal: Journal | None
) -> KeyboardInterrupt | click.ClickException | None:
    """Score all rows; return what ended that early, for the table comes first."""
    try:
        try:
            interrupts.run(all_rows)
        finally:
            if journal is not None:
                journal.flush()
    except (KeyboardInterrupt, ResultsLost) as ended:
        return ended
    except JournalError as error:
        return _JournalLost(f"--journal {error}")
    return KeyboardInterrupt() if interrupts.count else None
