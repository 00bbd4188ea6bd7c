"""Records added up as they come: all that a report shows of a metric, in memory that does not grow with the rows."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from ragstone.hinting import NoNumber
from ragstone.judge_names import NullJudge
from ragstone.metrics.base import ItemKind
from ragstone.metrics.names import make_metric, metric_names
from ragstone.metrics.setup import in_words, parts_of, settings_of, setup_of, shown
from ragstone.outcome import Score, UnscoredReason, Usage, Verdict, cause_of
from ragstone.plain import printable
from ragstone.report.statistics import GroupedMean, Interval, Mean, Timeline
from ragstone.results.record import Record, row_of

if TYPE_CHECKING:
    from ragstone.judge import Asking
    from ragstone.metrics.base import Metric
    from ragstone.results.traffic import Feedback
    from ragstone.sample import Sample

# A calendar ends with the year 9999.
_LATEST = 253_402_300_799
# Rounding leaves so much of a cosine of 1.
_ALIKE = 1 - 1e-6
# No sample rate is lower, and 1 / it is still a finite weight.
_LEAST_RATE = 1e-9
_MANY = 10_000
_ROWS = 100_000
STEPS = 41
# Of metadata. More values of a key are names, times or texts, and no slices.
_KEYS, _VALUES, _VALUE_LENGTH = 20, 50, 100

Key = tuple[str, str, str, str]
"""Metric, version, judge, set-up: what may be averaged together."""
Facet = Literal["feedback", "run_name", "tags", "user_id", "thread_id"]
# The others have a value for each person.
FACETS: tuple[Facet, ...] = ("feedback", "run_name", "tags")
Slicing = tuple[bool, str]
"""By what rows are sliced: whether it is a key of the samples' metadata, and its name or the facet's."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric in a report, in one version and set-up, by one judge.

    Attributes:
        name: The metric's name.
        version: Its version; it changes with its prompts.
        judge: The judge's `model`; "" where that is not known.
        bounds: Least and greatest possible value; None where that is not known.
        higher_is_better: The direction.
        threshold: What `Score.passed` is about; None without one, or where that is not known.
        items: What people can judge beside the whole sample; nothing where that is not known.
        settings: Its known options (`settings_of`).
        question: Its question, in plain words; "" if unknown.
        costs: Its words for faults, by the verdicts' kind or word (`Metric.costs`).
        setup: Its changed options that move the score (`setup_of`).

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> MetricInfo.of(ContextRelevancy(llm=FakeLLM(lambda request: ""), threshold=0.7)).threshold
        0.7
    """

    name: str
    version: str
    judge: str
    bounds: tuple[float, float] | None = None
    higher_is_better: bool = True
    threshold: float | None = None
    items: tuple[ItemKind, ...] = field(default=(), compare=False)
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    question: str = field(default="", compare=False)
    costs: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    setup: str = ""

    @classmethod
    def of(cls, metric: "Metric | MetricInfo") -> "MetricInfo":
        """All that is known of a metric."""
        if isinstance(metric, MetricInfo):
            return metric
        return cls(
            name=metric.name,
            version=metric.version,
            judge=metric.judge.model,
            bounds=metric.bounds,
            higher_is_better=metric.higher_is_better,
            threshold=metric.threshold,
            items=tuple(metric.item_kinds),
            settings=settings_of(metric),
            question=metric.asks,
            costs=metric.costs,
            setup=setup_of(metric),
        )

    @classmethod
    def from_record(cls, record: "Record") -> "MetricInfo":
        """The metric as far as a record tells; of a metric of your own, higher is taken to be better."""
        name, version, judge, setup = key_of(record)
        if name not in metric_names():
            return cls(name, version, judge, setup=setup)
        verdicts = record.outcome.verdicts if isinstance(record.outcome, Score) else ()
        asking: Asking = "one_by_one" if any(each.probability is not None for each in verdicts) else "together"
        metric = make_metric(name, {}, NullJudge(asking=asking))
        settings = {option: value for option, value in settings_of(metric).items() if option not in parts_of(setup)}
        known = replace(cls.of(metric), version=version, judge=judge, setup=setup)
        return replace(known, threshold=None, settings=settings)

    @property
    def sign(self) -> float:
        """1.0 where higher is better, else -1.0."""
        return 1.0 if self.higher_is_better else -1.0

    @property
    def key(self) -> Key:
        """The key of scores that may be averaged."""
        return self.name, self.version, self.judge, self.setup

    @property
    def apart(self) -> str:
        """Its differences from others of its name, in words."""
        return in_words(self.version, self.judge, self.setup)

    def fact(self, name: str) -> str:
        """The version, the judge, or an option of the set-up, in a word."""
        known = {"version": self.version, "judge": self.judge or "unknown", **parts_of(self.setup)}
        return known.get(name) or (shown(self.settings[name]) if name in self.settings else "default")

    def cause(self, verdict: Verdict) -> str:
        """What a verdict that lowers a score says of the sample: a clause in the metric's own words, if it has some."""
        own = self.costs.get(verdict.kind) or self.costs.get(verdict.verdict)
        return own or f"a verdict is “{printable(verdict.verdict, _VALUE_LENGTH)}”"

    def lost(self, value: float) -> float:
        """The distance of a value from the best one, as a share of the bounds; 1.0 without bounds.

        Of a cosine's bounds [-1, 1] only the part above 0 counts: unrelated texts are near 0.
        """
        if self.bounds is None:
            return 1.0
        low, high = scale(self.bounds)
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        return 1.0 - share if self.higher_is_better else share


