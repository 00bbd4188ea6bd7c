"""Claim checkers as judges: what reaches them, what comes back, and which metrics they cannot judge."""

import asyncio
import math
import re
from itertools import pairwise

import numpy as np
import pytest

from ragstone import (
    BaseClaimChecker,
    CitationSupport,
    ContextRecall,
    FactualCorrectness,
    Faithfulness,
    Limits,
    Sample,
    evaluate,
    metrics,
)
from ragstone.batch.estimation import estimate
from ragstone.judging.checkers import ClaimJudge, windows
from ragstone.judging.prompt import tokens
from ragstone.metrics.names import make_metric, metric_class, metric_names
from ragstone.testing import (
    ClaimCheckerContract,
    DecisionContract,
    FakeChecker,
    FakeDecisions,
    FakeEmbedder,
    FakeLLM,
    by_step,
)

SAMPLE = Sample(
    retrieved_contexts=["Emma is by Jane Austen. It rained.", "It came out in 1815."],
    response="Jane Austen wrote Emma [1]. It came out in 1815 [1][2].",
    reference="Jane Austen. In 1815.",
)
CHECKED = [Faithfulness, ContextRecall, CitationSupport, FactualCorrectness]
JOINED = "Emma is by Jane Austen. It rained.\nIt came out in 1815."


class TestFake(ClaimCheckerContract):
    def checker(self):
        return FakeChecker(lambda text, claim: 0.75 if claim in text else 0.25, most_claims=2)


class TestAsDecisionModel(DecisionContract):
    def model(self):
        return ClaimJudge(FakeChecker(0.75))


@pytest.mark.parametrize(
    "breach",
    [
        lambda text, claims: [0.5],
        lambda text, claims: [math.nan for _ in claims],
        lambda text, claims: [i / 10 for i, _ in enumerate(claims)],
    ],
)
def test_what_breaks_the_contract_fails_it(breach):
    held = type("Held", (ClaimCheckerContract,), {"checker": lambda self: Giving(breach)})()
    with pytest.raises(AssertionError):
        held.test_each_claim_has_its_probability_in_order()


@pytest.mark.parametrize(
    ("metric", "calls"),
    [
        (Faithfulness, [(JOINED, ("Jane Austen wrote Emma [1].", "It came out in 1815 [1][2]."))]),
        (ContextRecall, [(JOINED, ("Jane Austen.", "In 1815."))]),
        (
            FactualCorrectness,
            [
                (SAMPLE.reference, ("Jane Austen wrote Emma [1].", "It came out in 1815 [1][2].")),
                (SAMPLE.response, ("Jane Austen.", "In 1815.")),
            ],
        ),
        (
            CitationSupport,
            [
                (SAMPLE.retrieved_contexts[0], ("Jane Austen wrote Emma.", "It came out in 1815.")),
                (JOINED, ("It came out in 1815.",)),
                (SAMPLE.retrieved_contexts[1], ("It came out in 1815.",)),
            ],
        ),
    ],
)
def test_bare_texts_and_bare_claims_reach_the_checker(metric, calls):
    checker = FakeChecker(0.75)
    outcome = metric(llm=checker).score(SAMPLE)
    assert sorted(checker.calls) == sorted(calls)
    assert outcome.usage.llm_calls == len(calls)
    assert outcome.value == (1.0 if metric is CitationSupport else 0.75)


def test_every_other_metric_refuses_it_by_name_when_it_is_made():
    takes = [name for name in metric_names() if metric_class(name).checks_claims]
    assert takes == sorted(kind.name for kind in CHECKED)
    for name in {name for name in metric_names() if metric_class(name).needs_llm} - {*takes}:
        with pytest.raises(ValueError, match=rf"'fake-checker' is a claim checker, .* {name} ") as refused:
            make_metric(name, {}, FakeChecker(0.5), FakeEmbedder(), FakeLLM("yes"))
        assert all(taken in str(refused.value) for taken in takes)
    with pytest.raises(ValueError, match="what polite asks"):
        metrics.Criterion("polite", "Is it polite?", llm=FakeChecker(0.5))
    with pytest.raises(ValueError, match="cannot answer what response_relevancy asks"):
        evaluate([SAMPLE], "rag", llm=FakeChecker(0.5))
    with pytest.raises(TypeError, match="writer: 'fake-checker' is a claim checker, which writes no texts"):
        Faithfulness(llm=FakeLLM("yes"), writer=FakeChecker(0.5))


