"""The page of `--report`: what it needs is gathered while the results come, and no result is held for it."""

from collections.abc import Sequence
from pathlib import Path

import click

from ragstone.batch.runner import Scored
from ragstone.metrics.base import Metric
from ragstone.reporting.batch.facts import MetricFacts
from ragstone.reporting.batch.file import replacing
from ragstone.reporting.batch.page import report_page
from ragstone.reporting.batch.tally import Tally
from ragstone.sample import BadLine


class PageLost(click.ClickException):
    """The page cannot be written."""

    exit_code = 2


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
        self._tally = Tally(map(MetricFacts.of, metrics))
        self._bad_rows: list[BadLine] = []

    def add(self, scored: Scored) -> None:
        """Take a row's results."""
        self._tally.add(scored.results, scored.row.sample)

    def add_bad(self, bad: BadLine) -> None:
        """Take a line that held no sample."""
        self._bad_rows.append(bad)

    def write(self, *notes: str) -> None:
        """Write the page.

        Raises:
            PageLost: It cannot be written.
        """
        columns = {column.facts.name: column.summary() for column in self._tally.columns}
        text = report_page(self._tally, columns, lambda _: None, self._name, self._bad_rows, notes)
        write_page(self._path, text)


def write_page(path: str, text: str) -> None:
    """Write a page to a file.

    Raises:
        PageLost: It cannot be written.
    """
    try:
        with replacing(Path(path)) as target:
            target.write(text.encode())
    except OSError as error:
        raise PageLost(f"--report {path}: cannot write: {error.strerror}") from None
