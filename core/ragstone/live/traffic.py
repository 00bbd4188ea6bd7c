"""Live traffic beside its scores: what was judged, what waits, what was not scored and why, alarms."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragstone.live.alarms import Alarm, alerts_in, count_new
from ragstone.live.health import read_health
from ragstone.live.lines import line_of_sources
from ragstone.live.outbox import Contents
from ragstone.live.outcomes import outcomes_by_reason
from ragstone.plain import count, printable
from ragstone.report.tables import Tabular, moment
from ragstone.results.database import Database

_ENDS = ("scored", "unscored", "dropped", "not_sampled", "over_budget", "duplicate", "spooled", "pending")
# As outcomes, or as what waits.
_COUNTED = ("scored", "unscored", "spooled")


@dataclass(frozen=True, repr=False)
class Traffic(Tabular):
    """The state of live scoring, by a database and perhaps an outbox.

    Attributes:
        name: The database.
        scored: The outcomes that are scores.
        unscored: The others, by reason.
        not_judged: Evaluations that have no outcome, by their status and its reason, counted since each process
            started.
        waiting: Samples in the outbox that are still to be judged; without an outbox the evaluations that processes
            reported as pending.
        oldest: When the oldest sample in the outbox was submitted, in seconds since 1970 (UTC).
        undelivered: Outcomes and feedback in the outbox, by the sink that they wait for.
        unaccounted: Evaluations that a process accepted and did not report on before it ended.
        processes: How many processes reported.
        seen: When the last one did, likewise.
        longest_queue: The most samples that ever waited at once in one of them.
        alarms: The alarms that stand.
        skipped: Runs of the app that gave no sample, by reason, counted likewise.
        missing: Samples that lacked a field which a metric requires, by the field.
        names: The names that were there where a field was missing, by the field and how often.
        read_from: Where each field of samples came from, and how often.
        not_counted: Since when alerts have not counted, and why, in a sentence; "" where they have counted all.
    """

    name: str
    scored: int
    unscored: Mapping[str, int]
    not_judged: Mapping[str, Mapping[str, int]]
    waiting: int
    oldest: float | None
    undelivered: Mapping[str, int]
    unaccounted: int
    processes: int
    seen: float | None
    longest_queue: int
    alarms: Sequence[Alarm]
    not_counted: str
    skipped: Mapping[str, int]
    missing: Mapping[str, int]
    names: Mapping[str, Mapping[str, int]]
    read_from: Mapping[str, Mapping[str, int]]

    def table(self) -> tuple[str, Sequence[str], list[tuple[str, ...]]]:
        """Return the title, head and rows of a table of numbers."""
        counts = {"scored": self.scored, "waiting": self.waiting}
        counts |= {f"unscored: {reason}": n for reason, n in self.unscored.items()}
        counts |= {f"undelivered: {sink}": n for sink, n in self.undelivered.items()}
        for status, reasons in self.not_judged.items():
            counts |= {f"{status.replace('_', ' ')}: {reason}": n for reason, n in reasons.items()}
        counts |= {f"runs without a sample: {reason}": n for reason, n in self.skipped.items()}
        counts |= {f"samples without: {name}": n for name, n in self.missing.items()}
        return f"Live traffic: {self.name}", ("what", "n"), [(name, f"{n:,}") for name, n in counts.items()]

    def remarks(self) -> Iterator[str]:
        """Yield the alarms, and what else there is to say."""
        yield from map(str, self.alarms)
        if self.not_counted:
            yield self.not_counted
        if self.oldest is not None:
            yield f"The oldest sample waits since {moment(self.oldest)} UTC."
        if self.seen is not None:
            processes = "1 process" if self.processes == 1 else f"{self.processes:,} processes"
            yield (
                f"{processes} reported, the last at {moment(self.seen)} UTC; "
                f"at most {count(self.longest_queue, 'sample')} waited at once."
            )
        for name, counts in self.names.items():
            there = max(counts, key=lambda names: counts[names])
            if there:
                had = f"{counts[there]:,} without {name} had: {printable(there, 200)}"
                yield f'{had}. If one holds it: fields={{"{name}": ...}} of the handler, with its name for ...'
        if self.read_from:
            yield f"Where fields came from: {line_of_sources(self.read_from)}."
        if self.unaccounted:
            yield f"Not accounted for: {count(self.unaccounted, 'evaluation')}. A process ended before it reported all."

    def conclusion(self) -> str:
        """A line for each alarm that stands; "" where none does."""
        return "\n".join(each.conclusion() for each in self.alarms)

    def data(self) -> dict[str, object]:
        """Write it as JSON for a page: the alarms apart, in a box of their own."""
        alarms = list(map(str, self.alarms))
        remarks = [each for each in self.remarks() if each not in alarms]
        return {**super().data(), "alarms": alarms, "remarks": remarks}


def read_traffic(name: str, database: Database, outbox: Contents | None = None) -> Traffic:
    """Read how live scoring stands. What alerts have not counted yet is counted before.

    Raises:
        SinkError: The database cannot be read.
    """
    not_counted = count_new(database)
    alarms = [alarm for *_, alarm in alerts_in(database) if alarm is not None]
    with database.reading() as connection:
        outcomes, processes = outcomes_by_reason(connection), read_health(connection)
    counts = Counter[str]()
    skipped = Counter[str]()
    missing = Counter[str]()
    for each in processes:
        counts.update(each.counts)
        skipped.update(each.skipped)
        missing.update(each.missing)
    reasons = _sums([each.reasons for each in processes])
    return Traffic(
        name=name,
        scored=outcomes.pop("", 0),
        unscored=outcomes,
        not_judged={end: reasons[end] for end in _ENDS if end in reasons and end not in _COUNTED},
        waiting=counts["pending"] + counts["spooled"] if outbox is None else outbox.samples,
        oldest=None if outbox is None else outbox.oldest,
        undelivered={} if outbox is None else outbox.undelivered,
        unaccounted=max(0, counts["accepted"] - sum(counts[end] for end in _ENDS)),
        processes=len(processes),
        seen=max((each.at for each in processes), default=None),
        longest_queue=max((each.longest_queue for each in processes), default=0),
        alarms=alarms,
        not_counted=not_counted,
        skipped=skipped,
        missing=missing,
        names=_sums([each.names for each in processes]),
        read_from=_sums([each.read_from for each in processes]),
    )


def _sums(every: Sequence[Mapping[str, Mapping[str, int]]]) -> dict[str, Counter[str]]:
    """The counts of all processes, by two names."""
    sums: dict[str, Counter[str]] = {}
    for each in every:
        for name, counts in each.items():
            sums.setdefault(name, Counter()).update(counts)
    return sums
