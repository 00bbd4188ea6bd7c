"""Alarms: alerts count stored outcomes and raise an alarm when a mean is too low. All state is in the database."""

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from operator import itemgetter
from typing import Annotated, Any

from pydantic import BaseModel, Field

from ragstone.errors import RagstoneError
from ragstone.plain import printable
from ragstone.results.database import Database, Transaction
from ragstone.results.record import Watched

TABLE = (
    "CREATE TABLE tallies (metric TEXT NOT NULL, watched TEXT NOT NULL, tally TEXT NOT NULL, "
    "raised DOUBLE PRECISION, announced BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (metric, watched))"
)
# Outcomes that are counted in one transaction.
_MOST_AT_ONCE = 1_000
_MOST_LOWEST = 10
# Seconds: scores of one conversation that are further apart count again.
_APART = 86_400.0
# Whoever writes this row has it until its transaction ends: one process counts at a time.
ALONE = (
    "INSERT INTO tallies (metric, watched, tally) VALUES ('', '', '') "
    "ON CONFLICT (metric, watched) DO UPDATE SET tally = excluded.tally"
)
_NEW = (
    "SELECT sample_id, metric, version, value, scored_at, watched, coalesce(of_group, thread_id) FROM outcomes "
    "WHERE counted IS NULL AND watched IS NOT NULL AND status = 'scored' "
    "ORDER BY scored_at, sample_id, metric, version LIMIT :most"
)
_NOT_COUNTED = "SELECT min(scored_at) FROM outcomes WHERE counted IS NULL AND watched IS NOT NULL AND status = 'scored'"
_OF_GROUP = (
    "SELECT 1 FROM outcomes WHERE coalesce(of_group, thread_id) = :of_group AND counted = 1 AND metric = :metric "
    "AND watched = :watched AND scored_at > :since LIMIT 1"
)
_COUNTED = (
    "UPDATE outcomes SET counted = :counted WHERE sample_id = :sample_id AND metric = :metric AND version = :version"
)
_TALLY = "SELECT tally, raised FROM tallies WHERE metric = :metric AND watched = :watched"
_WRITE = (
    "INSERT INTO tallies (metric, watched, tally, raised) VALUES (:metric, :watched, :tally, :raised) "
    "ON CONFLICT (metric, watched) DO UPDATE SET tally = excluded.tally, raised = excluded.raised"
)
_TALLIES = "SELECT metric, watched, tally, raised FROM tallies WHERE metric <> '' ORDER BY metric, watched"
_TO_ANNOUNCE = "SELECT metric, watched, tally, raised FROM tallies WHERE raised IS NOT NULL AND announced = 0"
_LOWEST = (
    "SELECT sample_id, value, submitted_at FROM outcomes WHERE status = 'scored' AND metric = :metric "
    "AND watched = :watched AND counted = 1 AND scored_at BETWEEN :since AND :until "
    "ORDER BY value, scored_at, sample_id LIMIT :most"
)


class LowScore(BaseModel, frozen=True):
    """One of the lowest scores before an alarm.

    Attributes:
        sample_id: The sample's id.
        value: The score.
        submitted_at: When the app submitted the sample, in seconds since 1970 (UTC).
    """

    sample_id: str
    value: float
    submitted_at: float


def _minute(at: float) -> str:
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M} UTC"


