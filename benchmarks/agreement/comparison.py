"""What one row of the table is made by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .labels import Label
from .lines import Line
from .statistics import Measure

Pair = tuple[Label, Line]
Measured = Callable[[Sequence[Pair]], Measure]
Take = Callable[[Line], float | None]
"""The number of an outcome that is held against a label; None where it has none."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of the table: a reading against a label by a statistic, and trivial scorers by the same.

    Attributes:
        reading: Which number of an outcome it is.
        label: What it is held against.
        statistic: Its name.
        has: Whether a line has that number.
        measure: The statistic of rows and lines that have it.
        floors: By name, the same statistic of a trivial scorer on the same rows.
    """

    reading: str
    label: str
    statistic: str
    has: Callable[[Line], bool]
    measure: Measured
    floors: Mapping[str, Measured]


def taken(reading: str) -> Take:
    """Return what takes the score ("value") or a part of the breakdown from a line that was scored."""
    return lambda line: line.value if reading == "value" or line.value is None else line.parts.get(reading)
