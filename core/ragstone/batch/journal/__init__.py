"""What was judged once, kept by key in a SQLite file, so that a run that was stopped goes on from there."""

from ragstone.batch.journal.file import JournalError
from ragstone.batch.journal.journal import Journal
from ragstone.batch.journal.keys import NoKeyError

__all__ = ["Journal", "JournalError", "NoKeyError"]
