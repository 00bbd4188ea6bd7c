"""What tells a results database from other files, and what is raised where a source holds no results."""

from ragstone.errors import RagstoneError
from ragstone.results.database import DatabaseSchema


class ResultsError(RagstoneError, ValueError):
    """A source holds no results, or not those of before; the message says why, and the way out."""


def results_database(error: type[Exception], *tables: str) -> DatabaseSchema:
    """Describe a results database to whoever opens it and raises such errors.

    Who writes names the tables to make; who names none only reads.
    """
    # The mark is "ragR".
    return DatabaseSchema("results database", 0x72616752, 5, tables, error)
