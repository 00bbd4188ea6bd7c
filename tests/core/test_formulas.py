"""The metrics of claims, parts and questions against their formulas, with replies that the test chooses."""

from functools import partial

import pytest

from ragstone import (
    AlignmentCoverage,
    ContextRecall,
    ContextRelevancy,
    FactualCorrectness,
    Faithfulness,
    ResponseCompleteness,
    Sample,
    SummarizationScore,
    evaluate,
)
from ragstone.metrics.fitted import ANSWERED, SUPPORTED
from ragstone.testing import FakeDecisions, FakeLLM, by_step

from ..support.judges import fenced, graded, mapped, obliging, step, truth  # noqa: TID252

S, X, M, Y, N, C = "supported", "contradicted", "not_in_source", "yes", "no", "cannot_tell"
SAMPLE = Sample(
    user_input="Bob sat. It snowed.", retrieved_contexts=["Bob sat.", "It snowed."], response="Ann ran. It rained.",
    reference="Bob sat. It snowed.",
)  # fmt: skip


def texts(n, what="Item"):
    return [f"{what} {i}." for i in range(n)]


def by_number(words, evidence=()):
    # In another order than asked for: answers belong to ids, not to places. A sentence is evidence once.
    given = {str(i): word for i, word in reversed(list(enumerate(words, 1)))}
    return {i: {"evidence": list(evidence), "verdict": word} for i, word in given.items()} if evidence else given


def verdicts(words):
    return {"verdicts": by_number(words, [1, 1])}


def of_claims(words):
    return by_step(claims={"claims": texts(len(words))}, verdicts=verdicts(words))


def of_two_texts(response, reference):
    claims = {"response": texts(len(response)), "reference": texts(len(reference))}
    return by_step(
        claims=claims,
        verdicts={"response": by_number(response, [1, 1]), "reference": by_number(reference, [1, 1])},
    )


def of_parts(words):
    return by_step(parts={"parts": texts(len(words))}, answered={"answers": by_number(words)})


def of_questions(words):
    items = [{"keyphrase": "k", "question": text} for text in texts(len(words))]
    return by_step(questions={"items": items}, answers={"answers": by_number(words)})


def of_coverage(words, on_source, on_summary):
    return by_step(
        claims={"claims": texts(len(words))},
        questions={"questions": texts(len(on_source))},
        verdicts=verdicts(words),
        source_answers={"answers": by_number(on_source)},
        summary_answers={"answers": by_number(on_summary)},
    )


def covering(n, rule="both_yes"):
    return partial(AlignmentCoverage, n_questions=n, coverage_rule=rule)


def sized(characters):
    """A summary of so many characters of a source of 100, with its line break."""
    return Sample(retrieved_contexts=["a" * 49, "b" * 50], response="s" * characters)


def summary(**options):
    return partial(SummarizationScore, **options)


