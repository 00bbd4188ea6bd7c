"""One pass over the samples, with what it prints and writes on the way."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ragstone.batch.progress import Progress, above_bar
from ragstone.batch.runner import Runner, Scored
from ragstone.cli.output import echo, evidence_lines
from ragstone.cli.results import Results
from ragstone.limits.gate import RequestGate
from ragstone.metrics import AlignmentCoverage, Metric
from ragstone.outcome import Score
from ragstone.reporting import MetricInfo, MetricSummary
from ragstone.reporting.aggregates import by_metric
from ragstone.sample import BadLine, Row
from ragstone.store.journal import Journal
from ragstone.text.plain import printable

if TYPE_CHECKING:
    from ragstone.cli.page import Page

_SOURCE_NOTE = (
    "Note: alignment_coverage compares response with user_input. These rows have contexts; to compare with them: "
    "--set alignment_coverage.source=retrieved_contexts"
)


class Run:
    """Scores the samples once.

    Args:
        metrics: What to score by.
        results: Where outcomes are written, if anywhere.
        page: What gathers them for a page, if anything.
        explained: Whether to print each outcome.
        total: Lines of the input, if that is known.
        print_needed: Whether the run ends where nobody reads what it prints; otherwise it goes on without printing.

    Attributes:
        summaries: The totals so far, by metric.
        bad_lines: Lines so far that hold no sample.
        gave_up: Whether the run ended early because no judge was asked any more.
        not_asked: Why judges or embedders were not asked any more.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        results: Results | None,
        page: "Page | None" = None,
        *,
        explained: bool,
        total: int | None,
        print_needed: bool = True,
    ) -> None:
        self._print_needed = print_needed
        self._metrics = metrics
        self._results = results
        self._page = page
        self._explained = explained
        self._total = total
        self._progress: Progress | None = None
        self._note_source = any(isinstance(m, AlignmentCoverage) and m.source == "user_input" for m in metrics)
        self.summaries = {metric.name: MetricSummary(MetricInfo.of(metric)) for metric in metrics}
        self.bad_lines = 0
        self.gave_up = False
        self.not_asked: list[str] = []

    async def all(
        self,
        rows: Iterator[Row | BadLine],
        gate: RequestGate,
        on_interrupt: Callable[[Callable[[], object]], None],
        *,
        repeat: int,
        journal: Journal | None,
        sample_timeout: float | None,
        window: int,
        flows: int,
    ) -> None:
        """Score row after row until they end, the judge is given up, or it is interrupted.

        Args:
            rows: The samples.
            gate: What the judge is asked through.
            on_interrupt: Is told what to do at the first Ctrl-C.
            repeat: Scorings of each sample by each metric.
            journal: Where outcomes are kept and found.
            sample_timeout: Seconds for one scoring.
            window: Rows under way at most.
            flows: Scorings under way at most.
        """
        runner = Runner(
            rows,
            self._metrics,
            gate,
            repeat=repeat,
            journal=journal,
            sample_timeout=sample_timeout,
            window=window,
            flows=flows,
        )
        with Progress(gate, self._total) as self._progress:
            on_interrupt(partial(self._interrupted, runner, gate))
            async with contextlib.aclosing(runner.records()) as items:
                async for item in items:
                    if isinstance(item, BadLine):
                        self.bad_lines += 1
                        if self._page is not None:
                            self._page.add_bad(item)
                        self.say(f"line {item.line}: {printable(item.problem)} (skipped)", err=True)
                        self._progress.at(item.line)  # blank lines were counted, but do not come through
                    else:
                        self._take(item)
                    self.not_asked = runner.not_asked
                    if runner.gave_up:
                        self.gave_up = True
                        return

    def _take(self, scored: Scored) -> None:
        for (name, *_), records in by_metric(scored.records).items():
            self.summaries[name].add(records)
        if self._explained:
            for result in scored.records:
                self.say("\n".join(evidence_lines(result.sample_id, result.outcome)))
        if self._note_source and scored.row.sample.retrieved_contexts:
            self._note_source = False
            self.say(_SOURCE_NOTE, err=True)
        if self._results is not None:
            self._results.write(scored)
        if self._page is not None:
            self._page.add(scored)
        if self._progress is not None:
            unscored = sum(not isinstance(result.outcome, Score) for result in scored.records)
            self._progress.at(scored.row.line, unscored)

    def _interrupted(self, runner: Runner, gate: RequestGate) -> None:
        if gate.in_flight:
            self.say(f"Finishing {gate.in_flight} judge call(s) in flight; Ctrl-C again stops at once.", err=True)
        runner.stop()

    def say(self, text: str, *, err: bool = False) -> None:
        """Print a line, above the progress bar where there is one."""
        target = sys.stderr if err else sys.stdout
        with contextlib.nullcontext() if self._progress is None else above_bar(target):
            echo(text, err=err, needed=self._print_needed)
