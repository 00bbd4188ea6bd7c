"""One pass over the samples, with what it prints and writes on the way."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from ragstone.batch import BadLine, Row, Scored, Summary, stream
from ragstone.cli.results import Results
from ragstone.cli.show import evidence_lines, printable
from ragstone.metrics import AlignmentCoverage, Metric
from ragstone.outcome import Score, Unscored

if TYPE_CHECKING:
    from tqdm import tqdm

GIVE_UP_AFTER = 100
"""Samples in a row on which the judge fails: what comes after them would only wait for retries, for hours."""


_SOURCE_NOTE = (
    "Note: alignment_coverage compares response with user_input. These rows have contexts; to compare with them: "
    "--set alignment_coverage.source=retrieved_contexts"
)


class Run:
    """Scores the samples once.

    Args:
        metrics: What to score by.
        results: Where outcomes are written, if anywhere.
        progress: The bar, which counts lines.
        explained: Whether to print each outcome.

    Attributes:
        summaries: The totals so far, by metric.
        bad_lines: Lines so far that hold no sample.
        gave_up: Whether the run ended early because the judge kept failing.
    """

    def __init__(
        self, metrics: Sequence[Metric], results: Results | None, progress: "tqdm[Any]", *, explained: bool
    ) -> None:
        self._metrics = metrics
        self._results = results
        self._progress = progress
        self._explained = explained
        self._failed_in_a_row = 0
        self._note_source = any(isinstance(m, AlignmentCoverage) and m.source == "user_input" for m in metrics)
        self.summaries = {metric.name: Summary() for metric in metrics}
        self.bad_lines = 0
        self.gave_up = False

    async def all(self, rows: Iterator[Row | BadLine], *, window: int) -> None:
        """Score row after row until they end or the judge is given up."""
        async with contextlib.aclosing(stream(rows, self._metrics, window=window)) as items:
            async for item in items:
                if isinstance(item, BadLine):
                    self.bad_lines += 1
                    self._say(f"line {item.line}: {printable(item.problem)} (skipped)", err=True)
                    line = item.line
                else:
                    self._take(item)
                    line = item.row.line
                self._progress.update(line - self._progress.n)  # blank lines were counted, but do not come through
                if self._failed_in_a_row >= GIVE_UP_AFTER:
                    self.gave_up = True
                    return

    def _take(self, scored: Scored) -> None:
        for outcome in scored.outcomes:
            self.summaries[outcome.metric].add(outcome, where=f"line {scored.row.line}")
            if self._explained:
                self._say("\n".join(evidence_lines(scored.row.sample.id or "", outcome)))
        if self._note_source and scored.row.sample.retrieved_contexts:
            self._note_source = False
            self._say(_SOURCE_NOTE, err=True)
        if self._results is not None:
            self._results.write(scored)
        if any(isinstance(outcome, Score) for outcome in scored.outcomes):
            self._failed_in_a_row = 0
        elif any(isinstance(each, Unscored) and each.reason == "judge_error" for each in scored.outcomes):
            self._failed_in_a_row += 1
        calls = sum(summary.usage.llm_calls for summary in self.summaries.values())
        unscored = sum(summary.total - summary.scored for summary in self.summaries.values())
        self._progress.set_postfix_str(f"{calls:,} calls, {unscored:,} unscored", refresh=False)

    def _say(self, text: str, *, err: bool = False) -> None:
        with self._progress.external_write_mode(file=sys.stderr if err else sys.stdout):
            click.echo(text, err=err)