def scale(bounds: tuple[float, float]) -> tuple[float, float]:
    """The ends of the scale on which a metric's values are drawn: its bounds, from 0 where they begin below."""
    low, high = bounds
    return (max(0.0, low), high) if high > 0.0 else (low, high)


def key_of(record: "Record") -> Key:
    """The metric, version, judge and set-up of a record."""
    return record.outcome.metric, record.outcome.version, record.judge, record.setup


def by_metric(records: "Iterable[Record]") -> "dict[Key, Record]":
    """The records of a row by what may be averaged together.

    Raises:
        ResultsError: There are two by one metric and judge.
    """
    found: dict[Key, Record] = {}
    for record in records:
        if found.setdefault(key_of(record), record) is not record:
            from ragstone.results.tables import ResultsError

            raise ResultsError(
                f"row {record.row + 1} ({printable(record.sample_id, 40)}) has two outcomes of "
                f"{record.outcome.metric}; give each run a results file of its own, and compare them"
            )
    return found


def by_row(records: "Iterable[Record]") -> "Iterator[list[Record]]":
    """Yield the records of one row after the other, all metrics together."""
    for _, group in groupby(records, row_of):
        yield list(group)


class Cost:
    """What outcomes cost: how many they are, the sums of a `Usage`'s fields, and of how many each is unknown."""

    def __init__(self) -> None:
        self.outcomes = 0
        self.sums: dict[str, float] = dict.fromkeys(Usage.model_fields, 0)
        self.unknown: Counter[str] = Counter()

    def add(self, usage: Usage) -> None:
        """Count what one outcome cost."""
        self.outcomes += 1
        for name, value in vars(usage).items():
            self.sums[name] += value or 0
            self.unknown[name] += value is None
        self.unknown["tokens"] += None in (usage.input_tokens, usage.output_tokens)

    @property
    def usage(self) -> Usage:
        """The same as a `Usage`: tokens are None where a provider did not report all of them."""
        known = {name: None if self.unknown[name] else value for name, value in self.sums.items()}
        return Usage.model_validate(known)


