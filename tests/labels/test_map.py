"""The map itself: its bounds, its order, its file, and what is refused."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.labels import Calibration, CalibrationError

from .made import calibration

probability = st.floats(0, 1)


@st.composite
def maps(draw):
    return calibration(
        item=draw(st.sampled_from(["sentence", "score"])),
        weight=draw(st.floats(0, 1e6)),
        intercept=draw(st.floats(-1e6, 1e6)),
    )


@given(maps(), st.lists(probability, min_size=1, max_size=8))
def test_a_calibrated_probability_is_one_and_more_of_the_judge_is_never_less(made, judged):
    mapped = made.apply(sorted(judged))
    assert all(0.0 <= p <= 1.0 for p in mapped)
    assert mapped == sorted(mapped)


@given(maps())
def test_a_file_gives_back_what_was_saved(tmp_path_factory, made):
    path = tmp_path_factory.mktemp("saved") / "calibration.json"
    made.save(path)
    again = Calibration.load(path)
    assert (again, again.digest, hash(again)) == (made, made.digest, hash(made))
    assert pickle.loads(pickle.dumps(again)) == made


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
        (setting("weight", to=-1.0), r"calibration\[weight\]: "),
        (lambda _: "[" * 100_000, "Invalid JSON"),
        (lambda _: '{"question": "Who?"}', "ragstone_calibration: Field required"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused(tmp_path, change, message):
    path = tmp_path / "calibration.json"
    with pytest.raises(CalibrationError, match=r"calibration\.json: cannot be read: No such file"):
        Calibration.load(path)
    calibration().save(path)
    content = json.loads(path.read_text())
    path.write_text(change(content) or json.dumps(content))
    with pytest.raises(CalibrationError, match=rf"calibration\.json: .*{message}"):
        Calibration.load(path)
