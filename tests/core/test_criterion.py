"""A criterion of one's own, and a metric that asks no judge: wherever a metric works."""

import dataclasses
import math

import pytest

from ragstone import Criterion, Faithfulness, LLMReply, Monitor, Sample, evaluate
from ragstone.identity import metric_key
from ragstone.judge_names import RegistryError
from ragstone.judging.prompt import DATA_NOTICE
from ragstone.metrics.names import make_metric, metric_name
from ragstone.testing import FakeLLM

from ..support.judges import fenced  # noqa: TID252

SAMPLE = Sample(user_input="Who wrote Emma?", response="Austen did. Look it up.", retrieved_contexts=["ZEBRA."])
polite = Criterion("polite", "Is the response polite?")


def says(word, evidence=()):
    return FakeLLM(lambda request: {"evidence": list(evidence), "verdict": word})


def by_word(**probabilities):
    def reply(request):
        return LLMReply(max(probabilities, key=probabilities.__getitem__), probabilities=probabilities)

    return FakeLLM(reply, asking="one_by_one", gives_probabilities=True)


@pytest.mark.parametrize(
    ("choices", "word", "value", "lowers"),
    [
        (("yes", "no"), "yes", 1.0, False),
        (("yes", "no"), "no", 0.0, True),
        (("good", "fair", "poor"), "fair", 0.5, True),
        (("a", "b", "c", "d", "e"), "d", 0.25, True),
        ({"good": 1, "poor": 0}, "good", 1.0, False),
        ({"poor": 0.1, "good": 0.6, "fine": 0.6}, "fine", 0.6, False),
    ],
)
def test_a_choice_is_worth_its_value(choices, word, value, lowers):
    metric = Criterion("polite", "How polite is it?", choices=choices, llm=says(word, [2, 2]))
    outcome = metric.score(SAMPLE)
    assert (outcome.metric, outcome.value) == ("polite", pytest.approx(value))
    (verdict,) = outcome.verdicts
    assert (verdict.kind, verdict.text, verdict.verdict, verdict.lowers_score) == (
        *("criterion", "How polite is it?", word, lowers),
    )
    (evidence,) = verdict.evidence
    assert (evidence.field, evidence.start, evidence.text) == ("response", 0, "Austen did.")
    assert outcome.usage.llm_calls == 1


def test_probabilities_make_the_expected_value():
    metric = Criterion(
        "polite", "How polite?", choices=("good", "fair", "poor"), llm=by_word(good=0.2, fair=0.7, poor=0.1)
    )
    outcome = metric.score(SAMPLE)
    assert outcome.value == outcome.breakdown["expected"] == pytest.approx(0.2 + 0.7 / 2)
    assert outcome.breakdown["count"] == 0.5
    assert (outcome.verdicts[0].verdict, outcome.verdicts[0].probability) == ("fair", 0.2)
    assert metric.version.endswith("+expected")


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_the_judge_sees_what_the_criterion_names_and_no_more(asking):
    llm = FakeLLM(lambda request: "yes" if request.choices else {"evidence": [], "verdict": "yes"}, asking=asking)
    dataclasses.replace(polite, llm=llm).score(SAMPLE)
    Criterion("short", "Is it short?", sees=("retrieved_contexts",), llm=llm).score(SAMPLE)
    first, second = (fenced(request)[0] for request in llm.requests)
    assert (set(first), set(second)) == ({"question", "response"}, {"contexts"})
    assert not any("ZEBRA" in text for text in first.values())
    assert "Is the response polite?" in fenced(llm.requests[0])[1], "said again behind the data"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("", "Is it?"), {}, "name: ''"),
        (("a", " "), {}, "question: ' '"),
        (("a", "Is it?"), {"choices": "yes"}, "choices: 'yes' should be a valid tuple"),
        (("a", "Is it?"), {"choices": ("yes",)}, "two words"),
        (("a", "Is it?"), {"choices": ("yes", "yes")}, "twice"),
        (("a", "Is it?"), {"choices": ("Yes", "no")}, "in lower case"),
        (("a", "Is it?"), {"choices": ("very good", "no")}, "'very_good'"),
        (("a", "Is it?"), {"choices": {"yes": 2, "no": 0}}, "should be less than or equal to 1"),
        (("a", "Is it?"), {"choices": {"yes": math.nan, "no": 0}}, "nan should be"),
        (("a", "Is it?"), {"choices": {"yes": 1, "no": 1}}, "different values"),
        (("a", "Is it?"), {"sees": ("answer",)}, "sees.0.: 'answer'"),
        (("a", "Is it?"), {"sees": "response"}, "sees: "),
        (("a", "Is it?"), {"sees": ()}, "sees: "),
    ],
)
def test_what_cannot_be_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        Criterion(*arguments, **options)


def test_another_question_is_another_version_and_another_key_of_the_journal():
    judged = dataclasses.replace(polite, llm=says("yes"))
    others = [
        dataclasses.replace(judged, question="Is it kind?"),
        dataclasses.replace(judged, choices=("no", "yes")),
        dataclasses.replace(judged, sees=("response",)),
        dataclasses.replace(judged, instructions={"verdict": "Is it nice?"}),
    ]
    assert len({each.version for each in (judged, *others)}) == 5
    assert len({metric_key(each) for each in (judged, *others)}) == 5
    assert dataclasses.replace(judged).version == judged.version
    assert hash(judged) == hash(dataclasses.replace(judged))


def test_in_a_data_set_the_judge_comes_later():
    report = evaluate([SAMPLE], [polite, "context_relevancy"], llm=says("no"), progress=False)
    assert report.summary()["polite"].mean == 0.0
    with pytest.raises(ValueError, match="llm: is missing; pass a judge for 'polite'"):
        evaluate([SAMPLE], polite)
    with pytest.raises(TypeError, match="llm: is None; polite needs a judge"):
        polite.score(SAMPLE)
    with pytest.raises(ValueError, match="llm: is missing; pass a judge for 'polite'"):
        Monitor(polite)


def test_by_name():
    name = f"{__name__}:polite"
    metric = make_metric(name, {"threshold": 0.5}, says("yes"))
    assert (metric.name, metric.threshold, metric_name(name)) == ("polite", 0.5, "polite")
    assert polite.threshold is None, "the object that was named stays as it is"
    with pytest.raises(RegistryError, match="neither a subclass of ragstone.Metric nor a metric"):
        make_metric(f"{__name__}:SAMPLE", {}, says("yes"))


# --- without a judge


def test_solved_examples_stand_before_the_claim_question_alone():
    """A criterion's own question has none: those of claims would answer another one."""
    llm = FakeLLM("yes", asking="one_by_one")
    sample = Sample(user_input="Who?", retrieved_contexts=["Ann did."], response="Ann.")
    for metric in (Criterion("polite", "Is the response polite?", llm=llm), Faithfulness(llm=llm)):
        metric.score(sample)
    criterion, claim = llm.requests
    assert criterion.system == DATA_NOTICE
    assert claim.system.startswith(DATA_NOTICE)
    assert "Claim: " in claim.system