class Alarm(BaseModel, frozen=True):
    """An alert's news: the mean has fallen below what its user accepts.

    Attributes:
        metric: The metric's name.
        below: The lowest mean that the alert accepts.
        at: When it was raised, in seconds since 1970 (UTC).
        samples: How many scores the alert had counted: one of a conversation.
        mean: Their mean.
        recent_samples: How many of them came since the drop, as well as it can be told: since then, their sum lacks
            most to that of as many scores at the alert's `below`.
        recent_mean: The mean of these.
        lowest: The ten lowest of these, the lowest first.
        since: When the first score since the drop was made, in seconds since 1970 (UTC); None where that is not known.

    Example:
        >>> low = LowScore(sample_id="q7", value=0.0, submitted_at=1.5)
        >>> means = {"samples": 90, "mean": 0.86, "recent_samples": 9, "recent_mean": 0.61}
        >>> print(Alarm(metric="a", below=0.8, at=2.0, lowest=(low,), **means))
        Alarm of 1970-01-01 00:00 UTC: a below 0.8: mean 0.610 of the last 9 samples, 0.860 of all 90; lowest: q7 (0.00)
    """

    metric: str
    below: float
    # The end of the year 9999: the last year of a calendar.
    at: Annotated[float, Field(ge=0, le=253_402_300_799)]
    samples: int
    mean: float
    recent_samples: int
    recent_mean: float
    lowest: tuple[LowScore, ...]
    since: float | None = None

    def conclusion(self) -> str:
        """The metric, its mean since the drop, the lowest that was wanted, and since when."""
        since = "" if self.since is None else f", since {_minute(self.since)}"
        return printable(f"{self.metric} {self.recent_mean:.3f}, below {self.below:g}{since}")

    def __str__(self) -> str:
        lowest = ", ".join(f"{low.sample_id} ({low.value:.2f})" for low in self.lowest) or "none stored"
        text = (
            f"{self.metric} below {self.below}: mean {self.recent_mean:.3f} of the last {self.recent_samples:,} "
            f"samples, {self.mean:.3f} of all {self.samples:,}; lowest: {lowest}"
        )
        return printable(f"Alarm of {_minute(self.at)}: {text}", 3_000)


@dataclass(slots=True)
class Tally:
    """The count of an alert.

    Attributes:
        samples: How many scores were counted.
        total: Their sum.
        stakes: What the bets hold.
        since: When the first score since the drop was made, in seconds since 1970 (UTC), by the clock of then.
        until: When the last one was, likewise.
        recent: How many scores there are since the drop.
        recent_total: Their sum.
    """

    samples: int = 0
    total: float = 0.0
    stakes: list[float] = field(default_factory=list[float])
    since: float = 0.0
    until: float = 0.0
    recent: int = 0
    recent_total: float = 0.0

    def count(self, scores: Iterable[tuple[float, float]], watched: Watched) -> bool:
        """Count scores, each with its time, up to the one that raises the alarm; return whether one does.

        Example:
            >>> tally = Tally()
            >>> tally.count([(0.0, time) for time in range(30)], Watched(below=0.8, low=0.0, high=1.0))
            True
            >>> tally.samples
            4
        """
        import numpy as np

        from ragstone.live.betting import ALPHA, bet, bets_against, evidence

        span = watched.high - watched.low
        mean = (watched.below - watched.low) / span
        bets = bets_against(mean)
        stakes = np.asarray(self.stakes) if len(self.stakes) == len(bets) else np.zeros(len(bets))
        raised = False
        for value, at in scores:
            x = min(max((value - watched.low) / span, 0.0), 1.0)
            stakes = bet(stakes, bets, mean, self.samples, np.asarray(x))
            self.samples += 1
            self.total += value
            self._follow(value, at, watched.below)
            raised = bool(evidence(stakes, self.samples) >= 1 / ALPHA)
            if raised:
                break
        self.stakes = stakes.tolist()
        return raised

    def _follow(self, value: float, at: float, below: float) -> None:
        if self.recent_total >= below * self.recent:
            # Nothing lacks: a drop begins here, if one does.
            self.since, self.until, self.recent, self.recent_total = at, at, 0, 0.0
        # A clock may go back.
        self.since, self.until, self.recent = min(self.since, at), max(self.until, at), self.recent + 1
        self.recent_total += value


def raise_alarms(database: Database) -> list[Alarm]:
    """Count the outcomes that alerts watch and that are not counted yet; return the alarms to announce.

    Each alarm is returned once, to one of all processes.
    """
    _count_outcomes(database)
    with database.transaction() as connection:
        connection.execute(ALONE)
        alarms = [_alarm(connection, *row) for row in connection.execute(_TO_ANNOUNCE).fetchall()]
        connection.execute("UPDATE tallies SET announced = 1 WHERE raised IS NOT NULL")
        return alarms


def count_new(database: Database) -> str:
    """Count what is new; where it cannot be, return since when nothing was counted, and why, in a sentence."""
    try:
        _count_outcomes(database)
    except RagstoneError as error:
        with database.reading() as connection:
            ((since,),) = connection.execute(_NOT_COUNTED).fetchall()
        return "" if since is None else f"Not counted since {_minute(since)}: {printable(error, 1_000)}"
    return ""