@pytest.mark.parametrize(
    ("make", "replies", "value", "breakdown", "lowers"),
    [
        (Faithfulness, of_claims([S]), 1, {"supported": 1, "claims": 1}, [False]),
        (Faithfulness, of_claims([S, X, M]), 1 / 3, {"supported": 1, "claims": 3}, [False, True, True]),
        (Faithfulness, of_claims([M, M]), 0, {"supported": 0, "claims": 2}, [True, True]),
        (ContextRecall, of_claims([S, M, S]), 2 / 3, {"supported": 2, "claims": 3}, [False, True, False]),
        (FactualCorrectness, of_two_texts([S], [S]), 1, {"precision": 1, "recall": 1}, [False, False]),
        (FactualCorrectness, of_two_texts([X], [M, M]), 0, {"precision": 0, "recall": 0}, [True, True, True]),
        (FactualCorrectness, of_two_texts([S, M, X, S], [S]), 2 / 3, {"precision": 0.5, "recall": 1},
         [False, True, True, False, False]),
        (FactualCorrectness, of_two_texts([S, M], [S, M, M, M]), 1 / 3, {"precision": 0.5, "recall": 0.25},
         [False, True, False, True, True, True]),
        (ResponseCompleteness, of_parts([Y]), 1, {"answered": 1, "parts": 1}, [False]),
        (ResponseCompleteness, of_parts([Y, N, N]), 1 / 3, {"answered": 1, "parts": 3}, [False, True, True]),
        (covering(3), of_coverage([S], [Y, Y, Y], [Y, Y, Y]), 1, {"alignment": 1, "coverage": 1}, [False] * 7),
        (covering(3), of_coverage([S, X], [Y, N, C], [Y, Y, C]), 0.5, {"alignment": 0.5, "coverage": 1},
         [False, True] + [False] * 6),
        (covering(3), of_coverage([S], [Y, Y, Y], [Y, N, C]), 1 / 3, {"alignment": 1, "coverage": 1 / 3},
         [False] * 5 + [True, True]),
        (covering(3, "agreement"), of_coverage([M], [Y, N, C], [Y, Y, C]), 0, {"alignment": 0, "coverage": 2 / 3},
         [True] + [False] * 4 + [True, False]),
        (covering(2), of_coverage([X, M], [N, C], [N, C]), 0, {"alignment": 0}, [True] * 2 + [False] * 4),
        (covering(3, "agreement"), of_coverage([S], [N, N, C], [Y, N, Y]), 1 / 3, {"alignment": 1, "coverage": 1 / 3},
         [False] * 4 + [True, False, True]),
    ],
)  # fmt: skip
def test_rows_computed_by_hand(make, replies, value, breakdown, lowers):
    llm = FakeLLM(replies)
    outcome = make(llm=llm, threshold=0.5).score(SAMPLE)
    assert (outcome.value, outcome.breakdown) == (pytest.approx(value), pytest.approx(breakdown))
    assert [v.lowers_score for v in outcome.verdicts] == lowers
    assert (outcome.passed, outcome.usage.llm_calls) == (value >= 0.5, len(llm.requests))
    kinds = [v.kind for v in outcome.verdicts]
    assert [v.id for v in outcome.verdicts] == [str(kinds[: i + 1].count(kind)) for i, kind in enumerate(kinds)]
    # What shows a claim of one text stands in the other.
    shown = {"claim": "Bob sat.", "response_claim": "Bob sat.", "reference_claim": "Ann ran."}
    for verdict in outcome.verdicts:
        assert [each.text for each in verdict.evidence] == ([shown[verdict.kind]] if verdict.kind in shown else [])


@pytest.mark.parametrize(
    ("size", "yes", "no", "options", "value"),
    [
        (50, 1, 3, {}, 0.375),
        (100, 4, 0, {}, 0.5),
        (300, 4, 0, {}, 0.5),  # longer than its source is as long as its source
        (1, 0, 1, {}, 0.495),
        (80, 1, 1, {"coeff": 0.3}, 0.41),
        (80, 1, 1, {"coeff": 0.0}, 0.5),
        (80, 1, 1, {"coeff": 1.0}, 0.2),
        (80, 1, 3, {"coeff": 0.3, "length_penalty": False}, 0.25),
    ],
)
def test_a_summary_is_weighed_with_its_length(size, yes, no, options, value):
    llm = FakeLLM(of_questions([Y] * yes + [N] * no))
    outcome = SummarizationScore(llm=llm, **options).score(sized(size))
    assert outcome.value == pytest.approx(value, abs=1e-9)
    assert [(v.verdict, v.lowers_score) for v in outcome.verdicts] == [(Y, False)] * yes + [(N, True)] * no
    assert f"{yes} of {yes + no} questions" in outcome.reason


@pytest.mark.parametrize(
    ("make", "replies", "said", "calls"),
    [
        (Faithfulness, of_claims([]), "response", 1),
        (ContextRecall, of_claims([]), "reference", 1),
        (FactualCorrectness, of_two_texts([], [S]), "response", 1),
        (FactualCorrectness, of_two_texts([S], []), "reference", 1),
        (SummarizationScore, of_questions([]), "qa: ", 1),
        (covering(1), of_coverage([], [Y], [Y]), "alignment: ", 2),
        (covering(2), of_coverage([S], [N, C], [Y, Y]), "coverage: ", 5),
        (partial(Faithfulness, asking="one_by_one", splitter=lambda text, language: []), truth, "response", 0),
        (partial(ContextRelevancy, splitter=lambda text, language: []), truth, "retrieved_contexts: ", 0),
    ],
)
def test_nothing_of_nothing_is_undefined(make, replies, said, calls):
    outcome = make(llm=FakeLLM(replies)).score(SAMPLE)
    assert (outcome.reason, outcome.usage.llm_calls) == ("undefined", calls)
    assert said in outcome.detail


