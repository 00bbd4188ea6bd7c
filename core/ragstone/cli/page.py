"""The page of `--report`: what it needs is gathered while the results come, and no result is held for it."""

from collections.abc import Sequence

from ragstone.batch.runner import Scored
from ragstone.cli.output import write_page
from ragstone.metrics.base import Metric
from ragstone.reporting import Report
from ragstone.reporting.aggregates import Aggregates
from ragstone.sample import BadLine
from ragstone.store.results import MemoryResults


class _Added(Report):
    """A report whose records were added up as they came, and are not held."""

    def __init__(self, added: Aggregates, bad_rows: Sequence[BadLine], name: str, notes: Sequence[str]) -> None:
        super().__init__(MemoryResults([]), bad_rows=bad_rows, name=name, notes=notes)
        self._added = added

    def aggregates(self) -> Aggregates:
        return self._added


class Page:
    """Gathers a run's results, and writes the page of them.

    Args:
        path: Where the page goes.
        metrics: What is scored by.
        name: What is scored.
    """

    def __init__(self, path: str, metrics: Sequence[Metric], name: str) -> None:
        self._path = path
        self._name = name
        self._aggregates = Aggregates(metrics)
        self._bad_rows: list[BadLine] = []

    def add(self, scored: Scored) -> None:
        """Take a row's results."""
        self._aggregates.add(scored.records, scored.row.sample)

    def add_bad(self, bad: BadLine) -> None:
        """Take a line that held no sample."""
        self._bad_rows.append(bad)

    def write(self, *notes: str) -> None:
        """Write the page.

        Raises:
            NotThere: It cannot be written.
        """
        write_page("--report", self._path, _Added(self._aggregates, self._bad_rows, self._name, notes).html())
