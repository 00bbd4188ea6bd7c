"""What tells a results database from other files; monitors write it and reports read it."""

from ragstone.results.database import DatabaseSchema


def results_database(error: type[Exception], *tables: str) -> DatabaseSchema:
    """Describe a results database to whoever opens it and raises such errors.

    Who writes names the tables to make; who names none only reads.
    """
    # The mark is "ragR".
    return DatabaseSchema("results database", 0x72616752, 5, tables, error)
