"""What a run has scored so far: records, bad rows, notes; and the report of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ragstone.batch.evaluations import Evaluations, RowUnderWay
from ragstone.batch.prices import Price, cost_of
from ragstone.limits.gate import RequestGate
from ragstone.metrics.base import Metric
from ragstone.outcome import Unscored, Usage
from ragstone.plain import count
from ragstone.results.groups import group_of
from ragstone.results.memory import MemoryResults
from ragstone.results.record import Record
from ragstone.sample import BadLine, Row

if TYPE_CHECKING:
    from ragstone.batch.progress import Progress
    from ragstone.report.report import Report


class Listener(Protocol):
    """Who is told of each row as it ends. What a method raises ends the run, and nothing more is told."""

    def on_result(self, records: Sequence[Record]) -> object:
        """Get a sample's records, the first of which holds the sample.

        They come in the order in which samples end; when a run ends early, those that there are of samples under way.
        """

    def on_bad_row(self, row: BadLine) -> object:
        """Get a row that holds no sample."""


class Recording:
    """What a run has scored so far.

    Args:
        name: What the report calls the run.
        price: What judges cost.
        group: What rows depend on each other by.

    Attributes:
        listener: Who is told of each row, if anybody is.
        bar: Shows how far the run is, while it goes on.
    """

    def __init__(self, name: str, price: Price | None, group: str | None) -> None:
        self.listener: Listener | None = None
        self.bar: Progress | None = None
        self._name = name
        self._price = price
        self._group = group
        self._results = MemoryResults()
        self._bad_rows: list[BadLine] = []
        self._rows = self._not_asked = self._scored = 0
        # The source's first row, which says what was there and was not read.
        self._first: Row | None = None
        # Whether all samples lacked an input, by the metric.
        self._lacking: dict[str, bool] = {}

    def add(self, row: RowUnderWay | BadLine) -> None:
        """Keep what came of a row, and tell the listener."""
        if isinstance(row, BadLine):
            self._bad_rows.append(row)
            self._tell(0, lambda listener: listener.on_bad_row(row))
            return
        records, sample = row.made(), row.row.sample
        if (group := self._group) is not None:
            records = tuple([replace(record, group=group_of(group, record, sample)) for record in records])
        self._rows += 1
        self._not_asked += not row.asked
        if row.row.first is not None:
            self._first = row.row
        unscored = 0
        for record in records:
            outcome = record.outcome
            lacks = False
            if isinstance(outcome, Unscored):
                unscored += 1
                lacks = outcome.reason == "missing_input"
            self._lacking[outcome.metric] = lacks and self._lacking.get(outcome.metric, True)
        self._scored += len(records) - unscored
        self._results.add(records, sample)
        self._tell(unscored, lambda listener: listener.on_result((replace(records[0], sample=sample), *records[1:])))

    def report(self, metrics: Sequence[Metric], evaluations: Evaluations | None, *notes: str) -> "Report":
        """The report of what has been scored."""
        # What shows results is loaded when there are some.
        from ragstone.report.report import Report

        said = list(notes)
        lacking = [metric for metric, lacks in self._lacking.items() if lacks]
        if self._first is not None and (first := self._first.first) is not None:
            said += [f"samples: {each}" for each in (first.part, *first.notes) if each]
            fields = {name for metric in metrics if metric.name in lacking for name in metric.required_fields}
            if lacking and (also := first.also(fields - first.found.keys())):
                said.append(f"{', '.join(lacking)}: every sample lacks an input; row {self._first.line} {also}")
        gave_up: tuple[str, ...] = ()
        spent = Usage()
        if evaluations is not None:
            gate, gave_up = evaluations.gate, evaluations.not_asked
            spent = gate.usage()
            said += [*evaluations.notes, *[f"Gave up: {why}." for why in gave_up]]
            if not (self._rows or self._bad_rows or gate.closed):
                said.append("samples: held no row; a generator that was used before is empty")
            if self._not_asked or gate.calls_failed:
                said.append(self._bill(gate))
        self._bad_rows.sort(key=lambda bad: bad.line)
        report = Report(self._results, metrics, bad_rows=self._bad_rows, name=self._name, notes=said)
        report.gave_up, report.spent, report.price = gave_up, spent, self._price
        return report

    def _tell(self, unscored: int, tell: Callable[[Listener], object]) -> None:
        if self.bar is not None:
            self.bar.done(unscored)
        # A listener that raises has ended the run, and stays away.
        listener, self.listener = self.listener, None
        if listener is not None:
            tell(listener)
            self.listener = listener

    def _bill(self, gate: RequestGate) -> str:
        """What this run spent, where its results are worth another sum."""
        spent, price = gate.usage(), self._price
        sent, received = spent.input_tokens, spent.output_tokens
        failed = f", {gate.calls_failed:,} of them failed" if gate.calls_failed else ""
        facts = f"{count(spent.llm_calls, 'judge call')}{failed}"
        if sent is not None and received is not None:
            facts += f", {sent + received:,} tokens"
            facts += "" if price is None else f", cost {cost_of(price, sent, received):.4f}"
        elif price is not None:
            facts += ", unknown cost"
        kept = self._not_asked
        whole = f"; {count(self._rows, 'sample')}, {kept:,} of an earlier run" if kept else ""
        return f"Spent in this run: {facts}{whole}.{' The table says what the results are worth.' * bool(self._scored)}"
