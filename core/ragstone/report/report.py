"""A report: means with their intervals, failures, cost, each outcome, and the page that shows them."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from pydantic import TypeAdapter, ValidationError

from ragstone.errors import GroupError
from ragstone.outcome import Usage
from ragstone.plain import count
from ragstone.report.aggregates import FACETS, Aggregates, Facet, MetricInfo, MetricSummary, by_row
from ragstone.report.statistics import Interval
from ragstone.report.tables import (
    ASSUMES,
    DASH,
    FEW_GROUPS,
    INTERVAL,
    Tabular,
    cost_line,
    interval_of,
    moment,
    narrower,
    number,
    of_groups,
    percent,
    wide_frame,
)
from ragstone.results.frames import installed, to_frame, to_rows, write_csv
from ragstone.results.groups import RowKey, conversation_of, conversations, group_name, group_of
from ragstone.results.memory import MemoryResults, Results
from ragstone.results.record import Record, row_of, to_fields
from ragstone.sample import BadLine, Sample

if TYPE_CHECKING:
    from ragstone.metrics.base import Metric

Location = str | os.PathLike[str]
Since = str | datetime | timedelta | None
_METRICS = TypeAdapter(tuple[MetricInfo, ...])
_BAD_ROWS = TypeAdapter(tuple[BadLine, ...])
_TIME = re.compile(r"([0-9]{1,9})([mhd])")
_UNITS = {"m": 60, "h": 3_600, "d": 86_400}


class Report(Tabular):
    """Records in their order, with their sums and means. `print` shows it as a table, a notebook too.

    `len(report)`, `for record in report` and `report[i]` are about its records: one for each sample and metric.
    `report["faithfulness"]` is one metric's `MetricSummary`, with `mean`, `interval`, `passed` and `scored`.
    A report of a file or a database reads them from there each time.

    Made by `evaluate`, `Report.of` and `Report.load`. Nothing in it changes.

    Args:
        results: Where the records and samples are.
        metrics: The metrics, or their names and set-ups; others are added as their records come.
        bad_rows: The rows that held no sample.
        name: What to call it.
        notes: Further remarks on the run, in sentences.
        since: Samples submitted before are left out, in seconds since 1970 (UTC).
        group: As for `evaluate`; it replaces the groups of the records.

    Attributes:
        name: Its name, or "".
        bad_rows: The rows of the input that held no sample, and why.
        since: Samples submitted before are left out, in seconds since 1970 (UTC); None: all are in.
        price: The price of a million prompt tokens, and of a million reply tokens; None: unknown.
        spent: The run's own calls, with failed tries and without outcomes from its journal; None for a loaded report.
            `usage` is the cost of all results.
        conversations: The conversations that histories show, by row and sample id; None before its rows were read.
        gave_up: Why judges or embedders were not asked any more in the run, in words.

    Example:
        >>> from ragstone import Score, Unscored
        >>> scores = [Score(metric="demo", value=value, reason="", version="1") for value in (0.5, 1.0)]
        >>> failed = Unscored(metric="demo", reason="timeout", detail="60 s", version="1")
        >>> outcomes = enumerate([*scores, failed])
        >>> report = Report.of([Record(f"q{row}", outcome, "judge", row) for row, outcome in outcomes])
        >>> demo = report.summary()["demo"]
        >>> demo.mean, demo.scored, demo.total, dict(demo.failures)
        (0.75, 2, 3, {'timeout': 1})
        >>> len(report), [record.outcome.value for record in report], report[-1].outcome.reason
        (3, [0.5, 1.0, None], 'timeout')
    """

    def __init__(
        self,
        results: Results,
        metrics: "Iterable[Metric | MetricInfo]" = (),
        *,
        bad_rows: Iterable[BadLine] = (),
        name: str = "",
        notes: Iterable[str] = (),
        since: float | None = None,
        group: str | None = None,
    ) -> None:
        self._results = results
        self._group = None if group is None else group_name(group)
        self.conversations: Mapping[RowKey, str] | None = None
        self._infos = tuple(map(MetricInfo.of, metrics))
        self._aggregates: Aggregates | None = None
        self._facets = FACETS
        self.bad_rows = tuple(bad_rows)
        self.name = name
        self._notes = tuple(notes)
        self.spent: Usage | None = None
        self.gave_up: tuple[str, ...] = ()
        self.price: tuple[float, float] | None = None
        self.since = since

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        metrics: "Iterable[Metric | MetricInfo]" = (),
        *,
        samples: Mapping[int, Sample] | Sequence[Sample | None] | None = None,
        bad_rows: Iterable[BadLine] = (),
        name: str = "",
        group: str | None = None,
    ) -> "Report":
        """The report of records that are at hand.

        Args:
            records: The records, those of a row together.
            metrics: The metrics, or their names and set-ups.
            samples: The samples by row (a mapping, or a sequence with one for each row), to show what lowered the
                worst scores.
            bad_rows: The rows that held no sample.
            name: What to call it.
            group: As for `evaluate`.
        """
        return cls(MemoryResults(records, samples), metrics, bad_rows=bad_rows, name=name, group=group)

    @classmethod
    def load(cls, source: Location, *, since: Since = None, group: str | None = None) -> "Report":
        """The report of a results file or of a monitor's database.

        The records stay where they are, and are read from there when they are asked for: a file must stay as it is. A
        database is read, never changed, while monitors go on writing to it. Of a metric of your own that the source
        says nothing of, higher is taken to be better. A line that a killed run left unfinished is left out, and
        `notes` says so.

        Args:
            source: A file that `ragstone score --out` or `to_json` wrote; what `to_pandas` or a `Scorer` gave, as
                Parquet, JSON lines or CSV, a file or a folder of parts; a SQLite file of a `Monitor`, or the URL of its
                `SQLSink`.
            since: Leave out samples submitted before: "30m", "24h" or "7d" ago, a timedelta ago, or a date and time
                (ISO 8601 or a datetime; UTC where it names no zone). None: all.
            group: As for `evaluate`. None: what the records say.

        Raises:
            ResultsError: There is nothing of ours, it cannot be read, or a newer ragstone wrote it.
            ImportError: A URL needs a package that is not installed; the message says which.
            OSError: The file cannot be read.
            ValueError: `since` is no time.
            GroupError: No row has the field that `group` names, or there is no such field; a ValueError, too.
        """
        report = open_report(source, since).grouped(group)
        # A source that holds no results is refused here.
        report.aggregates()
        return report

    @property
    def metrics(self) -> tuple[MetricInfo, ...]:
        """The facts of each metric, as evaluated or in the order of their records."""
        return tuple(each.info for each in self.aggregates())

    @property
    def usage(self) -> Usage:
        """The cost of its results, in this run or before; unknown tokens are None."""
        return self.aggregates().cost.usage

    @property
    def notes(self) -> tuple[str, ...]:
        """Further remarks on the run, and faults of the source that it was loaded from."""
        # Those of the source are known once it was read to its end.
        added = self.aggregates()
        notes = *self._notes, *self._results.notes
        if not added.copies:
            return notes
        copies = f"{count(added.copies, 'row')} of {added.rows:,} have the id and all texts of another"
        return *notes, f"{copies}; each counts, so the intervals are narrower than the samples allow"

    def results(self, *, samples: bool = False) -> Iterator[Record]:
        """Yield each record, in order; with `samples` each has its sample, where that is kept."""
        return self._results.records(self.since, samples=samples)

    def __iter__(self) -> Iterator[Record]:
        return self.results()

    def __len__(self) -> int:
        return self.aggregates().cost.outcomes

    def __bool__(self) -> bool:
        # A report of nothing is a report.
        return True

    @overload
    def __getitem__(self, key: int) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> list[Record]: ...
    @overload
    def __getitem__(self, key: str) -> MetricSummary: ...
    def __getitem__(self, key: int | slice | str) -> Record | list[Record] | MetricSummary:
        if not isinstance(key, str):
            return list(self.results())[key]
        summaries = self.summary()
        if key not in summaries:
            raise KeyError(f"{key!r} is none of its metrics: {', '.join(summaries) or 'it has none'}")
        return summaries[key]

    def sample(self, record: Record) -> Sample | None:
        """The sample of a record; None where it is not kept."""
        return record.sample or self._results.sample(record)

    def summary(self) -> dict[str, MetricSummary]:
        """Each metric's outcomes added up, by the metric's name.

        Outcomes of one metric in several versions, or by several judges, are never added up together: their names
        then say which.
        """
        return self.aggregates().named()

    def aggregates(self) -> Aggregates:
        """All outcomes added up. The source is read once for that."""
        return self._aggregates or self.read(lambda _records: None)

    def read(self, on_row: Callable[[Sequence[Record]], object], *, samples: bool = False) -> Aggregates:
        """Call a function with each row's records, and return all outcomes added up: one reading for both.

        If a sample has a history, all are read twice more, to find conversations. That
        takes memory by the number of rows. Of a database, conversations are known by their `thread_id` alone.

        Args:
            on_row: The function.
            samples: Whether records of a database have their samples; others always have.
        """
        aggregates, have_history = self._added_up(on_row, samples=samples)
        if have_history and self.conversations is None and self._group is None and self._results.at_hand:
            rows = by_row(self.results(samples=True))
            self.conversations = conversations((row_of(records[0]), records[0].sample) for records in rows)
            if self.conversations:
                aggregates, _ = self._added_up(lambda _records: None)
        if self._group is not None and aggregates.rows and not aggregates.grouped:
            raise GroupError(
                f"group: no row has {self._group}; name what they have, or score them with group={self._group!r}"
            )
        self._aggregates = aggregates
        return aggregates

    def _added_up(
        self, on_row: Callable[[Sequence[Record]], object], *, samples: bool = False
    ) -> tuple[Aggregates, bool]:
        aggregates, have_history = Aggregates(self._infos, self._results.feedback(), self._facets), False
        wanted = samples or self._results.at_hand or self._group is not None
        for records in by_row(self.results(samples=wanted)):
            sample = records[0].sample
            have_history = have_history or bool(sample and sample.history)
            aggregates.add(records, self.group_of(records[0]))
            on_row(records)
        return aggregates, have_history

    def group_of(self, record: Record) -> str | None:
        """The group of a record's row; None where it is one of its own. Conversations once they were read."""
        if self._group is not None:
            return group_of(self._group, record, record.sample)
        known = self.conversations or {}
        return record.group or conversation_of(record, record.sample) or known.get(row_of(record))

    def grouped(self, group: str | None) -> "Report":
        """The report with rows grouped by a field's name or `metadata.NAME`; None: as they are.

        Raises:
            GroupError: There is no such field. The rows are looked at when they are read.
        """
        if group is None:
            return self
        report = copy(self)
        vars(report).update(_group=group_name(group), _aggregates=None)
        return report

    def by(self, facet: Facet) -> dict[str, dict[str, Interval]]:
        """Each metric's means by what outcomes say of their runs, or by feedback. A later page shows them too.

        Args:
            facet: "run_name", "tags", "user_id", "thread_id" or "feedback". A row with two tags counts for both.

        Returns:
            By the metric's name, as in `summary`, then by value, the worst first; "" stands for none. Of more than
            10,000 values, only the first ones are told apart.
        """
        if facet not in self._facets:
            self._facets = (*self._facets, facet)
            self._aggregates = None
        aggregates = self.aggregates()
        return {name: aggregates.by((False, facet), each.info) for name, each in aggregates.named().items()}

    def to_pandas(self, *, wide: bool = False) -> Any:  # noqa: ANN401 - a pandas.DataFrame; pandas is no dependency
        """A pandas DataFrame: a row for each sample and metric. A missing value is NA, never NaN.

        Args:
            wide: A row for each sample instead: its texts, and a column of values for each metric, by its name in
                `summary` ("response score" where that is a text's).

        Raises:
            ImportError: pandas is not installed.
        """
        if wide:
            return wide_frame(by_row(self.results(samples=True)), self.summary())
        return to_frame(to_rows(self.results(samples=True)))

    def to_polars(self) -> Any:  # noqa: ANN401 - a polars.DataFrame; polars is no dependency
        """A polars DataFrame: a row for each sample and metric. A missing value is null, never NaN.

        Raises:
            ImportError: polars, pandas or pyarrow is not installed.
        """
        return installed("polars", "to_polars").from_pandas(self.to_pandas())

    def to_csv(self, path: Location) -> None:
        """Write a CSV file: a row for each sample and metric. A missing value is an empty cell.

        A text that a spreadsheet would run as a formula, such as "=1+1", gets a ' in front. Numbers stay as they are.

        Raises:
            OSError: It cannot be written.
        """
        write_csv(Path(path), to_rows(self.results(samples=True)))

    def to_parquet(self, path: Location) -> None:
        """Write a Parquet file: a row for each sample and metric.

        Raises:
            ImportError: pandas or pyarrow is not installed.
            OSError: It cannot be written.
        """
        from ragstone.results.private_files import replacing

        installed("pyarrow", "to_parquet")
        frame = self.to_pandas()
        with replacing(Path(path)) as target:
            frame.to_parquet(target)

    def to_json(self, path: Location) -> None:
        """Write all of it, with the samples, to a results file that `Report.load` reads.

        A value of a sample's `metadata` that JSON does not know is written as text.

        Raises:
            OSError: It cannot be written.
        """
        from ragstone.results.read import write_results

        metrics = [asdict(each) for each in self.metrics]
        info = {"name": self.name, "metrics": metrics, "bad_rows": [asdict(each) for each in self.bad_rows]}
        write_results(Path(path), self.results(samples=True), info)

    def html(self, *also: Tabular) -> str:
        """The report as a page: one text that loads nothing, and runs only the script for its table of samples.

        Args:
            *also: What stands before the scores: `compare(old, report)` shows the change against another run,
                and corrected means show what people would say.
        """
        from ragstone.report.page import report_html
        from ragstone.report.page_rows import SampleRows

        for each in also:
            if not isinstance(cast("object", each), Tabular):
                raise TypeError(f"html: takes comparisons and corrected means; to write a file, save({each!r})")
        with self._results.held() as results:
            held = copy(self)
            held._results = results  # noqa: SLF001 - a copy of itself
            rows = SampleRows(held.aggregates(), results.samples)
            if results.at_hand:
                rows.read(results.fields(self.since))
            else:
                # What a monitor has written since is in the means, too.
                held.read(lambda records: rows.add([(to_fields(each), None) for each in records]))
            name, since, bad_rows = self.name, self.since, self.bad_rows
            return report_html(held, also, held.aggregates(), rows, name=name, since=since, bad_rows=bad_rows)

    def save(self, path: Location) -> None:
        """Write it to a file that only its owner may read, in the form that the suffix names; `.html` is the page.

        Raises:
            OSError: It cannot be written.
            ValueError: There is no such form.
        """
        path = Path(path)
        forms: dict[str, Callable[[Path], object]] = {
            ".html": self._to_html,
            ".csv": self.to_csv,
            ".json": self.to_json,
            ".jsonl": self.to_json,
            ".parquet": self.to_parquet,
        }
        write = forms.get(path.suffix.lower())
        if write is None:
            raise ValueError(f"{path.name}: is none of {', '.join(forms)}; the suffix says what is written")
        write(path)

    def _to_html(self, path: Path) -> None:
        from ragstone.results.private_files import replacing

        with replacing(path) as target:
            target.write(self.html().encode())

    def table(self) -> tuple[str, Sequence[str], list[tuple[str, ...]]]:
        """The title, head and rows of a table that has all metrics; the first column is the name."""
        n = self.aggregates().rows
        if self.bad_rows and not n:
            nothing = f"nothing was scored: {count(len(self.bad_rows), 'row')}, and none held a sample"
            return f"{self.name}: {nothing}" if self.name else nothing, (), []
        rows = of_groups(count(n, "row"), self.aggregates().groups)
        summaries = self.summary()
        passes = any(each.passed is not None for each in summaries.values())
        cells = [self._cells(name, each, passes=passes) for name, each in summaries.items()]
        head = tuple(cells[0]) if cells else ()
        return f"{self.name}: {rows}" if self.name else rows, head, [tuple(each.values()) for each in cells]

    def _cells(self, name: str, each: MetricSummary, *, passes: bool) -> dict[str, str]:
        """A metric's row of the table, by column."""
        cells = {"metric": name, "mean": number(each.mean), INTERVAL: interval_of(each.estimate)}
        cells["scored"] = f"{each.scored:,}/{each.total:,}"
        if passes:
            cells["passed"] = DASH if each.passed is None else percent(each.passed)
        return cells

    def conclusion(self) -> str:
        """The mean of the weakest metric, and its costliest fault; without a score, the reason."""
        if not self.aggregates().rows:
            if self.since is not None:
                return f"Nothing was submitted since {moment(self.since)} UTC."
            held = f" {count(len(self.bad_rows), 'row')}, and none held a sample." if self.bad_rows else ""
            return f"Nothing was scored.{held}"
        summaries = self.summary()
        scored = {name: (each, each.mean) for name, each in summaries.items() if each.mean is not None}
        if not scored:
            return "No sample has a score: the reasons are below."
        # Where bounds are not known, nobody knows how weak a mean is.
        known = {name: each.info.lost(mean) for name, (each, mean) in scored.items() if each.info.bounds is not None}
        name = max(known, key=known.__getitem__) if known else next(iter(scored))
        weakest = summaries[name]
        which = ", the weakest metric" if 1 < len(scored) == len(known) else ""
        why = ""
        if weakest.main_cause is not None:
            cause, rows = weakest.main_cause
            why = f" In {rows:,} of {count(weakest.scored, 'sample')} {cause}."
        return f"{name}{which}: {number(weakest.mean)} on average.{why}"

    def figures(self) -> dict[str, object]:
        """Its numbers by metric, as JSON can hold them, for --json."""
        metrics = {
            name: {
                "mean": each.mean,
                "interval": each.interval,
                "narrower": each.estimate and each.estimate.narrower,
                "threshold": each.info.threshold,
                "passed": each.passed,
                "scored": each.scored,
                "total": each.total,
                "groups": each.groups or None,
                "unscored": dict(each.failures),
                "version": each.info.version,
                "judge": each.info.judge,
                "setup": each.info.setup,
                "usage": each.cost.usage.model_dump(),
            }
            for name, each in self.summary().items()
        }
        return {"name": self.name, "rows": self.aggregates().rows, "metrics": metrics, "remarks": list(self.remarks())}

    def remarks(self) -> Iterator[str]:
        """Yield remarks beside the table, in sentences."""
        # One error is said once.
        said = " ".join(self.notes)
        if self.aggregates().rows:
            yield cost_line(self.aggregates().cost, self.price)
        for name, each in self.summary().items():
            if each.info.name != name and each.first is not None:
                yield f"{name}: of samples from {moment(each.first)} to {moment(each.last)}"
            if beside := narrower(each.estimate, "row"):
                yield f"{name}: {beside}"
            if each.rules:
                rules = " and ".join(each.rules)
                yield f"{name}: only samples that {rules} chose are in; the mean says nothing of the others"
            if each.groups and each.estimate and each.estimate.lacks == each.groups:
                yield f"{name}: no interval: {FEW_GROUPS.format(each.groups)}"
            if each.one_vector:
                yield (
                    f"{name}: the embedder gave one vector for different texts, so its similarities say nothing: name "
                    "another"
                )
            for reason, n in each.failures.most_common():
                first = f"; first: {each.examples[reason]}"
                is_said = first.split(": ", 2)[-1].removeprefix("not asked: ") in said
                yield f"unscored by {name}: {n:,} {reason}{'' if is_said else first}"
                said += first
        if any(each.interval for each in self.summary().values()):
            yield ASSUMES
        yield from self.notes
        if self.bad_rows:
            bad = self.bad_rows[0]
            yield f"{count(len(self.bad_rows), 'row')} held no sample; the first, line {bad.line}: {bad.problem}"


