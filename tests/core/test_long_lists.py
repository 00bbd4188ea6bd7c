"""More than 50 items go out in several calls, under the same numbers, and are worth the same."""

import pytest

from ragstone import (
    AlignmentCoverage,
    CitationSupport,
    ContextPrecision,
    FactualCorrectness,
    Faithfulness,
    Sample,
    SummarizationScore,
)
from ragstone.batch import estimate
from ragstone.testing import FakeLLM, by_step

from ..support.judges import fenced, numbered_lines, step  # noqa: TID252

FACTS = [f"Fact {i}." for i in range(1, 121)]
SAMPLE = Sample(user_input="What?", retrieved_contexts=FACTS, response=" ".join(FACTS[::2]), reference="Fact 3.")


def is_good(item):
    return int(item.split()[1].strip(".")) % 3 == 0


def numbering(claims=120, bad_first=()):
    """Answers each of the numbered items of a request by its own number; the first reply to some parts is no answer."""
    bad = {*bad_first}

    def verdicts(request):
        (form,) = request.schema["properties"].values()
        first, *_ = numbers = list(form["properties"])
        *_, listed = fenced(request)[0].values()
        items = numbered_lines(listed)
        assert list(items) == numbers
        if first in bad:
            bad.discard(first)
            return {}
        name, kind = next(iter(request.schema["properties"])), form["properties"][first]
        yes, no = ("supported", "not_in_source") if "properties" in kind else ("yes", "no")
        words = {number: yes if is_good(item) else no for number, item in items.items()}
        return {name: {n: {"evidence": [], "verdict": w} if "properties" in kind else w for n, w in words.items()}}

    return FakeLLM(
        by_step(claims={"claims": FACTS[:claims]}, **dict.fromkeys(("verdicts", "useful", "answers", "supported"), verdicts),
               source_answers=verdicts, summary_answers=verdicts)
    )  # fmt: skip


def sizes(llm, of=("verdicts", "useful", "answers", "supported", "source_answers")):
    return [len(next(iter(r.schema["properties"].values()))["properties"]) for r in llm.requests if step(r) in of]


@pytest.mark.parametrize(
    ("make", "options", "kind", "cut"),
    [
        (Faithfulness, {}, "claim", [50, 50, 20]),
        (ContextPrecision, {}, "context", [50, 50, 20]),
        (SummarizationScore, {"questions": FACTS}, "question", [50, 50, 20]),
        (AlignmentCoverage, {"assessment_questions": FACTS[:50]}, "claim", [50, 50, 20, 50]),
    ],
)
def test_each_item_is_asked_once_under_its_own_number(make, options, kind, cut):
    llm = numbering()
    outcome = make(llm=llm, **options).score(SAMPLE)
    assert sorted(sizes(llm)) == sorted(cut)
    found = [verdict for verdict in outcome.verdicts if verdict.kind == kind]
    assert [(v.id, v.text) for v in found] == [(str(i), fact) for i, fact in enumerate(FACTS, 1)]
    assert [v.verdict in ("supported", "yes", "useful") for v in found] == [is_good(fact) for fact in FACTS]


@pytest.mark.parametrize(("n", "cut"), [(49, [49]), (50, [50]), (51, [50, 1]), (100, [50, 50]), (101, [50, 50, 1])])
def test_fifty_are_one_call(n, cut):
    llm = numbering(n)
    assert Faithfulness(llm=llm).score(SAMPLE).value == n // 3 / n
    assert sizes(llm) == cut


def test_each_call_has_a_second_try_of_its_own():
    llm = numbering(bad_first=("1", "101"))
    outcome = Faithfulness(llm=llm).score(SAMPLE)
    assert (outcome.value, outcome.usage.llm_calls) == (40 / 120, 1 + 3 + 2)
    assert "Check each of the 20 claims" in llm.requests[-1].user


def test_a_dry_run_counts_them():
    sentences = " ".join(f"It is so {i}." for i in range(240))
    sample = Sample(retrieved_contexts=["A."], response=sentences, reference=sentences)
    assert estimate([sample], Faithfulness(llm=numbering())).calls == 1 + 3
    assert estimate([sample], FactualCorrectness(llm=numbering())).calls == 1 + 2 * 5, "it takes both texts for one"


def test_two_texts_are_checked_apart_where_both_together_are_too_many():
    def reply(request):
        if step(request) == "claims":
            return {"response": FACTS[:30], "reference": FACTS[:30]}
        assert list(request.schema["properties"]) == ["verdicts"]
        numbers = request.schema["properties"]["verdicts"]["properties"]
        return {"verdicts": {n: {"evidence": [1], "verdict": "supported"} for n in numbers}}

    llm = FakeLLM(reply)
    outcome = FactualCorrectness(llm=llm).score(SAMPLE)
    assert (outcome.value, len(llm.requests)) == (1.0, 3)
    assert {v.evidence[0].field for v in outcome.verdicts} == {"response", "reference"}


def test_citations_keep_their_contexts():
    response = " ".join(f"Fact {i} is so [{i}]." for i in range(1, 121))
    llm = numbering()
    outcome = CitationSupport(llm=llm).score(Sample(retrieved_contexts=FACTS, response=response))
    assert (sizes(llm), outcome.breakdown["recall"]) == ([50, 50, 20], pytest.approx(1 / 3))
