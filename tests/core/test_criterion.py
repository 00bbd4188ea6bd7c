"""A criterion of one's own, and a metric that asks no judge: wherever a metric works."""

import dataclasses
import math

import pytest

from ragstone import Criterion, Faithfulness, Monitor, Sample, evaluate
from ragstone.identity import metric_key
from ragstone.judge_names import RegistryError
from ragstone.judging.prompt import DATA_NOTICE
from ragstone.metrics.names import make_metric, metric_name
from ragstone.testing import FakeLLM

SAMPLE = Sample(user_input="Who wrote Emma?", response="Austen did. Look it up.", retrieved_contexts=["ZEBRA."])
polite = Criterion("polite", "Is the response polite?")


def says(word):
    return FakeLLM({"evidence": [], "verdict": word})


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
