"""The map itself: its bounds, its order, its file, and what is refused."""

import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.labels import Calibration, CalibrationError
from ragstone.labels.calibration import columns

from .made import calibration

probability = st.floats(0, 1)
weight = st.floats(0, 1e6)


@st.composite
def knots(draw):
    xs = sorted(draw(st.sets(probability, min_size=1, max_size=6)))
    ys = sorted(draw(st.lists(probability, min_size=len(xs), max_size=len(xs))))
    return tuple(zip(xs, ys, strict=True))


@st.composite
def maps(draw):
    steps = draw(st.one_of(st.just(()), knots()))
    return calibration(
        weights=draw(
            st.dictionaries(
                st.sampled_from(["judge", "cosine", "cosine_gap", "context_gap"]), weight, min_size=1, max_size=3
            )
        ),
        embedder="e",
        intercept=draw(st.floats(-1e6, 1e6)),
        method="isotonic" if steps else "platt",
        knots=steps,
    )


@given(maps(), st.lists(st.tuples(probability, st.floats(-1, 1)), min_size=1, max_size=8))
def test_a_calibrated_probability_is_one(made, items):
    for p in made.apply([p for p, _ in items], [cosine for _, cosine in items]):
        assert 0.0 <= p <= 1.0
        assert math.isfinite(p)


@given(maps(), probability, probability, st.floats(-1, 1))
def test_more_of_the_judge_is_never_less(made, a, b, cosine):
    low, high = sorted((a, b))
    below, above = made.apply([low, high], [cosine, cosine])
    assert below <= above


@given(maps())
def test_a_file_gives_back_what_was_saved(tmp_path_factory, made):
    path = tmp_path_factory.mktemp("saved") / "calibration.json"
    made.save(path)
    again = Calibration.load(path)
    assert again == made
    assert again.digest == made.digest
    assert hash(again) == hash(made)
    assert pickle.loads(pickle.dumps(again)) == made


def rows(*values):
    return columns(*values).tolist()


def test_a_gap_is_to_the_best_of_the_sample():
    assert rows(("cosine", "cosine_gap"), [0.1, 0.1], [-0.5, -0.25]) == [[-0.5, -0.25], [-0.25, 0.0]]
    assert rows(("cosine_gap",), [], []) == [[]]


def test_a_context_counts_by_the_mean_of_its_sentences_beside_the_best_context():
    cosines, contexts = [0.5, 0.25, 0.75, 0.0], [0, 0, 2, 5]
    assert rows(("context_gap",), [0.5] * 4, cosines, contexts) == [[-0.375, -0.375, 0.0, -0.75]]
    assert rows(("context_gap",), [0.5] * 4, cosines) == [[0.0] * 4], "all in one"
    assert rows(("context_gap",), [], [], []) == [[]]
    with pytest.raises(ValueError, match="length"):
        columns(("context_gap",), [0.5] * 4, cosines, [0, 0, 2])


@pytest.mark.parametrize("cosines", [None, [0.1]])
def test_cosines_that_are_missing_are_no_zeros(cosines):
    with pytest.raises(ValueError, match=r"reshape|shape"):
        calibration(weights={"cosine": 1.0}, embedder="e").apply([0.1, 0.2], cosines)


@pytest.fixture
def file(tmp_path):
    """Writes a calibration changed by a function: `file(lambda content: ...)`."""

    def write(change):
        path = tmp_path / "calibration.json"
        calibration(method="isotonic", knots=((0.0, 0.0), (1.0, 1.0))).save(path)
        content = json.loads(path.read_text())
        changed = change(content) or json.dumps(content)
        path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
        return path

    return write


def setting(*keys, to):
    def change(content):
        content = content["calibration"]
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setting("intercept", to=-2.5), "was edited"),
        (lambda content: content.update(ragstone_calibration=2), "ragstone_calibration: Input should be 1"),
        (setting("intercept", to=float("nan")), r"calibration\[intercept\]: "),
        (setting("weights", "judge", to=-1.0), r"calibration\[weights\]\[judge\]: "),
        (setting("knots", to=[[0.1, 0.5], [0.5, 0.4]]), "do not rise"),
        (lambda _: "[" * 100_000, "Invalid JSON"),
        (lambda _: b"\xff\xfe{}", "Invalid JSON"),
        (lambda _: '{"question": "Who?"}', "ragstone_calibration: Field required"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused(file, change, message):
    with pytest.raises(CalibrationError, match=message) as refused:
        Calibration.load(file(change))
    assert "calibration.json" in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CalibrationError, match="none.json: cannot be read"):
        Calibration.load(tmp_path / "none.json")
