"""A calibration at work in metrics: what changes, what does not, which it is refused for."""

import dataclasses

import pytest

from ragstone import (
    ContextRelevancy,
    LLMReply,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
    Unscored,
)
from ragstone.identity import metric_key
from ragstone.labels import Calibration, CalibrationError
from ragstone.metrics.setup import plain_version, prompts_digest, settings_of
from ragstone.testing import FakeEmbedder, FakeLLM

from .made import calibration, judge, relevancy, sample


def of_sentences(outcome):
    return [verdict for verdict in outcome.verdicts if verdict.kind == "sentence"]


def test_decisions_and_probabilities_are_the_calibrated_ones():
    found = calibration(threshold=0.3, intercept=-2.0)
    plain, calibrated = (relevancy(**more).score(sample(0.6, 0.9, 0.1)) for more in ({}, {"calibration": found}))
    assert [v.verdict for v in of_sentences(plain)] == ["relevant", "relevant", "irrelevant"]
    assert [v.verdict for v in of_sentences(calibrated)] == ["irrelevant", "relevant", "irrelevant"]
    assert [v.probability for v in of_sentences(calibrated)] == found.apply([0.6, 0.9, 0.1])
    assert calibrated.value == pytest.approx(1 / 3)
    assert calibrated.breakdown["sentence_uncalibrated"] == plain.value
    assert calibrated.breakdown["sentence_expected"] == pytest.approx(sum(found.apply([0.6, 0.9, 0.1])) / 3)
    assert calibrated.version == f"{plain.version}+cal:{found.digest}"
    assert "Calibrated on 20 labels by judge; yes from 0.300 on." in calibrated.reason
    expected = relevancy(calibration=found, scoring="expected").score(sample(0.6, 0.9, 0.1))
    assert expected.value == calibrated.breakdown["sentence_expected"]


RANKED = {"llm": judge(gives_probabilities=True), "embedder": FakeEmbedder()}


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"judge": "another"}, {}, "judge: made with 'another', this has 'scripted'"),
        ({}, {"llm": judge(model="another")}, "judge: made with 'scripted', this has 'another'"),
        ({"item": "noncommittal"}, {}, "noncommittal, which context_relevancy does not ask"),
        ({"embedder": "fake-8"}, {"embedder": FakeEmbedder()}, "embedder: made with 'fake-8', this has None"),
        ({"embedder": "fake-4"}, RANKED, "embedder: made with 'fake-4', this has 'fake-8'"),
        ({}, RANKED, "embedder: made with None, this has 'fake-8'"),
        ({"item": "score", "weight": 1.0}, RANKED, "embedder: made with None, this has 'fake-8'"),
        ({"item": "score", "weight": 1.0}, {}, "granularity: made with None, this has 'sentence'"),
        ({}, {"asking": "together"}, "asking one by one: made with True, this has False"),
        ({}, {"instructions": {"sentence": "Is it needed?"}}, "version: made with"),
        ({"metric": "demo"}, {}, "it is of demo, this is context_relevancy"),
    ],
)
def test_it_is_refused_for_another_metric(changed, options, message):
    with pytest.raises(CalibrationError, match="was not made for this metric") as refused:
        relevancy(calibration=calibration(**changed), **options)
    assert message in str(refused.value)


def test_a_judge_without_probabilities_gives_no_score():
    silent = FakeLLM(lambda _: "yes", model="scripted", asking="one_by_one")
    outcome = relevancy(llm=silent, calibration=calibration()).score(sample(0.6, 0.7))
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "undefined"
    assert "gave none for 2 of 2 items" in outcome.detail