def alerts_in(database: Database, *, reset: bool = False) -> list[tuple[str, str, float, int, float, Alarm | None]]:
    """Return each alert's metric, its version, judge and set-up, lowest mean, number and sum of scores, and its alarm.

    Args:
        database: The database. What was counted is in; `count_new` counts the rest.
        reset: Whether those that raised an alarm start anew afterwards.
    """
    found: list[tuple[str, str, float, int, float, Alarm | None]] = []
    with database.transaction() if reset else database.reading() as connection:
        if reset:
            connection.execute(ALONE)
        for metric, watched, text, raised in connection.execute(_TALLIES).fetchall():
            tally = Tally(**json.loads(text))
            alarm = None if raised is None else _alarm(connection, metric, watched, text, raised)
            of = Watched(*json.loads(watched))
            found.append((metric, of.by, of.below, tally.samples, tally.total, alarm))
        if reset:
            connection.execute("UPDATE tallies SET tally = '{}', raised = NULL, announced = 0 WHERE raised IS NOT NULL")
    return found


def _count_outcomes(database: Database) -> None:
    """Count what is new. An alert that has raised an alarm counts nothing.

    Of a group (a conversation, where none is named) it counts the first score, and no other for a day: bets stay fair
    only where the next score is a new draw, which the next turn of a bad conversation is not.
    """
    counted = _MOST_AT_ONCE
    while counted == _MOST_AT_ONCE:
        with database.transaction() as connection:
            counted = _count_batch(connection)


def _count_batch(connection: Transaction) -> int:
    connection.execute(ALONE)
    rows = [tuple(row) for row in connection.execute(_NEW, {"most": _MOST_AT_ONCE}).fetchall()]
    alerts: dict[tuple[str, str], list[tuple[float, float]]] = {}
    done: list[dict[str, Any]] = []
    begun = set[tuple[object, ...]]()
    for sample_id, metric, version, value, at, watched, group in rows:
        names = {"metric": metric, "watched": watched, "of_group": group, "since": at - _APART}
        counts = group is None or not (
            (metric, watched, group) in begun or connection.execute(_OF_GROUP, names).fetchall()
        )
        done.append({"sample_id": sample_id, "metric": metric, "version": version, "counted": int(counts)})
        if counts:
            begun.add((metric, watched, group))
            alerts.setdefault((metric, watched), []).append((value, at))
    for (metric, watched), scores in alerts.items():
        _count_scores(connection, metric, watched, scores)
    if rows:
        connection.executemany(_COUNTED, sorted(done, key=itemgetter("sample_id", "metric", "version")))
    return len(rows)


def _count_scores(connection: Transaction, metric: str, text: str, scores: Sequence[tuple[float, float]]) -> None:
    names = {"metric": metric, "watched": text}
    ((stored, raised),) = connection.execute(_TALLY, names).fetchall() or [("{}", None)]
    if raised is not None:
        return
    tally = Tally(**json.loads(stored))
    with suppress(ValueError, TypeError):
        # A hand has changed what is watched.
        raised = time.time() if tally.count(scores, Watched(*json.loads(text))) else None
        connection.execute(_WRITE, {**names, "tally": json.dumps(asdict(tally)), "raised": raised})


def _alarm(connection: Transaction, metric: str, watched: str, text: str, raised: float) -> Alarm:
    """Return an alarm that was raised, with the lowest scores that are still there."""
    tally = Tally(**json.loads(text))
    names = {"metric": metric, "watched": watched, "since": tally.since, "until": tally.until}
    most = min(_MOST_LOWEST, tally.recent)
    rows = connection.execute(_LOWEST, {**names, "most": most}).fetchall()
    return Alarm(
        metric=metric,
        below=json.loads(watched)[0],
        at=raised,
        samples=tally.samples,
        mean=tally.total / tally.samples,
        recent_samples=tally.recent,
        recent_mean=tally.recent_total / tally.recent,
        since=tally.since,
        lowest=tuple([LowScore(sample_id=name, value=value, submitted_at=at) for name, value, at in rows]),
    )