class MetricSummary(NoNumber):
    """One metric's outcomes, added up as they come.

    Args:
        info: The metric, its version, judge and set-up.

    Attributes:
        info: The metric, its version, judge and set-up.
        failures: How many are unscored, by reason. They enter no mean.
        cost: What all outcomes cost.
        spread: The weight of the rows' scores in each step of 0.05, by 20 times its begin; at most `STEPS` + 1 steps.
        over_time: Their mean over time.
        first: When the first sample was submitted, in seconds since 1970 (UTC); None where no time is known.
        last: When the last one was, likewise.
        causes: What lowered scores ("the answer does not answer the question"), with its rows and the points it cost.

    Example:
        >>> from ragstone import Score, Unscored
        >>> from ragstone.results.record import Record
        >>> summary = MetricSummary(MetricInfo("demo", "1", "judge"))
        >>> summary.add(Record("a", Score(metric="demo", value=0.5, reason="", version="1")))
        >>> summary.add(Record("b", Unscored(metric="demo", reason="timeout", detail="60 s", version="1")))
        >>> summary.mean, summary.scored, summary.total, dict(summary.failures), summary.examples
        (0.5, 1, 2, {'timeout': 1}, {'timeout': 'b: 60 s'})
    """

    def __init__(self, info: MetricInfo) -> None:
        self.info = info
        self.cost = Cost()
        self.spread: dict[int, float] = {}
        self._chosen_by = set[str]()
        # Of each row with an embedder: whether different texts had different vectors.
        self._told_apart = set[bool]()
        self.failures: Counter[UnscoredReason] = Counter()
        self.over_time = Timeline()
        self.first: float | None = None
        self.last: float | None = None
        self.causes: dict[str, tuple[int, float]] = {}
        self._examples: dict[UnscoredReason, tuple[float, str]] = {}
        self._values = GroupedMean()
        self._passed = Mean()

    def add(self, record: "Record", group: str | None = None) -> None:
        """Count the outcome of one row, and the group that it depends on."""
        outcome, submitted = record.outcome, record.submitted_at
        self._chosen_by.add(record.chosen_by)
        self.cost.add(outcome.usage)
        # 0 stands for no time.
        at = submitted if 0 < submitted <= _LATEST else None
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)
        if not isinstance(outcome, Score):
            self.failures[outcome.reason] += 1
            if submitted > self._examples.get(outcome.reason, (-1.0, ""))[0]:
                self._examples[outcome.reason] = submitted, f"{record.sample_id}: {outcome.detail}"
            return
        self._note_vectors(outcome)
        weight = weight_of(record)
        self._values.add(outcome.value, weight, group)
        if len(self.spread) <= STEPS:
            step = math.floor(round(20 * outcome.value, 9))
            self.spread[step] = self.spread.get(step, 0.0) + weight
        self._count_causes(outcome)
        if outcome.passed is not None:
            self._passed.add(float(outcome.passed), weight)
        if at is not None:
            self.over_time.add(at, outcome.value, weight, group)

    def _note_vectors(self, score: Score) -> None:
        cosines = [value for name, value in score.breakdown.items() if name.startswith("cosine_")]
        if cosines and len({verdict.text for verdict in score.verdicts}) > 1:
            self._told_apart.add(min(cosines) < _ALIKE)

    def _count_causes(self, score: Score) -> None:
        """Share out what the row lost among its verdicts that lowered it."""
        causes = Counter(self.info.cause(each) for each in score.verdicts if each.lowers_score)
        if cause_of(score) is not None and "" in self.info.costs:
            causes[self.info.costs[""]] = 1
        loss = self.info.lost(score.value)
        for cause, n in causes.items():
            if cause in self.causes or len(self.causes) < _MANY:
                rows, lost = self.causes.get(cause, (0, 0.0))
                self.causes[cause] = rows + 1, lost + loss * n / causes.total()

    @property
    def main_cause(self) -> tuple[str, int] | None:
        """The costliest fault, with the number of rows; None if unknown."""
        cause = max(self.causes, key=lambda each: (self.causes[each][1], self.causes[each][0]), default=None)
        return None if cause is None else (cause, self.causes[cause][0])

    @property
    def examples(self) -> dict[UnscoredReason, str]:
        """By reason, the first sample's id and message (the latest one's, where times are known)."""
        return {reason: text for reason, (_, text) in self._examples.items()}

    @property
    def total(self) -> int:
        """How many outcomes there are."""
        return self.cost.outcomes

    @property
    def scored(self) -> int:
        """The number of rows with a score, which the mean is of."""
        return self._values.rows.n

    @property
    def mean(self) -> float | None:
        """The mean over rows, each weighing 1 / `Record.rate`; None where none is scored."""
        return self._values.rows.mean

    @property
    def estimate(self) -> Interval | None:
        """The mean with its interval, and the narrower one where there is one; None where none is scored."""
        return self._values.estimate(self.info.bounds)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95 % interval; None where `Mean.estimate` gives none, as with fewer than two rows."""
        e = self.estimate
        return None if e is None or e.low is None or e.high is None else (e.low, e.high)

    @property
    def groups(self) -> str:
        """Of how many groups they are, such as "20 documents"; "" where each row is one of its own."""
        return self._values.groups

    @property
    def low(self) -> float | None:
        """The interval's lower end."""
        return self.interval and self.interval[0]

    @property
    def high(self) -> float | None:
        """Its upper end."""
        return self.interval and self.interval[1]

    def __repr__(self) -> str:
        mean = "no score" if self.mean is None else f"{self.mean:.3f}"
        ends = "" if self.interval is None else " (95 % interval {:.3f} to {:.3f})".format(*self.interval)
        return f"{self.info.name}: {mean}{ends}, {self.scored:,} of {self.total:,} scored"

    def _repr_html_(self) -> str:
        # Loaded when a notebook shows it.
        from ragstone.text.plain import html_table

        numbers = ["" if each is None else f"{each:.3f}" for each in (self.mean, self.low, self.high, self.passed)]
        cells = (self.info.name, *numbers, f"{self.scored:,} of {self.total:,}")
        why = [f"unscored: {n:,} {reason}; first: {self.examples[reason]}" for reason, n in self.failures.most_common()]
        return html_table("", ("metric", "mean", "95 % interval from", "to", "passed", "scored"), [cells], why)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that chose all of its samples; nothing where a rate chose one: the mean is of the traffic then."""
        return () if "rate" in self._chosen_by else tuple(sorted(self._chosen_by))

    @property
    def one_vector(self) -> bool:
        """Whether different texts had one vector wherever there were some: the embedder tells nothing apart."""
        return self._told_apart == {False}

    @property
    def weighted(self) -> bool:
        """Whether rows had different chances to be sampled, so that they weigh differently."""
        return self._values.rows.weighted

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the scale on which its values are drawn: by its bounds, or by its values without them."""
        least, greatest = self._values.rows.least, self._values.rows.greatest
        if self.info.bounds is not None or (least >= -1.0 and greatest <= 1.0):
            return scale(self.info.bounds or (0.0, 1.0))
        return scale((min(0.0, least), max(0.0, greatest)))

    @property
    def passed(self) -> float | None:
        """The share of scores that reached the threshold, within [0, 1]; None without one."""
        return self._passed.mean


