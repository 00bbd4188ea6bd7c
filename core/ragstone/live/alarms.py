"""Alarms: alerts count stored outcomes and raise an alarm when a mean is too low. All state is in the database."""

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Annotated, Any

from pydantic import BaseModel, Field

from ragstone.plain import printable
from ragstone.results.connection import Database, Transaction
from ragstone.results.record import Watched

TABLES = (
    "CREATE TABLE tallies (name TEXT NOT NULL, slice TEXT NOT NULL, number BIGINT NOT NULL, samples BIGINT NOT NULL, "
    "total DOUBLE PRECISION NOT NULL, stakes TEXT NOT NULL, PRIMARY KEY (name, slice))",
    "CREATE TABLE alarms (name TEXT NOT NULL, slice TEXT NOT NULL, announced BIGINT NOT NULL, alarm TEXT NOT NULL, "
    "PRIMARY KEY (name, slice))",
)
_MOST_AT_ONCE = 1_000  # outcomes that are counted in one transaction

MOST_SLICES = 1_000
OTHER = "(other values)"
"""The slice of all values beyond the first 1,000: a field of the app's may have any number."""
_MOST_LOWEST = 10
# Whoever writes this row has it until its transaction ends: one process counts at a time.
ALONE = (
    "INSERT INTO tallies (name, slice, number, samples, total, stakes) VALUES ('', '', 0, 0, 0, '') "
    "ON CONFLICT (name, slice) DO UPDATE SET number = excluded.number"
)
_NEW = (
    "SELECT sample_id, metric, version, value, scored_at, alerts FROM outcomes WHERE counted IS NULL "
    "AND alerts IS NOT NULL AND status = 'scored' ORDER BY scored_at, sample_id, metric, version LIMIT :most"
)
_TALLIES = (
    "SELECT tallies.name, tallies.slice, samples, total, alarm FROM tallies LEFT JOIN alarms "
    "ON alarms.name = tallies.name AND alarms.slice = tallies.slice WHERE tallies.name <> '' ORDER BY 1, number"
)
_LOWEST = (
    "SELECT sample_id, value, submitted_at, alerts FROM outcomes WHERE alerts IS NOT NULL AND status = 'scored' "
    "AND metric = :metric AND scored_at BETWEEN :since AND :until ORDER BY value, scored_at, sample_id"
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


class Alarm(BaseModel, frozen=True):
    """An alert's news: the mean has fallen below what its user accepts.

    Attributes:
        alert: The alert's name, such as "faithfulness below 0.8 by run_name".
        slice: The field's value, for an alert with `by`; "" for samples without one, and for an alert without `by`.
        at: When it was raised, in seconds since 1970 (UTC).
        samples: How many scores the alert had counted.
        mean: Their mean.
        recent_samples: How many of them came since the drop, as well as it can be told: since then, their sum lacks
            most to that of as many scores at the alert's `below`.
        recent_mean: The mean of these.
        lowest: The ten lowest of these, the lowest first.

    Example:
        >>> low = LowScore(sample_id="q7", value=0.0, submitted_at=1.5)
        >>> means = {"samples": 90, "mean": 0.86, "recent_samples": 9, "recent_mean": 0.61}
        >>> print(Alarm(alert="a below 0.8", at=2.0, lowest=(low,), **means))
        Alarm of 1970-01-01 00:00 UTC: a below 0.8: mean 0.610 of the last 9 samples, 0.860 of all 90; lowest: q7 (0.00)
    """

    alert: str
    slice: str = ""
    at: Annotated[float, Field(ge=0, le=253_402_300_799)]  # the end of the year 9999: the last year of a calendar
    samples: int
    mean: float
    recent_samples: int
    recent_mean: float
    lowest: tuple[LowScore, ...]

    def __str__(self) -> str:
        of_slice = f" ({self.slice})" if self.slice else ""
        lowest = ", ".join(f"{low.sample_id} ({low.value:.2f})" for low in self.lowest) or "none stored"
        text = (
            f"{self.alert}{of_slice}: mean {self.recent_mean:.3f} of the last {self.recent_samples:,} samples, "
            f"{self.mean:.3f} of all {self.samples:,}; lowest: {lowest}"
        )
        at = datetime.fromtimestamp(self.at, timezone.utc)
        return printable(f"Alarm of {at:%Y-%m-%d %H:%M} UTC: {text}", 3_000)


@dataclass(slots=True)
class Tally:
    """What an alert has counted in one slice.

    Attributes:
        number: Which of the alert's slices it is, in the order of their first outcomes, from 1.
        samples: How many scores were counted.
        total: Their sum.
        stakes: What the bets hold.
        since: When the first score since the drop was made, in seconds since 1970 (UTC).
        until: When the last one was, likewise.
        recent: How many scores there are since the drop.
        recent_total: Their sum.
    """

    number: int
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
            >>> tally = Tally(number=1)
            >>> tally.count([(0.0, time) for time in range(30)], Watched(below=0.8, low=0.0, high=1.0, slices=()))
            True
            >>> tally.samples
            4
        """
        import numpy as np

        from ragstone.live.betting import ALPHA, bet, bets_against, evidence, share  # loads numpy

        span = watched.high - watched.low
        mean = (watched.below - watched.low) / span
        bets = bets_against(mean)
        limit = 1 / (ALPHA * share(self.number) if watched.slices else ALPHA)
        stakes = np.asarray(self.stakes) if len(self.stakes) == len(bets) else np.zeros(len(bets))
        raised = False
        for value, at in scores:
            x = min(max((value - watched.low) / span, 0.0), 1.0)
            stakes = bet(stakes, bets, mean, self.samples, np.asarray(x))
            self.samples += 1
            self.total += value
            self._follow(value, at, watched.below)
            raised = bool(evidence(stakes, self.samples) >= limit)
            if raised:
                break
        self.stakes = stakes.tolist()
        return raised

    def _follow(self, value: float, at: float, below: float) -> None:
        if self.recent_total >= below * self.recent:  # nothing lacks: a drop begins here, if one does
            self.since, self.recent, self.recent_total = at, 0, 0.0
        self.until, self.recent = at, self.recent + 1
        self.recent_total += value


def raise_alarms(database: Database) -> list[Alarm]:
    """Count the outcomes that alerts watch and that are not counted yet; return the alarms to announce.

    Each alarm is returned once, to one of all processes.
    """
    _count(database)
    with database.transaction() as connection:
        connection.execute(ALONE)
        query = "SELECT alarm FROM alarms WHERE announced = 0"
        alarms = [_alarm(connection, text) for (text,) in connection.execute(query).fetchall()]
        connection.execute("UPDATE alarms SET announced = 1 WHERE announced = 0")
        return alarms


def alerts_in(database: Database, *, reset: bool = False) -> list[tuple[str, str, int, float, Alarm | None]]:
    """Return the alerts' names and slices, with the number of scores, their sum, and the alarm if one was raised.

    Args:
        database: The database. What is not counted yet is counted before.
        reset: Whether those that raised an alarm start anew afterwards.
    """
    _count(database)
    with database.transaction() as connection:
        connection.execute(ALONE)
        rows = [tuple(row) for row in connection.execute(_TALLIES).fetchall()]
        found = [(*row[:4], None if row[4] is None else _alarm(connection, row[4])) for row in rows]
        if reset:
            connection.execute(
                "UPDATE tallies SET samples = 0, total = 0, stakes = '{}' WHERE EXISTS "
                "(SELECT 1 FROM alarms WHERE alarms.name = tallies.name AND alarms.slice = tallies.slice)"
            )
            connection.execute("DELETE FROM alarms")
        return found


def _count(database: Database) -> None:
    """Count what is new, and store the alarms. An alert that has raised one in a slice counts nothing there."""
    counted = _MOST_AT_ONCE
    while counted == _MOST_AT_ONCE:
        with database.transaction() as connection:
            counted = _count_some(connection)


def _count_some(connection: Transaction) -> int:
    connection.execute(ALONE)
    rows = [tuple(row) for row in connection.execute(_NEW, {"most": _MOST_AT_ONCE}).fetchall()]
    slices: dict[tuple[str, str, str], tuple[Watched, list[tuple[float, float]]]] = {}
    for _, metric, _, value, at, alerts in rows:
        for name, watched in _watched(alerts).items():
            for part in watched.slices or ("",):
                slices.setdefault((name, metric, part), (watched, []))[1].append((value, at))
    for (name, metric, part), (watched, scores) in slices.items():
        _count_slice(connection, (name, metric, part), watched, scores)
    if rows:
        names = "sample_id", "metric", "version"
        done: list[dict[str, Any]] = [dict(zip(names, row[:3], strict=True)) for row in sorted(rows)]
        connection.executemany(
            "UPDATE outcomes SET counted = 1 WHERE sample_id = :sample_id AND metric = :metric AND version = :version",
            done,
        )
    return len(rows)


def _watched(alerts: str) -> dict[str, Watched]:
    with suppress(ValueError, TypeError, AttributeError):  # a hand has changed it
        return {name: Watched(*values) for name, values in json.loads(alerts).items()}
    return {}


def _count_slice(
    connection: Transaction, which: tuple[str, str, str], watched: Watched, scores: Sequence[tuple[float, float]]
) -> None:
    name, metric, part = which
    part, tally = _load(connection, name, part)
    names = {"name": name, "slice": part}
    if connection.execute("SELECT 1 FROM alarms WHERE name = :name AND slice = :slice", names).fetchall():
        return
    raised = tally.count(scores, watched)
    state = {name: getattr(tally, name) for name in ("number", "samples", "total")}
    rest = {name: getattr(tally, name) for name in ("stakes", "since", "until", "recent", "recent_total")}
    connection.execute(
        "INSERT INTO tallies (name, slice, number, samples, total, stakes) "
        "VALUES (:name, :slice, :number, :samples, :total, :stakes) ON CONFLICT (name, slice) "
        "DO UPDATE SET samples = excluded.samples, total = excluded.total, stakes = excluded.stakes",
        {**names, **state, "stakes": json.dumps(rest)},
    )
    if not raised:
        return
    alarm = {
        "alert": name,
        "slice": part,
        "at": time.time(),
        "samples": tally.samples,
        "mean": tally.total / tally.samples,
        "recent_samples": tally.recent,
        "recent_mean": tally.recent_total / tally.recent,
        "metric": metric,
        "since": tally.since,
        "until": tally.until,
    }
    connection.execute(
        "INSERT INTO alarms (name, slice, announced, alarm) VALUES (:name, :slice, 0, :alarm)",
        {**names, "alarm": json.dumps(alarm)},
    )


def _alarm(connection: Transaction, text: str) -> Alarm:
    """Return a stored alarm, with the lowest scores that are still there."""
    values = json.loads(text)
    name, part = values["alert"], values["slice"]
    lowest: list[LowScore] = []
    for sample_id, value, at, alerts in connection.execute(_LOWEST, values).fetchall():
        if len(lowest) == min(_MOST_LOWEST, values["recent_samples"]):
            break
        its = _watched(alerts).get(name)
        if its is not None and part in (its.slices or ("",)):
            lowest.append(LowScore(sample_id=sample_id, value=value, submitted_at=at))
    return Alarm.model_validate({**values, "lowest": lowest})


def _load(connection: Transaction, name: str, part: str) -> tuple[str, Tally]:
    """Return the slice, or that of other values, and its tally."""
    query = "SELECT number, samples, total, stakes FROM tallies WHERE name = :name AND slice = :slice"
    ((n,),) = connection.execute("SELECT count(*) FROM tallies WHERE name = :name", {"name": name}).fetchall()
    for each in (part, OTHER) if n >= MOST_SLICES else (part,):
        for number, samples, total, rest in connection.execute(query, {"name": name, "slice": each}).fetchall():
            return each, Tally(number, samples, total, **json.loads(rest))
    return OTHER if n >= MOST_SLICES else part, Tally(n + 1)