def test_it_is_a_value_as_other_options_are(tmp_path):
    calibration().save(tmp_path / "c.json")
    embedder = FakeEmbedder()
    llm = judge()
    a, b = (
        ContextRelevancy(llm=llm, embedder=embedder, calibration=each)
        for each in (Calibration.load(tmp_path / "c.json"), calibration())
    )
    with pytest.raises(TypeError, match=r"calibration: is str; pass ragstone.labels.Calibration.load"):
        ContextRelevancy(llm=llm, embedder=embedder, calibration=str(tmp_path / "c.json"))
    assert a == b
    assert hash(a) == hash(b)
    assert metric_key(a) == metric_key(b) != metric_key(relevancy())
    assert metric_key(a) != metric_key(dataclasses.replace(a, calibration=calibration(threshold=0.31)))


def made_with(metric, item, **more):
    facts = {
        "metric": metric.name,
        "version": plain_version(metric.version),
        "prompts": prompts_digest(metric),
        "item": item,
    }
    return calibration(**facts | {"judge": metric.llm.model, "one_by_one": metric.asks_one_by_one} | more)


def test_refusals():
    def reply(request):
        if not request.choices:
            return {"questions": ["Who did?"]}
        answered, refused = request.choices
        return LLMReply(refused, probabilities={refused: 0.99, answered: 0.01})

    llm = FakeLLM(reply, model="scripted", asking="one_by_one")
    metric = ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), strictness=1)
    made = made_with(metric, "noncommittal", threshold=0.5, intercept=-30.0)
    asked = Sample(user_input="Who did?", response="Ann did.")
    calibrated = dataclasses.replace(metric, calibration=made).score(asked)
    plain = metric.score(asked)
    assert plain.value == 0.0
    assert calibrated.value == pytest.approx(1.0)
    assert calibrated.breakdown["noncommittal"] == 0.0
    assert calibrated.breakdown["noncommittal_uncalibrated"] == 1.0
    assert calibrated.verdicts[0].probability == pytest.approx(
        1.0 - made.apply([1.0 - plain.verdicts[0].probability])[0]
    )


def summary_metric(**more):
    llm = FakeLLM(lambda _: {"answers": {"1": "yes"}})
    return SummarizationScore(**{"llm": llm, "questions": ["Is it?"], "threshold": 0.5} | more)


def test_a_score_as_a_whole():
    kept = Sample(retrieved_contexts=["It is so. " * 9], response="It is.")
    plain = summary_metric()
    settings = settings_of(plain, "score")
    found = made_with(plain, "score", weight=4.0, settings=settings, threshold=None)
    before, after = plain.score(kept), dataclasses.replace(plain, calibration=found).score(kept)
    assert after.breakdown["uncalibrated"] == before.value
    assert [after.value] == found.apply([before.value])
    assert after.passed is (after.value >= 0.5)
    assert f"{before.value:.2f} became {after.value:.2f}." in after.reason
    with pytest.raises(CalibrationError, match="coeff: made with 0.5, this has 0.25"):
        summary_metric(coeff=0.25, calibration=found)
    with pytest.raises(CalibrationError, match=r"questions: made with \['Is it.'\], this has None"):
        summary_metric(questions=None, calibration=found)


@pytest.mark.parametrize(("scoring", "other"), [("count", "expected"), ("expected", "count")])
def test_a_calibrated_score_is_scored_as_it_was_when_it_was_calibrated(scoring, other):
    sure = judge(gives_probabilities=True)
    plain = relevancy(llm=sure, scoring=scoring)
    found = made_with(plain, "score", weight=4.0, settings=settings_of(plain, "score"), threshold=None)
    before = plain.score(sample(0.6, 0.9, 0.1))
    after = relevancy(llm=sure, calibration=found).score(sample(0.6, 0.9, 0.1))
    assert (after.breakdown["uncalibrated"], after.version) == (before.value, f"{before.version}+cal:{found.digest}")
    assert [after.value] == found.apply([before.breakdown[scoring]])
    with pytest.raises(CalibrationError, match=f"scoring: made with '{scoring}', this has '{other}'"):
        relevancy(llm=sure, calibration=found, scoring=other)