class Aggregates:
    """All outcomes by metric, version, judge and set-up; metrics that are not named are added as their outcomes come.

    Attributes:
        cost: What all of it cost.
        rows: How many rows were counted.
        copies: How many of them have the id and all texts of one before, among the first 100,000.
        feedback: What people said of answers, by the sample's id.
        facets: By what outcomes say of their runs they are sliced.
        unanswerable: Rows whose response gives no answer while no context holds one, as two metrics found.
    """

    def __init__(
        self,
        metrics: "Iterable[Metric | MetricInfo]" = (),
        feedback: "Mapping[str, Feedback] | None" = None,
        facets: Iterable[Facet] = FACETS,
    ) -> None:
        self.facets = tuple(facets)
        self.feedback = feedback or {}
        self._slices: dict[Slicing, dict[Key, dict[str, GroupedMean]]] = {}
        self.cost = Cost()
        self.rows = self.copies = self.unanswerable = 0
        self._seen = set[int]()
        self._groups = GroupedMean()
        self._by_key = {info.key: MetricSummary(info) for info in map(MetricInfo.of, metrics)}

    def add(self, records: "Sequence[Record]", group: str | None = None) -> None:
        """Count what the metrics gave for one row, by what its sample's metadata say, and with its group."""
        self.rows += 1
        sample = records[0].sample
        if sample is not None:
            self._count_copies(sample)
        self._groups.add(0.0, group=group)
        for record in records:
            self.cost.add(record.outcome.usage)
        self.unanswerable += is_unanswerable(
            (each.outcome.metric, each.outcome.breakdown) for each in records if isinstance(each.outcome, Score)
        )
        values = self._values_of(records[0], {} if sample is None else sample.metadata)
        for key, record in by_metric(records).items():
            if key not in self._by_key:
                self._by_key[key] = MetricSummary(MetricInfo.from_record(record))
            self._by_key[key].add(record, group)
            if isinstance(record.outcome, Score):
                self._slice(record.outcome.value, weight_of(record), key, values, group)

    def _count_copies(self, sample: "Sample") -> None:
        many = tuple(turn.content for turn in sample.history), tuple(sample.retrieved_contexts)
        texts = *many, sample.user_input, sample.response, sample.reference
        if any(texts):
            row = hash((sample.id, texts))
            self.copies += row in self._seen
            if len(self._seen) < _ROWS:
                self._seen.add(row)

    def _values_of(self, record: "Record", metadata: Mapping[str, object]) -> dict[Slicing, Iterable[str]]:
        """The values that a row counts for, by what slices it; "" stands for none."""
        feedback = self.feedback.get(record.sample_id)
        values: dict[Slicing, Iterable[str]] = {}
        for facet in self.facets:
            if facet == "tags":
                values[False, facet] = dict.fromkeys(record.tags or ("",))
            else:
                said = feedback and feedback.value if facet == "feedback" else getattr(record, facet)
                # What ran is said by the metadata alone where a file or a trace was scored.
                also = metadata.get(facet) if facet == "run_name" else None
                values[False, facet] = (said or str(also or "")[:_VALUE_LENGTH],)
        for key, value in metadata.items():
            # Lists, mappings and numbers with a fraction slice nothing.
            if isinstance(value, bool | int | str) and value != "" and key != "run_name":
                values[True, key] = (str(value)[:_VALUE_LENGTH],)
        return values

    def _slice(
        self, score: float, weight: float, key: Key, by: Mapping[Slicing, Iterable[str]], group: str | None
    ) -> None:
        for slicing, values in by.items():
            if slicing not in self._slices and len(self._slices) >= _MANY:
                continue
            means = self._slices.setdefault(slicing, {}).setdefault(key, {})
            # Of metadata one more tells that there are too many.
            most = _VALUES + 1 if slicing[0] else _MANY
            for value in values:
                if value not in means and len(means) < most:
                    means[value] = GroupedMean()
                if value in means:
                    # Within one group, rows are drawn.
                    of = None if group and group.endswith(f"={value}") else group
                    means[value].add(score, weight, of)

    @property
    def grouped(self) -> bool:
        """Whether a row has a group."""
        return self._groups.grouped

    @property
    def groups(self) -> str:
        """Of how many groups the rows are, such as "20 documents"; "" where each is one of its own."""
        return self._groups.groups

    @property
    def run_name(self) -> str:
        """The app's name, if all runs have one; else ""."""
        names = {name for means in self._slices.get((False, "run_name"), {}).values() for name in means if name}
        return names.pop() if len(names) == 1 else ""

    def slicings(self) -> list[Slicing]:
        """By what rows are sliced: facets, and the first 20 keys of metadata with two to fifty values."""
        most = {slicing: max(map(len, by_key.values())) for slicing, by_key in self._slices.items()}
        facets = [slicing for slicing, n in most.items() if n > 1 and not slicing[0]]
        return facets + [slicing for slicing, n in most.items() if 1 < n <= _VALUES and slicing[0]][:_KEYS]

    def by(self, slicing: Slicing, info: MetricInfo) -> dict[str, Interval]:
        """A metric's means by the values of what slices the rows, the worst first."""
        means = self._slices.get(slicing, {}).get(info.key, {})
        estimates = {value: each for value, mean in means.items() if (each := mean.estimate(info.bounds))}
        return dict(sorted(estimates.items(), key=lambda item: (info.sign * item[1].mean, item[0])))

    def __iter__(self) -> Iterator[MetricSummary]:
        return iter(self._by_key.values())

    def named(self) -> dict[str, MetricSummary]:
        """The aggregates by the metric's name, with version and judge where several have that name."""
        infos = [each.info for each in self]
        return {full_name(each.info, infos): each for each in self}

    def period(self) -> tuple[float, float] | None:
        """When the first and the last sample were submitted; None where no time is known."""
        known = [(each.first, each.last) for each in self if each.first is not None and each.last is not None]
        return (min(first for first, _ in known), max(last for _, last in known)) if known else None


def full_name(info: MetricInfo, among: Iterable[MetricInfo]) -> str:
    """The metric's name, with version, judge and set-up where others among these have the name too."""
    if sum(other.name == info.name for other in among) < 2:
        return info.name
    return f"{info.name} ({info.apart})"


def is_unanswerable(breakdowns: Iterable[tuple[str, Mapping[str, float]]]) -> bool:
    """Whether one metric found that a row's response gives no answer, and another that no context holds one."""
    found = {(metric, *part) for metric, parts in breakdowns for part in parts.items()}
    return found >= {("response_relevancy", "noncommittal", 1.0), ("context_relevancy", "sentence", 0.0)}


def weight_of(record: "Record") -> float:
    """How many samples of the traffic a record stands for: 1 / the chance that it was chosen."""
    return 1 / record.rate if _LEAST_RATE <= record.rate <= 1 else 1.0
