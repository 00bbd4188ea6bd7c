"""Whatever a judge may say: one re-ask that says what was wrong, then Unscored, never an exception."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMReply,
    Sample,
    Score,
    Unscored,
)
from ragstone.metrics.names import make_metric
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import obliging, step, truth  # noqa: TID252

SAMPLE = Sample(
    user_input="Alpha is so. Beta is so?", retrieved_contexts=["Alpha is so. Beta is so."], response="Alpha is so [1].",
    reference="Alpha is so.",
)  # fmt: skip
AGAIN = "\n\nYour previous reply could not be used: "


def answers(**words):
    return {"answers": {"1": "yes", "2": "yes"} | {name.removeprefix("q"): word for name, word in words.items()}}


def verdict(word="supported", evidence=(1,), **more):
    return {"verdicts": {"1": {"verdict": word, "evidence": list(evidence)} | more}}


def questions(n, text="Why?", flag=False):
    return {"questions": [{"question": text, "noncommittal": flag}] * n}


# By step: a reply of another form, and what is of the form and yet no answer. What else a form refuses: test_parsing.
# Two claims, two sentences, five questions made, three written.
TOGETHER = {
    "summarization_score.questions": [{"items": [{"keyphrase": "k", "question": " "}]}],
    "summarization_score.answers": [{"answers": {"1": "yes"}}],
    "alignment_coverage.claims": [{"claims": [" "]}, {"result": []}],
    "alignment_coverage.questions": [{"questions": ["a", "b", "c", "d"]}, {"questions": ["a", "b", "c", "d", " "]}],
    "alignment_coverage.verdicts": [
        verdict(evidence=[3]),
        verdict(score=1),
        {"verdicts": {"77": {"verdict": "supported", "evidence": []}}},
    ],
    "alignment_coverage.source_answers": [answers(q1="Yes")],
    "alignment_coverage.summary_answers": [{"answers": {"1": "yes", "77": "yes"}}],
    "faithfulness.verdicts": [verdict(evidence=[0])],
    "context_recall.claims": [{"claims": [" "]}],
    "context_recall.verdicts": [verdict("yes")],
    "factual_correctness.claims": [{"response": ["A."]}, {"response": ["A."], "reference": [""]}],
    "factual_correctness.verdicts": [verdict(), {"response": verdict()["verdicts"], "reference": {}}],
    "citation_support.supported": [{"answers": {"2": "yes"}}, {"answers": {"1": "supported"}}],
    "context_precision.useful": [{"answers": {}}, {"answers": {"1": "useful"}}],
    "response_relevancy.questions": [
        questions(2),
        questions(4),
        {"questions": questions(2)["questions"] + questions(1, " ")["questions"]},
    ],
    "response_completeness.parts": [{"parts": []}, {"parts": ["Why?", " "]}],
    "response_completeness.answered": [{"answers": {"1": "maybe"}}],
    "context_relevancy.sentences": [{"ids": [99]}, {"ids": [0]}, {"ids": [1, 1]}],
}
MADE = ["Does it say: Alpha is so.", "Does it say: Beta is so."]
ALONE = {
    "summarization_score.says": ["supported"],
    "summarization_score.answer": ["yes, because it says so", "Answer: yes", "Hm.</think>Then: yes"],
    "alignment_coverage.verdict": ["yes\nno", {"verdict": "yes"}, "supported"],
    "faithfulness.verdict": ["cannot_tell", ["yes"]],
    "context_recall.verdict": ["supported"],
    "factual_correctness.verdict": ["supported"],
    "citation_support.verdict": ["[1]"],
    "context_precision.context": ["useful"],
    "alignment_coverage.source_answer": ["perhaps", "true", ""],
    "alignment_coverage.summary_answer": [
        LLMReply("yes", probabilities={"maybe": 1.0}),
        LLMReply("yes", probabilities={"yes": 1.5, "no": -0.5, "cannot_tell": 0.0}),
    ],
    "response_relevancy.questions": [{"questions": ["a", "b"]}, {"questions": ["a", "b", " "]}, questions(3)],
    "response_relevancy.open": ["answered", "yes or no", "null", "\x00"],
    "response_completeness.part": ["partly", LLMReply("yes", probabilities={"yes": 1.0})],
    "context_relevancy.sentence": [
        LLMReply("yes", probabilities={"yes": float("nan"), "no": 0.5}),
        "[" * 3000,
    ],
    "context_relevancy.passage": ["Insufficient Information"],
}
CASES = [
    pytest.param(asking, task, bad, id=f"{asking}-{task}-{i}")
    for asking, steps in (("together", TOGETHER), ("one_by_one", ALONE))
    for task, replies in steps.items()
    for i, bad in enumerate(replies)
]


def build(asking, task, reply):
    """A metric that has this step, with a judge that answers it by `reply` and the others truthfully."""
    llm = FakeLLM(lambda request: reply(request) if request.task == task else truth(request), asking=asking)
    options = {}
    if "answer" in task and not task.startswith("response"):
        options = {"questions" if task.startswith("summarization") else "assessment_questions": MADE}
    return make_metric(task.partition(".")[0], options, llm, FakeEmbedder())


@pytest.mark.parametrize(("asking", "task", "bad"), CASES)
def test_a_bad_reply_is_asked_for_once_more_and_then_not_scored(asking, task, bad):
    check_twice(metric := build(asking, task, lambda request: bad), metric.score(SAMPLE), task)


def check_twice(metric, outcome, task):
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "judge_unparseable"
    assert outcome.detail.startswith(f"{task}: ")
    assert "asked twice" in outcome.detail
    outcome.model_dump_json().encode()
    requests = metric.llm.requests
    assert outcome.usage.llm_calls == len(requests)
    asked, repeated = ([r for r in requests if r.task == task and (AGAIN in r.user) is b] for b in (False, True))
    assert len(repeated) == len(asked) >= 1
    for request in repeated:
        user, _, behind = request.user.partition(AGAIN)
        (first,) = {(r.system, r.schema and repr(r.schema), r.choices) for r in asked if r.user == user}
        assert (request.system, repr(request.schema), request.choices) == first
        what = behind.split(". Reply again")[0]
        assert what
        assert what in outcome.detail
        assert "\n" not in what
        assert len(what) <= 300
        request.user.encode()
        assert "\x00" not in request.user


@pytest.mark.parametrize(("asking", "task"), [("together", t) for t in TOGETHER] + [("one_by_one", t) for t in ALONE])
def test_a_good_second_reply_scores_like_a_good_first(asking, task):
    said = Counter()

    def at_first(request):
        key = request.user.partition(AGAIN)[0]
        said[key] += 1
        return "pardon?" if said[key] == 1 else truth(request)

    outcome, plain = build(asking, task, at_first).score(SAMPLE), build(asking, task, truth).score(SAMPLE)
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.breakdown, outcome.verdicts) == (plain.value, plain.breakdown, plain.verdicts)
    assert outcome.usage.llm_calls == plain.usage.llm_calls + len(said)
    assert set(said.values()) == {2}


SAID = st.text(st.characters(codec=None, categories=None), max_size=60) | st.sampled_from(
    ["null", "[1]", '{"ids": "1"}']
)
STEPS = st.sampled_from([case.values[:2] for case in CASES])


@settings(max_examples=150, deadline=None)
@given(text=SAID, where=STEPS)
def test_any_text_as_a_reply_gives_an_outcome_in_at_most_two_calls(text, where):
    metric = build(*where, lambda request: text)
    outcome = metric.score(SAMPLE)
    outcome.model_dump_json().encode()
    if isinstance(outcome, Unscored):
        assert outcome.reason in ("judge_unparseable", "undefined")
    per_ask = Counter(request.user.partition(AGAIN)[0] + request.task for request in metric.llm.requests)
    draws = Counter(r.user + r.task for r in metric.llm.requests if AGAIN not in r.user)
    assert all(count <= 2 * draws[ask] for ask, count in per_ask.items())


def test_a_judge_that_lists_without_end_is_stopped_by_the_budget():
    """A hundred thousand claims do not fit the next prompt: the outcome says so."""

    def reply(request):
        if step(request) == "claims":
            return {"claims": [f"Claim number {i}." for i in range(100_000)]}
        return obliging(request)

    outcome = AlignmentCoverage(llm=FakeLLM(reply)).score(SAMPLE)
    assert outcome.reason == "over_budget"
    assert "claims" in outcome.detail


CUT_OFF = ("length", "max_tokens", "MAX_TOKENS", "maxTokens", "max_output_tokens", "model_length", "FinishReason.MAX_TOKENS",
           "model_context_window_exceeded", "ERROR_LIMIT")  # fmt: skip
WITHHELD = ("content_filter", "content_filtered", "contentFiltered", "SAFETY", "RECITATION", "PROHIBITED_CONTENT",
            "BLOCKLIST", "SPII", "LANGUAGE", "IMAGE_SAFETY", "guardrail_intervened", "refusal", "ERROR_TOXIC",
            "content_filter: RECITATION", "blocked: OTHER")  # fmt: skip
BROKEN = [(asking, task) for asking, steps in (("together", TOGETHER), ("one_by_one", ALONE)) for task in steps]


@pytest.mark.parametrize(("asking", "task"), BROKEN)
@pytest.mark.parametrize("tokens", [512, None])
def test_a_cut_off_reply_says_so_with_the_way_out_and_is_not_asked_for_again(asking, task, tokens):
    metric = build(asking, task, lambda request: LLMReply('{"claims": ["Al', 90, tokens, ended="length"))
    outcome = metric.score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert outcome.detail.startswith(f"{task}: the reply was cut off (length); raise max_tokens")
    assert ("; it stopped at 512 tokens. " in outcome.detail) == (tokens is not None)
    assert "What there is of it: it is not " in outcome.detail
    assert not any(AGAIN in request.user for request in metric.llm.requests)


@pytest.mark.parametrize(("asking", "task"), BROKEN)
def test_a_withheld_reply_says_so_and_is_neither_read_nor_asked_for_again(asking, task):
    def whole(request):
        reply = truth(request)
        return replace(
            reply if isinstance(reply, LLMReply) else FakeLLM(lambda _: reply).generate(request), ended="SAFETY"
        )

    metric = build(asking, task, whole)
    outcome = metric.score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert outcome.detail.startswith(f"{task}: the reply was withheld by a filter or refused by the model (SAFETY); ")
    assert not any(AGAIN in request.user for request in metric.llm.requests)


@pytest.mark.parametrize("ended", [*CUT_OFF, *WITHHELD])
def test_a_provider_has_its_own_word_for_it(ended):
    judge = FakeLLM(lambda request: LLMReply("", ended=ended))
    outcome = ContextRelevancy(llm=judge).score(SAMPLE)
    assert (f"({ended})" in outcome.detail, len(judge.requests)) == (True, 1)
    assert ("raise max_tokens" in outcome.detail) == (ended in CUT_OFF)


def test_a_cut_off_reply_of_any_adapter_is_not_read_where_it_holds_thoughts():
    """The closing mark may be one that the thoughts quote."""
    thoughts = 'It says </think>{"ids": [1]}'
    for ended, value in (("stop", 0.5), (None, 0.5), ("length", None)):
        outcome = ContextRelevancy(llm=FakeLLM(lambda _, ended=ended: LLMReply(thoughts, ended=ended))).score(SAMPLE)
        assert getattr(outcome, "value", None) == value
