"""Alarms, and what alerts have counted so far: in a database for all processes together, or in memory for one."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ragstone.plain import printable
from ragstone.sample import Sample

MOST_SLICES = 1_000
OTHER = "(other values)"
"""The slice of all values beyond the first 1,000."""

_SAVE = (
    "INSERT INTO tallies (name, slice, place, state, raised_at) VALUES (:name, :slice, :place, :state, :raised_at) "
    "ON CONFLICT (name, slice) DO UPDATE SET state = excluded.state, raised_at = excluded.raised_at"
)
_Time = Annotated[float, Field(ge=0, le=253_402_300_799)]  # the end of the year 9999: what a calendar can show
_HEAD = {"name": "", "slice": "", "place": 0, "state": "", "raised_at": None}


class LowScore(BaseModel):
    """One of the lowest scores before an alarm.

    Attributes:
        sample_id: The sample's id.
        value: The score.
        submitted_at: When the app submitted the sample, in seconds since 1970 (UTC).
        sample: The sample, if the database has its texts (`store_text`).
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sample_id: str
    value: float
    submitted_at: float
    sample: Sample | None = None


class Alarm(BaseModel):
    """An alert's news: the mean has fallen below what its user accepts.

    Attributes:
        alert: The alert's name, such as "faithfulness below 0.8 by run_name".
        slice: The field's value, for an alert with `by`; "" for samples without one, and for an alert without `by`.
        at: When it was raised, in seconds since 1970 (UTC).
        samples: How many scores the alert had counted.
        mean: Their mean.
        recent_samples: How many of them came since the drop, as well as it can be told; at most 200.
        recent_mean: The mean of these.
        lowest: The ten lowest of these, the lowest first.

    Example:
        >>> low = LowScore(sample_id="q7", value=0.0, submitted_at=1.5)
        >>> means = {"samples": 90, "mean": 0.86, "recent_samples": 9, "recent_mean": 0.61}
        >>> print(Alarm(alert="a below 0.8", at=2.0, lowest=(low,), **means))
        Alarm of 1970-01-01 00:00 UTC: a below 0.8: mean 0.610 of the last 9 samples, 0.860 of all 90; lowest: q7 (0.00)
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    alert: str
    slice: str = ""
    at: _Time
    samples: int
    mean: float
    recent_samples: int
    recent_mean: float
    lowest: tuple[LowScore, ...]

    def __str__(self) -> str:
        of_slice = f" ({self.slice})" if self.slice else ""
        lowest = ", ".join(f"{low.sample_id} ({low.value:.2f})" for low in self.lowest) or "none kept"
        text = (
            f"{self.alert}{of_slice}: mean {self.recent_mean:.3f} of the last {self.recent_samples:,} samples, "
            f"{self.mean:.3f} of all {self.samples:,}; lowest: {lowest}"
        )
        at = datetime.fromtimestamp(self.at, timezone.utc)
        return printable(f"Alarm of {at:%Y-%m-%d %H:%M} UTC: {text}", 3_000)


class Window(BaseModel):
    """Scores that came one after another: their number and sum, and the ten lowest."""

    samples: int = 0
    total: float = 0.0
    lowest: list[LowScore] = Field(default_factory=list[LowScore])


class Tally(BaseModel):
    """What an alert knows of one slice.

    Attributes:
        place: Which of the alert's slices it is, by the order in which they came, from 1.
        samples: How many scores were counted.
        total: Their sum.
        stakes: What the bets hold.
        windows: The last scores, in order, up to 25 in each of up to eight windows.
        raised_at: When the alarm was raised; None before. After it nothing is counted.
        claimed_at: When a process last took it upon itself to tell of the alarm.
        told: Whether it has.
    """

    place: int
    samples: int = 0
    total: float = 0.0
    stakes: list[float] = Field(default_factory=list[float])
    windows: list[Window] = Field(default_factory=list[Window])
    raised_at: _Time | None = None
    claimed_at: float = 0.0
    told: bool = False

    def alarm(self, name: str, slice_: str, sample_of: Callable[[str], Sample | None] | None = None) -> Alarm:
        """Return the alarm that was raised."""
        lowest = sorted((low for window in self.windows for low in window.lowest), key=lambda low: low.value)[:10]
        recent = sum(window.samples for window in self.windows)
        return Alarm(
            alert=name,
            slice=slice_,
            at=self.raised_at or 0.0,
            samples=self.samples,
            mean=self.total / max(1, self.samples),
            recent_samples=recent,
            recent_mean=sum(window.total for window in self.windows) / max(1, recent),
            lowest=tuple(
                low.model_copy(update={"sample": sample_of(low.sample_id)}) if sample_of else low for low in lowest
            ),
        )


class _Connection(Protocol):
    def execute(self, sql: str, parameters: Mapping[str, Any] = ..., /) -> Any: ...  # noqa: ANN401 - two libraries'


class Tallies:
    """The tallies of all alerts, inside of a transaction that keeps other processes from them until it ends.

    Example:
        >>> import sqlite3
        >>> from ragstone.results.tables import TALLIES
        >>> connection = sqlite3.connect(":memory:")
        >>> tallies = Tallies(connection) if connection.execute(TALLIES) else None
        >>> tallies.save("demo below 0.5", "a", Tally(place=1, samples=3))
        >>> tallies.load("demo below 0.5", "a")[1].samples, tallies.load("demo below 0.5", "b")[1].place
        (3, 2)
    """

    def __init__(self, connection: _Connection) -> None:
        self._run = connection.execute
        self._run(_SAVE, _HEAD)  # whoever writes this row has it until the transaction ends

    def load(self, name: str, slice_: str) -> tuple[str, Tally]:
        """Return the slice, or that of other values, and its tally: a new one if there is none that can be read."""
        kept = self._get(name, slice_)
        ((n,),) = self._run("SELECT count(*) FROM tallies WHERE name = :name", {"name": name}).fetchall()
        if not kept and n >= MOST_SLICES:
            slice_ = OTHER
            kept = self._get(name, slice_)
        return slice_, _tally(*kept[0]) if kept else Tally(place=n + 1)

    def _get(self, name: str, slice_: str) -> list[tuple[int, str]]:
        query = "SELECT place, state FROM tallies WHERE name = :name AND slice = :slice"
        return list(map(tuple, self._run(query, {"name": name, "slice": slice_}).fetchall()))

    def save(self, name: str, slice_: str, tally: Tally) -> None:
        """Keep a tally in place of the earlier one."""
        state = tally.model_dump_json(exclude_none=True)
        row = {"name": name, "slice": slice_, "place": tally.place, "state": state, "raised_at": tally.raised_at}
        self._run(_SAVE, row)

    def sample(self, sample_id: str, metric: str) -> Sample | None:
        """Return a sample whose texts the database has."""
        query = "SELECT sample FROM outcomes WHERE sample_id = :id AND metric = :metric AND sample IS NOT NULL"
        with suppress(ValueError, TypeError, RecursionError):  # a hand has changed it
            for (text,) in self._run(query, {"id": sample_id, "metric": metric}).fetchall():
                return Sample(**json.loads(text))
        return None

    def all(self) -> list[tuple[str, str, Tally]]:
        """Return the alerts' names, slices and tallies."""
        return read_tallies(self._run)

    def reset(self) -> int:
        """Have every slice whose alarm was raised start anew; return how many there were."""
        done = self._run("UPDATE tallies SET state = '', raised_at = NULL WHERE raised_at IS NOT NULL", {})
        return int(done.rowcount)

    def forget(self, before: float, ids: Collection[str]) -> None:
        """Remove the ids of samples from the lowest scores. What was counted stays."""
        for name, slice_, tally in self.all():
            lows = [each for window in tally.windows for each in window.lowest]
            gone = {each.sample_id for each in lows if each.submitted_at < before or each.sample_id in ids}
            for window in tally.windows:
                window.lowest = [each for each in window.lowest if each.sample_id not in gone]
            if gone:
                self.save(name, slice_, tally)


def read_tallies(query: Callable[[str, Mapping[str, Any]], Iterable[Any]]) -> list[tuple[str, str, Tally]]:
    """Return the names, slices and tallies of a database's alerts."""
    rows: Iterable[Sequence[Any]] = query(
        "SELECT name, slice, place, state FROM tallies WHERE name <> :head ORDER BY name, place", {"head": ""}
    )
    return [(str(name), str(slice_), _tally(place, state)) for name, slice_, place, state in map(tuple, rows)]


def _tally(place: int, state: str) -> Tally:
    with suppress(ValueError):  # it was reset, or a hand has changed it
        return Tally.model_validate_json(state)
    return Tally(place=place)
