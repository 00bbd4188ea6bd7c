"""What is marked as lowering a score is never the good verdict, and what is printed of one is of the word printed."""

import random

import pytest

from ragstone import ContextRecall, Criterion, FactualCorrectness, LLMReply, Sample, Score, Unscored, Verdict
from ragstone.testing import FakeLLM

from .judges import metrics, obliging

GOOD = {"committal", "relevant", "supported", "yes"}
SAMPLE = Sample(
    user_input="Who wrote Emma? It is a novel.",
    retrieved_contexts=["Jane Austen wrote it. It rains.", "Emma is a novel."],
    response="Jane Austen. It was in 1815.",
    reference="Jane Austen wrote Emma.",
)


def wayward(chance):
    """A judge that answers as it likes, with probabilities where it is asked for a word."""

    def reply(request):
        if request.choices is None:
            return obliging(request)
        shares = [chance.random() for _ in request.choices]
        given = {word: share / sum(shares) for word, share in zip(request.choices, shares, strict=True)}
        return LLMReply(max(given, key=given.__getitem__), 1, 1, given)

    return reply


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_no_good_verdict_is_a_cause(seed, asking):
    reply = wayward(random.Random(seed))
    judge = FakeLLM(reply, asking=asking)
    more = [FactualCorrectness(llm=judge), ContextRecall(llm=judge), Criterion("polite", "Is it polite?", llm=judge)]
    seen = 0
    for metric in [*metrics(reply, asking), *more]:
        outcome = metric.score(SAMPLE)
        if isinstance(outcome, Unscored):
            continue
        seen += 1
        assert not GOOD & {verdict.verdict for verdict in outcome.verdicts if verdict.lowers_score}, metric.name
        raw = [name for name in outcome.breakdown if name.endswith(("_expected", "_least", "_uncalibrated"))]
        assert not [name for name in raw if f"{name} " in str(outcome)], metric.name
        for line in str(outcome).splitlines():
            assert "p(yes)" not in line or ": yes p(yes)" in line
    assert seen > 6


@pytest.mark.parametrize(
    ("kind", "word", "of_affirmative", "shown"),
    [
        ("question", "noncommittal", 0.04, "noncommittal p(noncommittal)=0.96: "),
        ("question", "committal", 0.9, "committal p(committal)=0.90: "),
        ("passage", "no", 0.33, "no p(no)=0.67: "),
        ("claim", "unsupported", 0.25, "unsupported p(unsupported)=0.75: "),
        ("claim", "contradicted", 0.25, "contradicted: "),  # of three words
        ("source_answer", "no", 0.25, "no: "),
    ],
)
def test_the_probability_printed_is_of_the_word_printed(kind, word, of_affirmative, shown):
    verdict = Verdict(id="1", kind=kind, text="It.", verdict=word, probability=of_affirmative)
    assert f"{kind} 1: {shown}It." in str(Score(metric="m", value=0.5, reason="", version="1", verdicts=(verdict,)))
