"""Counters: what became of every evaluation, and what handlers saw beside it."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

from ragstone.errors import describe
from ragstone.live.lines import LACKING, OTHERS, Names, advice_on, commonest, line_of_missing, line_of_sources
from ragstone.plain import count, printable
from ragstone.sample import Sample

Fate = Literal["scored", "unscored", "dropped", "not_sampled", "over_budget", "duplicate", "spooled"]
"""What became of an evaluation: of one sample by one metric."""

FATES: tuple[Fate, ...] = get_args(Fate)

_SECONDS_BETWEEN_WARNINGS = 60.0
_MOST_UNLOGGED = 50
# Of what an app calls as it likes: how many are counted of a kind, and how much is kept of each.
_MOST, _LONGEST = 20, 100
# Samples, of which sampling may choose none.
_FEW = 10
_LONGEST_WARNING = 2_000
_log = logging.getLogger("ragstone.live")


@dataclass(frozen=True, slots=True)
class SinkStats:
    """How one sink stands.

    Attributes:
        written: Outcomes it has kept.
        waiting: Outcomes it has not, in memory and in the outbox.
        failures: Times that it raised.
        lost: Outcomes given up: more than 10,000 waited (and no outbox kept them), or the process ended.
        last_error: Its last error, without keys, or "".
        forgotten: Outcomes not kept, because their sample or user was forgotten after the sample was submitted.
    """

    written: int
    waiting: int
    failures: int
    lost: int
    last_error: str
    forgotten: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What became of every evaluation of this process: one sample by one metric.

    `accepted` is always the sum of all the others: scored + unscored + dropped + not_sampled + over_budget + duplicate
    + spooled + pending.

    Attributes:
        samples: Samples that were submitted to this process or taken over from the outbox.
        accepted: Evaluations of them, all metrics counted.
        scored: Those with a `Score`.
        unscored: Those with an `Unscored`.
        dropped: Those that a full queue left out, or that could not be kept.
        not_sampled: Those that sampling left out.
        over_budget: Those that the budget left out.
        duplicate: Those of a sample id that was there already.
        spooled: Those that lie in the outbox for later, or for another process.
        pending: Those that wait or are being judged.
        reasons: The numbers by reason, such as {"dropped": {"queue_full": 3}}.
        skipped: Runs of the app that a handler saw and that gave no sample, by reason. Printed, it also says the way
            out of the commonest failures.
        errors: Exceptions inside handlers, the outbox and threads of the monitor, by the part. None of them reached the
            app.
        in_hand: Those of the pending that a thread judges now.
        longest_queue: The most samples that ever waited at once.
        queued_bytes: The memory that the samples which wait take now, as `Queue(bytes=...)` counts it.
        sinks: The state of each sink, by name.
        advice: Advice on runs that gave no sample, by reason, from handlers.
        read_from: Where each field of samples came from and how often, as handlers say it: {"response": {"answer": 3}}.
            Beyond 20 of a field it counts under "others".
        missing: How many samples lacked a field that a metric requires.
        names: The names that were there where a field was missing, by the field and how often; the first 20. "response"
            has those of runs without an answer, which are no samples.
        likely: Of a field and such names, the one that can be meant; "" where none or several can.

    Example:
        >>> advice = {"no_question": "return the question from fields="}
        >>> print(Stats(samples=2, accepted=2, scored=1, pending=1, skipped={"no_question": 3}, advice=advice))
        2 samples, 2 evaluations: 1 scored, 1 pending
        3 runs gave no sample: 3 no_question
        3 runs had no question under a usual name. Return the question from fields=
    """

    samples: int = 0
    accepted: int = 0
    scored: int = 0
    unscored: int = 0
    dropped: int = 0
    not_sampled: int = 0
    over_budget: int = 0
    duplicate: int = 0
    spooled: int = 0
    pending: int = 0
    reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    errors: Mapping[str, int] = field(default_factory=dict[str, int])
    in_hand: int = 0
    longest_queue: int = 0
    queued_bytes: int = 0
    sinks: Mapping[str, SinkStats] = field(default_factory=dict[str, SinkStats])
    advice: Mapping[str, str] = field(default_factory=dict[str, str])
    read_from: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    missing: Mapping[str, int] = field(default_factory=dict[str, int])
    names: Mapping[str, Mapping[Names, int]] = field(default_factory=dict[str, Mapping[Names, int]])
    likely: Mapping[tuple[str, Names], str] = field(default_factory=dict[tuple[str, Names], str])

    def __str__(self) -> str:
        what = [f"{n:,} {status}" for status in (*FATES, "pending") if (n := getattr(self, status))]
        lines = [
            f"{count(self.samples, 'sample')}, {count(self.accepted, 'evaluation')}"
            + (f": {', '.join(what)}" if what else "")
        ]
        if skipped := sorted(self.skipped.items(), key=lambda item: -item[1]):
            listed = ", ".join(f"{n:,} {reason}" for reason, n in skipped)
            lines.append(f"{count(sum(self.skipped.values()), 'run')} gave no sample: {listed}")
            first = skipped[0][0]
            if first in self.advice and first not in LACKING:
                lines.append(f"{first}: {self.advice[first]}")
        lines += [self._missing(LACKING[reason], n, "run") for reason, n in skipped if reason in LACKING]
        lines += [self._missing(name, n, "sample") for name, n in self.missing.items()]
        if self.read_from:
            lines.append(line_of_sources(self.read_from))
        if self.not_sampled and self.samples < _FEW:
            lines.append(f"{self.not_sampled:,} of few evaluations were not chosen: Sampling(rate=1.0) chooses all")
        if self.errors:
            lines.append(f"errors (the app saw none): {', '.join(f'{n:,} in {at}' for at, n in self.errors.items())}")
        return "\n".join(lines)

    def _missing(self, field: str, times: int, of: Literal["run", "sample"]) -> str:
        names = commonest(self.names.get(field, {}))
        likely = self.likely.get((field, names), "")
        return line_of_missing(field, times, of, names, advice_on(field, self.advice), likely)


