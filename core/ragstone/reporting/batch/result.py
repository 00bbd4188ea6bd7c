"""One outcome of a batch, with its place in it."""

from typing import NamedTuple

from ragstone.outcome import Outcome


class Result(NamedTuple):
    """What one metric gave for one sample, in one draw.

    Attributes:
        row: The sample's place in the input, from 0, rows that held no sample counted.
        sample_id: The sample's id; its place, from 1, where it has none.
        draw: Which of `repeat` scorings it is, from 0.
        judge: The judge's `model`.
        outcome: The outcome.
    """

    row: int
    sample_id: str
    draw: int
    judge: str
    outcome: Outcome
