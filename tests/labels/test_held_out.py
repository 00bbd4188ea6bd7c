"""The benchmark of what few labels are worth: what it fits on is never what it scores."""

import importlib.util
import random
from pathlib import Path

import pytest

from ragstone.labels.fit import Labelled

pytest.importorskip("sklearn")

_SPEC = importlib.util.spec_from_file_location(
    "held_out", Path(__file__).resolve().parents[2] / "benchmarks" / "held_out.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
held_out = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(held_out)


def shifted(rows):
    """A judge that ranks well and whose probabilities are all far too low."""
    chance = random.Random(0)
    for i in range(rows):
        labels = [1.0, 0.0, 0.0, 1.0, 0.0]
        yield Labelled(str(i), [0.1 + 0.2 * label + 0.15 * chance.random() for label in labels], labels)


def test_a_shifted_judge_is_put_right_on_rows_that_were_not_fitted():
    found = held_out.held_out(list(shifted(20)), 12, 5)
    assert (found["labelled"], found["held out"], found["better in"]) == (12, 8, 1.0)
    assert found["before"]["value"] == 0.0
    assert found["after"]["value"] > 0.9
