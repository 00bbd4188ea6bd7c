"""What was judged once, kept by key in a SQLite file, so that a run that was stopped goes on from there."""

from ragstone.store.journal.file import JournalError
from ragstone.store.journal.journal import Journal
from ragstone.store.journal.keys import NoKeyError

__all__ = ["Journal", "JournalError", "NoKeyError"]