def test_a_writer_writes_the_claims():
    writer = FakeLLM(by_step(claims=lambda request: {"claims": ["Austen wrote Emma."]}))
    checker = FakeChecker(0.8)
    metric = Faithfulness(llm=checker, writer=writer)
    outcome = metric.score(SAMPLE)
    assert checker.calls == [(JOINED, ("Austen wrote Emma.",))]
    assert (outcome.value, outcome.verdicts[0].verdict, outcome.usage.llm_calls) == (0.8, "supported", 2)
    assert [(kind.choices, kind.origin) for kind in metric.item_kinds] == [(("supported", "unsupported"), "judge")]
    both = FakeLLM(by_step(claims={"response": ["A."], "reference": ["B.", "C."]}))
    FactualCorrectness(llm=checker, writer=both).score(SAMPLE)
    assert checker.calls[1:] == [(SAMPLE.reference, ("A.",)), (SAMPLE.response, ("B.", "C."))]
    decisions = FakeDecisions(0.5)
    Faithfulness(llm=decisions, writer=FakeLLM(KeyError("asked"))).score(SAMPLE)
    assert len(decisions.requests) == 1, "of other decision models' claims the sentences are asked, as before"


def test_a_question_has_its_bare_item():
    judge = FakeDecisions(0.5)
    Faithfulness(llm=judge).score(Sample(retrieved_contexts=["Text."], response="Ann\x00 ran. Bob sat."))
    questions = judge.requests[0].questions.values()
    assert [question.item for question in questions] == ["Ann\ufffd ran.", "Bob sat."]


# --- long texts


def test_windows_overlap_at_sentences_and_hold_the_whole_text():
    sentences = [f"Sentence number {i} says what cat {i} did then." for i in range(60)]
    text = " ".join(sentences)
    cut = windows(text, 60)
    assert all(tokens(window) <= 60 for window in cut)
    assert all(any(f"{a} {b}" in window for window in cut) for a, b in pairwise(sentences))
    assert cut[0].startswith("Sentence number 0 ")
    assert cut[-1].endswith("cat 59 did then.")
    assert len(cut) < 2 * tokens(text) / 60
    assert windows(" Short. ", 60) == ("Short.",)
    assert windows("  ", 1) == ("",)


@pytest.mark.parametrize(
    "text", ["x" * 10_000, "\u732b" * 2_000, "word " * 3_000, "a\n" * 3_000, "\u732b\u304c\u3044\u308b\u3002" * 500]
)
def test_no_window_is_longer_than_the_checker_reads(text):
    cut = windows(text, 100)
    assert max(map(tokens, cut)) <= 100
    assert sum(map(len, cut)) >= len(text.strip())


def test_of_a_long_text_the_window_that_supports_a_claim_most_counts():
    contexts = [f"Filler number {i} says nothing of it." for i in range(100)]
    contexts[70] = "Emma came out in 1815."
    checker = FakeChecker(lambda text, claim: 0.9 if claim in text else 0.1, most_tokens=100, most_claims=2)
    sample = Sample(retrieved_contexts=contexts, response="Emma came out in 1815. Emma is long. Emma is short.")
    outcome = Faithfulness(llm=checker).score(sample)
    assert [verdict.probability for verdict in outcome.verdicts] == [0.9, 0.1, 0.1]
    texts = {text for text, _ in checker.calls}
    assert len(texts) > 5
    assert outcome.usage.llm_calls == len(checker.calls) == 2 * len(texts), "a call for two claims and a window"
    planned = estimate([sample], Faithfulness(llm=checker))
    assert (planned.calls, planned.first_calls) == (len(checker.calls), len(checker.calls))
    capped = evaluate([sample], Faithfulness(llm=checker), limits=Limits(max_calls=3), progress=False)
    assert next(iter(capped.results())).outcome.reason == "over_budget"


def test_a_claim_is_named_by_its_number_in_whichever_window_it_is_refused():
    long = " ".join(f"Filler number {i} says nothing of it." for i in range(40))
    refused = FakeChecker(lambda text, claim: None if claim == "Bob sat." and "number 39" in text else 0.5)
    refused.most_tokens = 100
    outcome = Faithfulness(llm=refused).score(Sample(retrieved_contexts=[long], response="Ann ran. Bob sat. Eve won."))
    assert len(refused.calls) > 2
    assert outcome.detail == "faithfulness.verdict: the decision model refused question 2"


# --- what a checker may do wrong


class Giving(BaseClaimChecker):
    model = "giving"

    def __init__(self, give):
        self.give = give

    def check(self, text, claims, /):
        return self.give(text, claims)


class GivingAsync(BaseClaimChecker):
    model = "giving"

    def __init__(self, give):
        self.give = give

    async def acheck(self, text, claims, /):
        return self.give(text, claims)


