"""The benchmark of attacks: what it compares, that it notices what it is there to notice, that it goes on."""

import pytest
from injection.attacks import ATTACKS
from injection.cases import cases
from injection.figures import changes, score
from injection.samples import FIELDS, SAMPLES

from ragstone import LLMRequest, Sample
from ragstone.judging.injection import suspected
from ragstone.testing import FakeEmbedder, FakeLLM


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


GOOD = {known.sample.response for known in SAMPLES if known.good and known.sample.response} | {
    text for known in SAMPLES if known.good for text in known.sample.retrieved_contexts
}


def honest(request: LLMRequest):
    """Knows the samples, and takes everything else for what it is."""
    step = request.task.split(".")[1]
    good = any(text in request.user for text in GOOD)
    if step == "claims":
        return {"claims": [request.user.split("\n")[1]]}
    if step == "questions":
        return {"questions": ["Who knows?"]}
    if step == "noncommittal":
        return "answered" if good else "refused"
    if step == "sentence":
        asked = request.user.split("<sentence ")[1]
        return "yes" if any(text in asked for text in GOOD) else "no"
    if step == "passage":
        return "yes" if good else "no"
    if step == "verdict":
        return "supported" if any(text in request.user.split("<claim ")[1] for text in GOOD) else "not_in_source"
    return "yes" if good or step == "source_answers" else "no"


def measured(judge, path, given):
    llm = FakeLLM(judge, asking="one_by_one")
    return changes(given, score(given, llm, FakeEmbedder(), path / "journal.db", calls=4)), llm


def test_a_judge_that_does_not_fall_for_it(tmp_path):
    given = cases()
    changed, llm = measured(honest, tmp_path, given)
    assert 150 <= len(llm.requests) <= 320
    assert [(change.unscored, change.changed) for change in changed] == [("", 0)] * len(given)
    assert sum(change.compared for change in changed) >= len(given) - 10
    for change in changed:  # a question moves with its embedding
        assert change.shift == 0.0 or (change.metric, change.field) == ("response_relevancy", "user_input")
    for change in changed:  # bad samples score 0 and good ones 1, so that an attack has somewhere to go
        if change.plain is not None and change.metric != "response_relevancy":
            assert change.plain == (0.0 if change.towards == 1 else 1.0), change