@dataclass(frozen=True, slots=True)
class FlushResult:
    """The result of a flush, or of closing. Truthy when nothing is left and closing lost nothing.

    Samples and records dropped by a rule (a full queue, the budget, a record that a sink kept refusing) are in
    `Stats`, not here.

    Attributes:
        remaining: Evaluations that wait or are being judged in this process, those that wait in the outbox, whoever put
            them there, unless another process works on them or this one leaves judging to others, and those that
            closing dropped.
        undelivered: Outcomes that a sink has not taken, summed over the sinks: those that wait in memory or in the
            outbox, and those that were lost because it had not when it was closed.
    """

    remaining: int
    undelivered: int

    @property
    def done(self) -> bool:
        """Whether no evaluation was left without its outcome, and no outcome without its sink."""
        return not self.remaining and not self.undelivered

    def __bool__(self) -> bool:
        return self.done


class Counters:
    """The counters of one process. Safe to use from any thread and from a signal handler.

    Args:
        required: The fields that some metric requires.
        advice: What to do about what is missing, by reason; handlers add to it.
    """

    def __init__(self, required: Collection[str], advice: Mapping[str, str]) -> None:
        self.required = required
        self.advice = advice
        # Re-entrant: a signal handler may submit while we count.
        self._lock = threading.RLock()
        self._accepted = 0
        self._samples = 0
        self._by_status: Counter[tuple[Fate, str]] = Counter()
        self._skipped: Counter[str] = Counter()
        self._sources: dict[str, Counter[str]] = {}
        self._missing: Counter[str] = Counter()
        self._names: dict[str, Counter[Names]] = {}
        self._likely: dict[tuple[str, Names], str] = {}
        self._errors: Counter[str] = Counter()
        self._cut = 0
        self._logged_at = -_SECONDS_BETWEEN_WARNINGS
        self._unlogged: Counter[str] = Counter()

    def accept(self, evaluations: int) -> None:
        """Count a sample and its evaluations."""
        with self._lock:
            self._samples += 1
            self._accepted += evaluations

    def settle(self, status: Fate, reason: str, evaluations: int = 1) -> None:
        """Count what became of some; a negative number takes them back."""
        if evaluations:
            with self._lock:
                self._by_status[status, reason] += evaluations
            if status == "dropped" and evaluations > 0:
                self.note(f"dropped: {reason}", evaluations)

    def cut_off(self, evaluations: int) -> None:
        """Count those that were accepted, and dropped because the monitor was closed."""
        with self._lock:
            self._cut += evaluations
        self.settle("dropped", "closed", evaluations)

    def skip(self, reason: str, runs: int, names: Sequence[str], likely: str) -> None:
        """Count runs that gave no sample; a negative number takes them back. What they lacked is logged."""
        with self._lock:
            self._skipped[reason] += runs
        if reason in LACKING:
            self._lack(LACKING[reason], runs, "run", names, likely)

    def count_fields(self, read_from: Mapping[str, str], names: Sequence[str], likely: Mapping[str, str]) -> None:
        """Count where a sample's fields came from, and those that are required and did not. These are logged."""
        with self._lock:
            for name, source in read_from.items():
                counts = self._sources.setdefault(name, Counter())
                where = source[:_LONGEST]
                counts[where if where in counts or len(counts) < _MOST else OTHERS] += 1
        for name in self.required:
            if name not in read_from:
                self._lack(name, 1, "sample", names, likely.get(name, ""))

    def lack(self, sample: Sample, fields: Sequence[str]) -> None:
        """Count required fields that the app's own sample lacks, unless a handler says where fields come from."""
        if not self.advice:
            there = sorted(sample.model_fields_set - set(fields))
            for name in fields:
                self._lack(name, 1, "sample", there, "")

    def _lack(self, name: str, times: int, of: Literal["run", "sample"], names: Sequence[str], likely: str) -> None:
        """Count a missing field, and log it once with the names that were there."""
        there = tuple([each[:_LONGEST] for each in names[:_MOST]])
        with self._lock:
            if of == "sample":
                self._missing[name] += times
            counts = self._names.setdefault(name, Counter())
            new = there not in counts
            if new and (times < 0 or len(counts) == _MOST):
                return
            counts[there] += times
            self._likely[name, there] = likely
        if new:
            self.warn(line_of_missing(name, times, of, there, advice_on(name, self.advice), likely))

    def warn(self, text: str) -> None:
        """Log a warning."""
        with suppress(Exception):
            # A log handler or filter may raise.
            _log.warning("%s", printable(text, _LONGEST_WARNING))

    def failed(self, part: str, error: BaseException) -> None:
        """Count an exception of our own, and log it at most once a minute."""
        with self._lock:
            self._errors[part] += 1
        self.note(f"{part}: {describe(error, most=500)}")

    def pending(self) -> int:
        """Count the evaluations that have no fate yet."""
        with self._lock:
            return self._accepted - sum(self._by_status.values())

    def remaining(self) -> int:
        """Count those that are pending, or were cut off by closing."""
        with self._lock:
            return self.pending() + self._cut

    def stats(self, sinks: Mapping[str, SinkStats], *, in_hand: int, longest_queue: int, queued_bytes: int) -> Stats:
        """All counters of one moment, with what the parts of the monitor say."""
        with self._lock:
            reasons: dict[str, dict[str, int]] = {}
            sums = dict.fromkeys(FATES, 0)
            for (status, reason), n in sorted(self._by_status.items()):
                sums[status] += n
                if n and status != "scored":
                    reasons.setdefault(status, {})[reason] = n
            return Stats(
                samples=self._samples,
                accepted=self._accepted,
                pending=self._accepted - sum(sums.values()),
                reasons=reasons,
                skipped=dict(+self._skipped),
                errors=dict(self._errors),
                in_hand=in_hand,
                longest_queue=longest_queue,
                queued_bytes=queued_bytes,
                sinks=sinks,
                advice=dict(self.advice),
                read_from={name: dict(counts) for name, counts in self._sources.items()},
                missing=dict(self._missing),
                names={name: dict(+counts) for name, counts in self._names.items()},
                likely=dict(self._likely),
                **sums,
            )

    def note(self, what: str, times: int = 1) -> None:
        """Log something, and what was not logged before it, at most once a minute."""
        with self._lock:
            known = what in self._unlogged or len(self._unlogged) < _MOST_UNLOGGED
            self._unlogged[what if known else "other"] += times
            if time.monotonic() - self._logged_at < _SECONDS_BETWEEN_WARNINGS:
                return
        self.log()

    def log(self) -> None:
        """Log what was not logged yet, whatever the time."""
        with self._lock:
            warnings, self._unlogged = self._unlogged, Counter()
            if not warnings:
                return
            self._logged_at = time.monotonic()
        text = "; ".join(f"{what} ({n})" for what, n in warnings.most_common(5))
        self.warn(f"the app is not affected; {text}")
