"""From a database's rows to what a page shows, in one pass and in memory that does not grow with the rows."""

import heapq
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from ragstone.reporting.live.costly import bounds_of
from ragstone.reporting.live.facts import Bin, Bucket, Cost, Findings, Group, Low, Queue, Reason
from ragstone.reporting.live.figures import DAY, Mean, axis, bin_edges, bin_of, bucket_start, bucket_width
from ragstone.reporting.live.lowest import low_of
from ragstone.reporting.live.markup import cut
from ragstone.reporting.live.read import Database, open_database
from ragstone.reporting.live.values import count, counts_of, mapping_of, number, stored, time_of

_LOWEST = 10
_DETAIL = 500
_LEAST_RATE = 1e-9  # nobody samples less; 1 / it is still a weight
_ENOUGH = 2  # different rates, to know that they differ
_EVER = -1e300

# What no sink writes and a hand might have put there, such as infinity or a text for a number, counts as no value.
_RANGES = """
    SELECT metric, version, judge,
        MIN(CASE WHEN value BETWEEN -1e100 AND 1e100 THEN value END),
        MAX(CASE WHEN value BETWEEN -1e100 AND 1e100 THEN value END),
        MIN(CASE WHEN submitted_at BETWEEN 0 AND 253402300799 THEN submitted_at END),
        MAX(CASE WHEN submitted_at BETWEEN 0 AND 253402300799 THEN submitted_at END),
        MIN(CASE WHEN scored_at BETWEEN 0 AND 253402300799 THEN scored_at END),
        MAX(CASE WHEN scored_at BETWEEN 0 AND 253402300799 THEN scored_at END)
    FROM outcomes WHERE submitted_at >= :since GROUP BY metric, version, judge"""
_OUTCOMES = """
    SELECT metric, version, judge, sample_id, status, value, passed, submitted_at, scored_at, rate, llm_calls,
        embed_calls, input_tokens, output_tokens,
        CASE WHEN status = 'scored' THEN '' ELSE reason END,
        CASE WHEN status = 'scored' THEN '' ELSE substr(detail, 1, 501) END
    FROM outcomes WHERE submitted_at >= :since"""
_ONE = """
    SELECT reason, breakdown, verdicts, sample FROM outcomes
    WHERE sample_id = :sample_id AND metric = :metric AND version = :version"""
_HEALTH = "SELECT process, at, started_at, counts, reasons, longest_queue FROM health WHERE at >= :since"


class _Outcome(NamedTuple):
    metric: str
    version: str
    judge: str
    sample_id: str
    status: str
    value: object
    passed: object
    submitted_at: object
    scored_at: object
    rate: object
    llm_calls: object
    embed_calls: object
    input_tokens: object
    output_tokens: object
    reason: str
    detail: str


class _Range(NamedTuple):
    metric: str
    version: str
    judge: str
    least: float | None
    greatest: float | None
    first: float | None
    last: float | None
    first_scored: float | None
    last_scored: float | None


def gather(database: str | os.PathLike[str], since: float | None = None) -> Findings:
    """Read a database.

    Args:
        database: The path of a SQLite file, or an SQLAlchemy URL.
        since: Leave out samples submitted before, in seconds since 1970 (UTC).

    Raises:
        DatabaseError: It cannot be read.
        ImportError: A URL needs a package that is not installed.
    """
    parameters = {"since": _EVER if since is None else since}
    with open_database(database) as db:
        ranges = [_Range(*row) for row in db.rows(_RANGES, parameters)]
        first, last = _ends((r.first, r.last) for r in ranges)
        scoring = _ends((r.first_scored, r.last_scored) for r in ranges)
        width = bucket_width(first or 0, last or 0)
        cost_width = max(DAY, bucket_width(*(end or 0 for end in scoring)))
        groups = {r[:3]: _Gathering(r, width) for r in ranges}
        costs: dict[int, Cost] = {}
        for row in db.rows(_OUTCOMES, parameters):
            outcome = _Outcome(*row)
            groups[row[:3]].add(outcome)
            _spend(costs, outcome, cost_width)
        return Findings(
            source=db.name,
            since=since,
            first=first,
            last=last,
            width=width,
            groups=tuple(g.group(db) for g in sorted(groups.values(), key=_order)),
            costs=dict(sorted(costs.items())),
            cost_width=cost_width,
            queues=_queues(db, parameters),
            outcomes=sum(g.scored.n + g.unscored for g in groups.values()),
        )