def open_report(source: Location, since: Since = None) -> Report:
    """The report that `Report.load` does, before its records are read."""
    from ragstone.results.read import open_results
    from ragstone.results.tables import ResultsError

    begin = seconds_since(since, now=time.time())
    results = open_results(source)
    try:
        metrics = _METRICS.validate_python(results.info.get("metrics", ()))
        bad_rows = _BAD_ROWS.validate_python(results.info.get("bad_rows", ()))
    except ValidationError:
        raise ResultsError(f"{source}: its first line was changed; it says nothing of its metrics") from None
    return Report(results, metrics, bad_rows=bad_rows, name=results.name, since=begin)


def seconds_of(text: str) -> float | None:
    """Return the seconds of a time such as "30m", "24h" or "7d"; None for any other text."""
    match = _TIME.fullmatch(text.strip())
    return None if match is None else float(match[1]) * _UNITS[match[2]]


def seconds_since(since: Since, *, now: float) -> float | None:
    """The time that `since` of `Report.load` means, in seconds since 1970 (UTC)."""
    if since is None:
        return None
    if isinstance(since, timedelta):
        return now - since.total_seconds()
    if isinstance(since, str):
        if (ago := seconds_of(since)) is not None:
            return now - ago
        # Python 3.10 does not know the Z of UTC.
        try:
            since = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", since.strip()))
        except ValueError:
            raise ValueError(
                f"since: {since!r} is no time; write 30m, 24h or 7d (before now), or a date such as 2026-01-31 or "
                "2026-01-31T09:00 (UTC, or with its zone: +02:00)"
            ) from None
    return (since if since.tzinfo else since.replace(tzinfo=timezone.utc)).timestamp()
