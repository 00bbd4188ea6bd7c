"""What a batch found: means with their intervals, failures, cost, each result, and the page that shows them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.outcome import Usage
from ragstone.reporting.batch.export import records, to_frame, write_csv, write_parquet
from ragstone.reporting.batch.facts import MetricFacts, named
from ragstone.reporting.batch.file import InFile, replacing, write_report
from ragstone.reporting.batch.kept import InMemory, Kept
from ragstone.reporting.batch.page import report_page
from ragstone.reporting.batch.tally import MetricSummary, Tally
from ragstone.reporting.batch.text import report_text, summary_html
from ragstone.sample import BadLine, Sample
from ragstone.store.record import Record

if TYPE_CHECKING:
    from ragstone.metrics.base import Metric


class Report:
    """Results in the order of the input, and what they add up to. `print` shows it as a table, a notebook too.

    Made by `evaluate`, `Report.of` and `Report.load`. Nothing in it changes.

    Args:
        kept: Where the results and samples are.
        metrics: The metrics, or what is known of them; others are added as their results come.
        bad_rows: The rows that held no sample.
        name: What to call it.

    Attributes:
        name: What it is called; "" without a name.
        metrics: What is known of each metric, as evaluated or in the order in which their results came.
        bad_rows: The rows of the input that held no sample, and why.
        notes: What was wrong with the file that it was loaded from, in sentences.

    Example:
        >>> from ragstone import Score, Unscored
        >>> scores = [Score(metric="demo", value=value, reason="", version="1") for value in (0.5, 1.0)]
        >>> failed = Unscored(metric="demo", reason="timeout", detail="60 s", version="1")
        >>> outcomes = enumerate([*scores, failed])
        >>> report = Report.of([Record(f"q{row}", outcome, "judge", row, 0) for row, outcome in outcomes])
        >>> found = report.summary()["demo"]
        >>> found.mean, found.scored, found.total, found.failures
        (0.75, 2, 3, {'timeout': 1})
    """

    def __init__(
        self,
        kept: Kept,
        metrics: "Iterable[Metric | MetricFacts]" = (),
        *,
        bad_rows: Iterable[BadLine] = (),
        name: str = "",
    ) -> None:
        self._kept = kept
        self._facts = tuple(map(MetricFacts.of, metrics))
        self._counted: Tally | None = None
        self._summary: dict[str, MetricSummary] | None = None
        self.bad_rows = tuple(bad_rows)
        self.name = name
        self.notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        results: Iterable[Record],
        metrics: "Iterable[Metric | MetricFacts]" = (),
        *,
        samples: Mapping[int, Sample] | Sequence[Sample | None] | None = None,
        bad_rows: Iterable[BadLine] = (),
        name: str = "",
    ) -> "Report":
        """Return the report of results that are at hand.

        Args:
            results: The results, those of a row together.
            metrics: The metrics, or what is known of them.
            samples: The samples by row (a mapping, or a sequence with one for each row), to show what cost the worst.
            bad_rows: The rows that held no sample.
            name: What to call it.
        """
        return cls(InMemory(results, samples), metrics, bad_rows=bad_rows, name=name)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Report":
        """Return the report of a file that `to_json` wrote, or of one that `ragstone score --out` wrote.

        The results stay in the file, and are read from there when they are asked for: it must stay as it is. From a
        file of `ragstone score`, which knows no more than the outcomes, thresholds and samples are missing, and for
        a metric of your own higher is taken to be better. A line that a killed run left unfinished is left out, and
        said so in `notes`.

        Raises:
            ReportError: The file holds no results, or a newer ragstone wrote it.
            OSError: It cannot be read.
        """
        kept = InFile(path)
        report = cls(kept, kept.facts, bad_rows=kept.bad_rows, name=kept.name)
        report.tally()
        report.notes = kept.notes
        return report

    @property
    def metrics(self) -> tuple[MetricFacts, ...]:
        """What is known of each metric."""
        return tuple(column.facts for column in self.tally().columns)

    @property
    def usage(self) -> Usage:
        """What all of it cost; tokens are None where a provider did not tell all of them."""
        return self.tally().usage

    def results(self) -> Iterator[Record]:
        """Yield each result, in the order of the input."""
        return self._kept.results()

    def sample(self, row: int) -> Sample | None:
        """Return the sample of a row (`Record.row`, from 0); None where it is not kept."""
        self.tally()  # a file's samples are found by reading it once
        return self._kept.sample(row)

    def summary(self) -> dict[str, MetricSummary]:
        """Return what each metric's results add up to, by the metric's name.

        Results of one metric in several versions, or by several judges, are never added up together: their names
        then say which.
        """
        if self._summary is None:
            facts = self.metrics
            self._summary = {named(column.facts, facts): column.summary() for column in self.tally().columns}
        return dict(self._summary)

    def to_pandas(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame; pandas is no dependency
        """Return a pandas DataFrame: a row for each sample, metric and draw. What is missing is NA, never NaN.

        Raises:
            ImportError: pandas is not installed.
        """
        return to_frame(records(self.results(), self.sample))

    def to_csv(self, path: str | os.PathLike[str], *, neutralise: bool = True) -> None:
        """Write a CSV file: a row for each sample, metric and draw. What is missing is an empty cell.

        Args:
            path: The file.
            neutralise: Put a ' in front of a text that a spreadsheet would run as a formula, such as "=1+1". Numbers
                stay as they are.

        Raises:
            OSError: It cannot be written.
        """
        write_csv(Path(path), records(self.results(), self.sample), neutralise=neutralise)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file: a row for each sample, metric and draw.

        Raises:
            ImportError: pyarrow is not installed.
            OSError: It cannot be written.
        """
        write_parquet(Path(path), records(self.results(), self.sample))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write all of it, with the samples, to a JSON file that `Report.load` reads.

        What is in a sample's `metadata` and is nothing that JSON knows, is written as text.

        Raises:
            OSError: It cannot be written.
        """
        facts, bad = self.metrics, self.bad_rows
        write_report(Path(path), self.results(), self.sample, name=self.name, facts=facts, bad_rows=bad)

    def html(self) -> str:
        """Return the report as a page: one text that loads nothing and runs nothing."""
        return report_page(self.tally(), self.summary(), self.sample, self.name, self.bad_rows, self.notes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page of `html` to a file.

        Raises:
            OSError: It cannot be written.
        """
        with replacing(Path(path)) as target:
            target.write(self.html().encode())

    def __str__(self) -> str:
        return report_text(self.summary(), self.name, len(self.tally().labels), self.bad_rows, self.notes)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return summary_html(self.summary(), self.name, len(self.tally().labels), self.bad_rows, self.notes)

    def tally(self) -> Tally:
        """Return all outcomes, counted: what summaries and comparisons are made of. Read once, then kept."""
        if self._counted is None:
            tally = Tally(self._facts)
            for _, results in groupby(self.results(), key=lambda result: (result.row, result.sample_id)):
                tally.add(tuple(results))
            self._counted = tally
        return self._counted