class _Gathering:
    """One group while its rows come."""

    def __init__(self, found: _Range, width: int) -> None:
        self.found = found
        self.scored = Mean()
        self.unscored = 0
        self._width = width
        self._axis = axis(found.least or 0.0, found.greatest or 0.0)
        self._passed = Mean()
        self._counts: dict[int, int] = {}
        self._weights: dict[int, float] = {}
        self._buckets: dict[int, Mean] = {}
        self._rates: set[float] = set()
        self._reasons: Counter[str] = Counter()
        self._latest: dict[str, tuple[float, str, str]] = {}
        self._lowest: list[tuple[float, float, str, bool | None]] = []  # a heap, the highest score first

    def add(self, row: _Outcome) -> None:
        """Count one row."""
        value, at = number(row.value), time_of(row.submitted_at)
        if row.status != "scored" or value is None:
            self._add_unscored(row, -1.0 if at is None else at)
            return
        rate = number(row.rate)
        rate = rate if rate is not None and _LEAST_RATE <= rate <= 1 else 1.0
        if len(self._rates) < _ENOUGH:
            self._rates.add(rate)
        self.scored.add(value, 1 / rate)
        place = bin_of(value, *self._axis)
        self._counts[place] = self._counts.get(place, 0) + 1
        self._weights[place] = self._weights.get(place, 0.0) + 1 / rate
        passed = None if row.passed is None else bool(row.passed)
        if passed is not None:
            self._passed.add(float(passed), 1 / rate)
        if at is not None:
            self._buckets.setdefault(bucket_start(at, self._width), Mean()).add(value, 1 / rate)
        entry = (-value, -1.0 if at is None else at, row.sample_id, passed)  # of equal scores the latest are kept
        if len(self._lowest) < _LOWEST:
            heapq.heappush(self._lowest, entry)
        else:
            heapq.heappushpop(self._lowest, entry)

    def _add_unscored(self, row: _Outcome, at: float) -> None:
        self.unscored += 1
        reason = row.reason if row.status != "scored" else "unreadable"
        self._reasons[reason] += 1
        if reason not in self._latest or at > self._latest[reason][0]:
            self._latest[reason] = (at, row.sample_id, cut(row.detail, _DETAIL))

    def group(self, database: Database) -> Group:
        """Return what was counted; the lowest scores' evidence is read only now."""
        found, bounds = self.found, bounds_of(self.found.metric)
        estimate, passed = self.scored.estimate(bounds), self._passed.estimate()
        series = ((start, mean.estimate(bounds)) for start, mean in sorted(self._buckets.items()))
        reasons = ((reason, n, *self._latest[reason][1:]) for reason, n in self._reasons.most_common())
        return Group(
            metric=found.metric,
            version=found.version,
            judge=found.judge,
            scored=self.scored.n,
            unscored=self.unscored,
            estimate=estimate,
            weighted=len(self._rates) > 1,
            passed=None if passed is None else passed.mean,
            axis=self._axis,
            distribution=self._distribution(),
            series=tuple(Bucket(start, mean) for start, mean in series if mean is not None),
            reasons=tuple(Reason(*reason) for reason in reasons),
            lowest=tuple(self._low(database, bounds)),
            first=found.first,
            last=found.last,
        )

    def _distribution(self) -> tuple[Bin, ...]:
        edges, total = bin_edges(*self._axis), sum(self._weights.values())
        return tuple(
            Bin(low, high, self._counts.get(i, 0), self._weights.get(i, 0.0) / total if total else 0.0)
            for i, (low, high) in enumerate(pairwise(edges))
        )

    def _low(self, database: Database, bounds: tuple[float, float] | None) -> Iterator[Low]:
        for negative, at, sample_id, passed in sorted(self._lowest, reverse=True):
            if bounds is not None and -negative >= bounds[1]:
                continue  # nothing cost a full score
            key = {"sample_id": sample_id, "metric": self.found.metric, "version": self.found.version}
            row = next(iter(database.rows(_ONE, key)), None) or ("", None, None, None)
            score, sample = stored(self.found.metric, self.found.version, -negative, passed, row)
            yield low_of(score, sample_id=sample_id, at=None if at < 0 else at, sample=sample)


def _order(group: _Gathering) -> tuple[str, float, str, str]:
    """By metric, newest first within one."""
    return group.found.metric, -(group.found.last or 0.0), group.found.version, group.found.judge


def _ends(ranges: Iterable[tuple[float | None, float | None]]) -> tuple[float | None, float | None]:
    known = [(first, last) for first, last in ranges if first is not None and last is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else (None, None)


def _spend(costs: dict[int, Cost], row: _Outcome, width: int) -> None:
    at = time_of(row.scored_at)
    if at is None:
        return
    cost = costs.setdefault(bucket_start(at, width), Cost())
    tokens = row.input_tokens, row.output_tokens
    cost.outcomes += 1
    cost.llm_calls += count(row.llm_calls)
    cost.embed_calls += count(row.embed_calls)
    cost.input_tokens += count(tokens[0])
    cost.output_tokens += count(tokens[1])
    cost.untold += None in tokens


def _queues(database: Database, parameters: Mapping[str, float]) -> tuple[Queue, ...]:
    found = [
        Queue(
            process=str(process),
            at=time_of(at) or 0.0,
            started_at=time_of(started_at) or 0.0,
            counts=counts_of(counts),
            reasons={kind: counts_of(by_reason) for kind, by_reason in mapping_of(reasons).items()},
            longest=count(longest),
        )
        for process, at, started_at, counts, reasons, longest in database.rows(_HEALTH, parameters)
    ]
    return tuple(sorted(found, key=lambda queue: (-queue.at, queue.process)))
