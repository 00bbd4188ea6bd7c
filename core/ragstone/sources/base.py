"""What all readers of sources share, without the reading."""

from collections.abc import Collection, Iterator

from ragstone.errors import RagstoneError
from ragstone.sample import BadLine, Row

NAMING = "fields={{{field!r}: {key!r}}}"
"""How Python names the key of a field."""
LARGEST = 100_000_000
"""The bytes of a line, or a row of Parquet or Arrow that are read at most; of a cell of CSV half as many characters."""

Rows = Iterator[Row | BadLine]


class SourceError(RagstoneError, ValueError):
    """A source holds no samples, or cannot be read; the message says why, and the way out.

    Attributes:
        report: What `evaluate` had scored by then, a `Report`; None elsewhere.
    """

    report: object = None


def refuse_results(names: Collection[object], source: str) -> None:
    """Refuse a frame of results, in which a sample has a row for each metric.

    Raises:
        SourceError: They are the names of results.
    """
    if "ragstone_results" in names or {"sample_id", "metric", "setup"}.issubset(names):
        raise SourceError(f"{source}: holds results; `ragstone report`, `explain` and `compare` read them")
