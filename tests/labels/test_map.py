"""The map itself: its bounds, its order, its file, and what is refused."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.labels import Calibration, CalibrationError
from ragstone.labels.calibration import columns

from .made import calibration

probability = st.floats(0, 1)
SIGNALS = ["judge", "cosine", "cosine_gap", "context_gap"]


@st.composite
def maps(draw):
    xs = sorted(draw(st.sets(probability, max_size=6)))
    ys = sorted(draw(st.lists(probability, min_size=len(xs), max_size=len(xs))))
    return calibration(
        weights=draw(st.dictionaries(st.sampled_from(SIGNALS), st.floats(0, 1e6), min_size=1, max_size=3)),
        embedder="e",
        intercept=draw(st.floats(-1e6, 1e6)),
        method="isotonic" if xs else "platt",
        knots=tuple(zip(xs, ys, strict=True)),
    )


@given(maps(), st.lists(probability, min_size=1, max_size=8), st.floats(-1, 1))
def test_a_calibrated_probability_is_one_and_more_of_the_judge_is_never_less(made, judged, cosine):
    mapped = made.apply(sorted(judged), [cosine] * len(judged))
    assert all(0.0 <= p <= 1.0 for p in mapped)
    assert mapped == sorted(mapped)


@given(maps())
def test_a_file_gives_back_what_was_saved(tmp_path_factory, made):
    path = tmp_path_factory.mktemp("saved") / "calibration.json"
    made.save(path)
    again = Calibration.load(path)
    assert (again, again.digest, hash(again)) == (made, made.digest, hash(made))
    assert pickle.loads(pickle.dumps(again)) == made


COSINES = [0.5, 0.25, 0.75, 0.0]


@pytest.mark.parametrize(
    ("names", "cosines", "contexts", "expected"),
    [
        (("cosine", "cosine_gap"), [-0.5, -0.25], None, [[-0.5, -0.25], [-0.25, 0.0]]),
        (("context_gap",), COSINES, [0, 0, 2, 5], [[-0.375, -0.375, 0.0, -0.75]]),
        (("context_gap",), COSINES, None, [[0.0] * 4]),
        (("cosine_gap", "context_gap"), [], [], [[], []]),
    ],
)
def test_gaps_are_to_the_best_of_the_sample(names, cosines, contexts, expected):
    assert columns(names, [0.5] * len(cosines), cosines, contexts).tolist() == expected


def test_cosines_and_contexts_that_are_missing_are_no_zeros():
    metric = calibration(weights={"cosine": 1.0}, embedder="e")
    for cosines, contexts in ((None, None), ([0.1], None), ([0.1, 0.2], [0])):
        with pytest.raises(ValueError, match="shape|length"):
            metric.apply([0.1, 0.2], cosines, contexts)


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
        (lambda _: '{"question": "Who?"}', "ragstone_calibration: Field required"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused(tmp_path, change, message):
    path = tmp_path / "calibration.json"
    with pytest.raises(CalibrationError, match=r"calibration\.json: cannot be read: No such file"):
        Calibration.load(path)
    calibration(method="isotonic", knots=((0.0, 0.0), (1.0, 1.0))).save(path)
    content = json.loads(path.read_text())
    path.write_text(change(content) or json.dumps(content))
    with pytest.raises(CalibrationError, match=rf"calibration\.json: .*{message}"):
        Calibration.load(path)