@pytest.mark.parametrize(
    ("make", "sample", "seen"),
    [
        (Faithfulness, SAMPLE.model_copy(update={"user_input": "ZEBRA?", "reference": "ZEBRA."}), {"response"}),
        (ContextRecall, SAMPLE.model_copy(update={"user_input": "ZEBRA?", "response": "ZEBRA."}), {"reference"}),
        (ResponseCompleteness, SAMPLE.model_copy(update={"retrieved_contexts": ("ZEBRA.",)}), {"question"}),
        (summary(questions=["First?"]), Sample(retrieved_contexts=["ZEBRA."], response="A."), {"summary", "questions"}),
    ],
)
def test_the_judge_sees_what_it_needs_and_no_more(make, sample, seen):
    llm = FakeLLM(obliging)
    make(llm=llm).score(sample)
    assert set(fenced(llm.requests[0])[0]) == seen
    assert not any("ZEBRA" in request.user for request in llm.requests)


# --- one by one, with probabilities -----------------------------------------------------------------------------------

TWO = Sample(
    user_input="Alpha is so. Beta is so.", retrieved_contexts=["Alpha is so."], response="Alpha is so. Beta is so.",
    reference="Alpha is so. Gamma is so. Delta is so. Alpha is so.",
)  # fmt: skip
P = {"Alpha": 0.9, "Beta": 0.2, "Gamma": 0.2, "Delta": 0.2}
YES, NO = mapped(SUPPORTED, 0.9), mapped(SUPPORTED, 0.2)
PART_YES, PART_NO = mapped(ANSWERED, 0.9), mapped(ANSWERED, 0.2)
RECALL = (YES + 2 * NO) / 3  # a sentence that is repeated is one claim
F1 = 2 * (YES + NO) / 2 * RECALL / ((YES + NO) / 2 + RECALL)


def likely(request):
    """Gives the probabilities of P by the word that an item begins with."""
    data = fenced(request)[0]
    if not request.choices:
        return {"parts": ["Alpha?", "Beta?"]}
    item = data.get("claim", data.get("question", ""))
    p = P[item.rstrip("?").split()[0]]
    if C not in request.choices:
        return graded(lambda _: {Y: p, N: 1 - p})(request)
    return graded(lambda _: {Y: p, N: (1 - p) / 2, C: (1 - p) / 2})(request)


ASKED = ["Alpha?", "Beta?"]


@pytest.mark.parametrize("scoring", ["count", "expected"])
@pytest.mark.parametrize(
    ("make", "count", "expected", "more"),
    [
        (Faithfulness, 0.5, (YES + NO) / 2, {"least": NO}),
        (ContextRecall, 1 / 3, RECALL, {"least": NO}),
        (FactualCorrectness, 0.4, F1, {"precision_expected": (YES + NO) / 2, "recall_expected": RECALL}),
        (ResponseCompleteness, 0.5, (PART_YES + PART_NO) / 2, {}),
        (summary(questions=ASKED, length_penalty=False), 0.5, 0.55, {"qa_expected": 0.55}),
        (partial(AlignmentCoverage, assessment_questions=ASKED), 0.5, (YES + NO) / 2, {"coverage_expected": 0.85 / 1.1}),
        (partial(AlignmentCoverage, assessment_questions=ASKED, coverage_rule="agreement"), 0.5, 0.5875,
         {"coverage_expected": 0.5875}),
    ],
)  # fmt: skip
def test_probabilities(make, count, expected, more, scoring):
    outcome = make(llm=FakeLLM(likely, asking="one_by_one"), scoring=scoring).score(TWO)
    assert outcome.breakdown["count"] == pytest.approx(count)
    assert outcome.breakdown["expected"] == pytest.approx(expected)
    assert {name: outcome.breakdown[name] for name in more} == pytest.approx(more)
    assert outcome.value == outcome.breakdown[scoring]


