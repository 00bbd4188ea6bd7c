"""Instructions of one's own: they reach the judge, they show in the version, and they change nothing else."""

import dataclasses

import pytest

from ragstone import LLMRequest
from ragstone.judging.prompt import DATA_NOTICE

from .judges import drive, fenced, metrics, step, truth
from .test_prompts import SAMPLE

BRACES = 'Mine. {unknown} {} %s {{x}} {"a": 1}'


def requests(metric):
    return [r for round_ in drive(metric, SAMPLE)[1] for r in round_ if isinstance(r, LLMRequest)]


def check_together(before, after):
    assert after.system == f"{BRACES}\n{DATA_NOTICE}"
    assert dataclasses.replace(after, system=before.system) == before


def check_alone(before, after):
    """They stand behind the data, which requests share; the metric's examples, made for its own, are left out."""
    data, behind = fenced(after)
    own_data, own = fenced(before)
    assert (after.system, data) == (DATA_NOTICE, own_data)
    assert behind.startswith(f"{BRACES} ")
    reminder = behind.removeprefix(BRACES)
    assert own.endswith(reminder), "the reminder stays as it was"
    assert before.system.startswith(DATA_NOTICE)
    assert dataclasses.replace(after, user=before.user, system=before.system) == before


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("index", [1, 2, 5, 7])
def test_they_stand_in_place_of_the_metric_s_own_and_nothing_else_changes(index, asking):
    plain = metrics(truth, asking)[index]
    same = dataclasses.replace(plain, instructions=dict(plain.prompts))
    assert (same.version, requests(same)) == (plain.version, requests(plain))
    versions = {plain.version}
    for name in plain.prompts:
        changed = dataclasses.replace(plain, instructions={name: BRACES})
        assert changed.version.startswith(f"{plain.version}+")
        versions.add(changed.version)
        for before, after in zip(requests(plain), requests(changed), strict=True):
            if step(before) == name:
                check_alone(before, after) if asking == "one_by_one" else check_together(before, after)
            else:
                assert after == before
    assert len(versions) == 1 + len(plain.prompts)
    assert plain.version == type(plain).version, "the class and other objects are as they were"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"verdicts": "V."}, ValueError, "instructions: 'verdicts' is not a step; the steps are questions, answers"),
        ({"questions": " "}, ValueError, r"instructions\['questions'\]: ' ' is blank"),
        ({"questions": None}, ValueError, r"instructions\['questions'\]: None should be a valid string"),
        ("Be strict.", ValueError, "instructions: 'Be strict.' should be a valid dictionary"),
    ],
)
def test_wrong_ones_are_refused_when_the_metric_is_made(given, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(metrics(truth)[0], instructions=given)
