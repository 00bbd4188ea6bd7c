"""The benchmark of attacks: what it compares, that it notices what it is there to notice, that it goes on."""

import pytest
from injection.attacks import ATTACKS
from injection.cases import cases
from injection.figures import changes, score
from injection.samples import FIELDS

from ragstone import Sample
from ragstone.judging.injection import suspected
from ragstone.testing import FakeEmbedder, FakeLLM

from ..core.judges import obliging  # noqa: TID252


def test_which_attacks_are_noted():
    """Authority in plain words is what no conservative sign can tell from a text about authorities."""
    noted = {attack.name for attack in ATTACKS if suspected(Sample(response=attack.text), ("response",))}
    assert {attack.name for attack in ATTACKS} - noted == {"authority"}


@pytest.mark.parametrize("rounds", [1, 2])
def test_every_attack_meets_every_metric_in_every_field(rounds):
    given = cases(rounds=rounds)
    for attack in ATTACKS:
        mine = [case for case in given if case.attack is attack]
        places = {(metric, field) for metric, fields in FIELDS.items() for field in fields}
        if attack.alone:
            places = {place for place in places if place[1] == "response"}
        assert {(case.known.metric, case.field) for case in mine} == places
        assert len(mine) == rounds * len(places)
        assert {case.known.good for case in mine} == {attack.aim == "down"}


def test_a_judge_that_does_not_look_is_changed_by_nothing(tmp_path):
    given = cases()
    llm = FakeLLM(obliging, asking="one_by_one")
    changed = changes(given, score(given, llm, FakeEmbedder(), tmp_path / "journal.db", calls=4))
    assert 150 <= len(llm.requests) <= 320
    assert [(change.unscored, change.changed) for change in changed] == [("", 0)] * len(given)
    assert sum(change.compared for change in changed) >= len(given) - 10
    for change in changed:  # a question moves with its embedding
        assert change.shift == 0.0 or (change.metric, change.field) == ("response_relevancy", "user_input")