def test_questions_that_the_original_rather_denies_still_have_an_expectation():
    options = {"llm": FakeLLM(likely, asking="one_by_one"), "assessment_questions": ["Beta?", "Gamma?"]}
    outcome = AlignmentCoverage(**options, scoring="expected").score(TWO)
    assert (outcome.value, "coverage: " in outcome.reason) == (pytest.approx(0.2), True)
    assert AlignmentCoverage(**options, scoring="count").score(TWO).reason == "undefined"


def test_one_by_one_the_claims_are_sentences_with_their_places_and_one_that_stands_twice_counts_once():
    sample = Sample(retrieved_contexts=["One is so. Two is so."], response="Two is so.  Four is so. \nTwo is so.")
    llm = FakeLLM(truth, asking="one_by_one")
    outcome = Faithfulness(llm=llm).score(sample)
    assert [(v.text, v.verdict) for v in outcome.verdicts] == [("Two is so.", S), ("Four is so.", "unsupported")]
    assert (outcome.value, outcome.breakdown) == (0.5, {"supported": 1.0, "claims": 2.0})
    assert [fenced(request)[0]["claim"] for request in llm.requests] == ["Two is so.", "Four is so."]
    for verdict in outcome.verdicts:
        (shown,) = verdict.evidence
        assert (shown.field, shown.chunk, sample.response[shown.start : shown.end]) == ("response", None, verdict.text)


def test_where_nobody_writes_questions_the_source_s_sentences_stand_in_and_say_where_they_stand():
    sample = Sample(retrieved_contexts=["One is so.", "Two is so. One is so."], response="One is so.")
    metric = SummarizationScore(llm=FakeLLM(truth, asking="one_by_one"), length_penalty=False)
    outcome = metric.score(sample)
    assert outcome.value == 0.5, "a sentence that is repeated counts once"
    assert [(v.kind, v.evidence[0].chunk, v.lowers_score) for v in outcome.verdicts] == [
        ("sentence", 0, False),
        ("sentence", 1, True),
    ]
    assert "says 1 of 2 sentences of the source" in outcome.reason
    (kind,) = metric.item_kinds
    assert (kind.kind, kind.origin) == ("sentence", "text")
    writer = FakeLLM(of_questions([Y]))
    assert metric.score(sample).verdicts[0].kind == "sentence"
    written = SummarizationScore(llm=FakeLLM(lambda _: Y, asking="one_by_one"), writer=writer).score(sample)
    assert [v.kind for v in written.verdicts] == ["question"]


# --- parts and questions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "asked"),
    [
        ([f"{i}?" for i in range(9)], [f"{i}?" for i in range(9)]),  # the bound is a stop for small judges
        (["Who?", "Who? "], ["Who?"]),
    ],
)
def test_a_part_that_is_said_twice_counts_once(parts, asked):
    llm = FakeLLM(lambda request: {"parts": parts} if step(request) == "parts" else truth(request))
    assert [v.text for v in ResponseCompleteness(llm=llm).score(SAMPLE).verdicts] == asked


GIVEN = Sample(user_input="When and who?", response="In 1815.", metadata={"asked": ["When?", "Who?"]})


def test_parts_that_the_sample_brings_are_not_asked_for_and_a_journal_tells_others_apart(tmp_path):
    judge = FakeDecisions(lambda question, texts: 0.9 if "When" in question.instruction else 0.2)
    metric = ResponseCompleteness(llm=judge, parts="asked")
    other = GIVEN.model_copy(update={"metadata": {"asked": ["When?"]}})
    for _ in range(2):
        report = evaluate([GIVEN, other], [metric], journal=tmp_path / "j.db", progress=False)
        assert [record.outcome.value for record in report.results()] == pytest.approx([0.55, 0.9])
    assert len(judge.requests) == 2


@pytest.mark.parametrize("metadata", [{}, {"asked": "When?"}, {"asked": []}, {"asked": ["When?", " "]}, {"asked": [3]}])
def test_parts_that_are_none_are_a_reason_and_no_number(metadata):
    judge = FakeDecisions(0.9)
    outcome = ResponseCompleteness(llm=judge, parts="asked").score(GIVEN.model_copy(update={"metadata": metadata}))
    assert (outcome.reason, judge.requests) == ("missing_input", [])
    assert outcome.detail.startswith("metadata.asked")