@pytest.mark.parametrize("kind", [Giving, GivingAsync])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.9], "did not answer question 2"),
        ([], "did not answer question 1"),
        ([0.9, 0.9, 0.9], "a question 'claim 3' that was not asked"),
        ([0.9, math.nan], "of question 2: 'yes' has nan"),
        ([0.9, math.inf], "of question 2: 'yes' has inf"),
        ([0.9, 10**400], "of question 2: 'yes' has inf"),
        ([0.9, 1.2], "of question 2: 'no' has -0.2, not a finite number of at least 0"),
        ([-0.1, 0.9], "of question 1: 'yes' has -0.1, not a finite number of at least 0"),
        ([0.9, "0.9"], "of question 2: 'yes' has str, not a number"),
        ([0.9, True], "of question 2: 'yes' has bool, not a number"),
        ([0.9, {"yes": 0.9}], "of question 2: 'yes' has dict, not a number"),
        ([0.9, None], "refused question 2"),
        (np.asarray([[0.1, 0.9], [0.1, 0.9]]), "'yes' has list, not a number"),
    ],
)
def test_probabilities_that_cannot_be_used_are_no_number(kind, given, said):
    metric = Faithfulness(llm=kind(lambda text, claims: given))
    for outcome in (metric.score(SAMPLE), asyncio.run(metric.ascore(SAMPLE))):
        assert outcome.reason == "judge_unparseable"
        assert re.search(said, outcome.detail), outcome.detail


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "Giving: check and acheck must return probabilities, not NoneType"),
        ("0.9", "not str"),
        (0.9, "not float"),
        ({"1": 0.9}, "not dict"),
        (ConnectionError("down"), "ConnectionError: down"),
    ],
)
def test_what_is_no_list_and_what_is_raised_is_the_checkers_error(given, said):
    def give(text, claims):
        if isinstance(given, Exception):
            raise given
        return given

    with pytest.raises((TypeError, ConnectionError)):
        Faithfulness(llm=Giving(give)).score(SAMPLE)
    (record,) = evaluate([SAMPLE], Faithfulness(llm=Giving(give)), progress=False).results()
    assert record.outcome.reason == "judge_error"
    assert said in record.outcome.detail


def test_a_checker_that_does_not_answer_is_timed_out():
    class Hanging(BaseClaimChecker):
        model = "hanging"

        async def acheck(self, text, claims, /):
            await asyncio.Event().wait()

    limits = Limits(call_timeout=0.05)
    (record,) = evaluate([SAMPLE], Faithfulness(llm=Hanging()), limits=limits, progress=False).results()
    assert record.outcome.reason == "timeout"


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (np.asarray([0.1, 0.2], dtype=np.float16), float(np.float16(0.1)) / 2 + float(np.float16(0.2)) / 2),
        ((0, 1), 0.5),
    ],
)
def test_any_numbers_in_order_will_do(given, outcome):
    assert Faithfulness(llm=Giving(lambda text, claims: given)).score(SAMPLE).value == outcome


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"most_claims": 0}, "most_claims: 0"),
        ({"most_tokens": "many"}, "most_tokens: 'many'"),
    ],
)
def test_a_checker_whose_facts_are_wrong_is_refused(facts, said):
    checker = FakeChecker(0.5)
    for name, value in facts.items():
        setattr(checker, name, value)
    with pytest.raises((ValueError, TypeError), match=said):
        Faithfulness(llm=checker)


def test_half_a_checker_is_told_of_the_base_class():
    class Half:
        model = "half"
        most_claims = 4

        def check(self, text, claims):
            return [0.5 for _ in claims]

    with pytest.raises(TypeError, match="Half has no acheck; ragstone.BaseClaimChecker makes one"):
        Faithfulness(llm=Half())
    with pytest.raises(TypeError, match="must define check or acheck"):
        type("Neither", (BaseClaimChecker,), {})


def test_a_journal_tells_checkers_apart_by_their_identity_and_pays_once(tmp_path):
    first, other = FakeChecker(0.75), FakeChecker(0.25)
    other.identity = "another"
    options = {"journal": tmp_path / "j.db", "progress": False}
    for _ in range(2):
        (record,) = evaluate([SAMPLE], "faithfulness", llm=first, **options).results()
        assert (record.outcome.value, record.judge, len(first.calls)) == (0.75, "fake-checker", 1)
    (record,) = evaluate([SAMPLE], "faithfulness", llm=other, **options).results()
    assert record.outcome.value == 0.25


def test_a_checker_in_this_process_is_asked_in_turn():
    running: list[int] = []
    most: list[int] = []

    class InProcess(BaseClaimChecker):
        model, identity, in_turn = "in-process", "", True

        async def acheck(self, text, claims, /):
            running.append(1)
            most.append(len(running))
            await asyncio.sleep(0)
            running.pop()
            return [0.5 for _ in claims]

    samples = [SAMPLE.model_copy(update={"response": f"Answer {i}."}) for i in range(6)]
    report = evaluate(samples, Faithfulness(llm=InProcess()), progress=False)
    assert [record.outcome.value for record in report.results()] == [0.5] * 6
    assert max(most) == 1
