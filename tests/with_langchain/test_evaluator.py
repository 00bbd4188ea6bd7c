"""A metric as an evaluator: what a result holds, that it never raises, and graphs' and agents' states as they are."""

import asyncio
import copy
import json
import pickle

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from pydantic import SecretStr

from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, Sample
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_langchain import LangChainEmbedder, LangChainLLM, RagEvaluator

from ..support.keys import ERRORS, KEYS, OWN, leaked  # noqa: TID252
from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, judge, relevancy

DOCUMENTS = [Document(FIRST), Document(SECOND)]
PARTS = {"inputs": QUESTION, "outputs": ANSWER, "context": DOCUMENTS}
STATE = {"question": QUESTION, "context": DOCUMENTS, "answer": AIMessage(ANSWER)}


def called(evaluator, **parts):
    """Call it each way that a call is made; all ways give the same, but for the time it took."""
    before = copy.deepcopy(parts)
    results = [
        evaluator(**parts),
        asyncio.run(evaluator.acall(**parts)),
        evaluator.as_runnable().invoke(parts),
        asyncio.run(evaluator.as_runnable().ainvoke(parts)),
    ]
    assert parts == before
    for result in results:
        assert result == json.loads(json.dumps(result))
        result["metadata"]["usage"]["seconds"] = 0
    assert results[1:] == results[:-1]
    return results[0]


@pytest.mark.parametrize(
    ("threshold", "passed", "word"), [(None, None, None), (VALUE, True, "passed"), (0.9, False, "failed")]
)
def test_a_score_is_passed_on_with_all_that_it_rests_on(threshold, passed, word) -> None:
    metric = relevancy(threshold=threshold)
    result = called(RagEvaluator(metric), **PARTS)
    outcome = metric.score(Sample(user_input=QUESTION, retrieved_contexts=[FIRST, SECOND], response=ANSWER))
    assert result == {
        "key": "context_relevancy",
        "score": VALUE,
        "comment": outcome.reason,
        "metadata": {
            "metric": "context_relevancy",
            "version": metric.version,
            "judge": "fake",
            "passed": passed,
            "unscored": None,
            "breakdown": outcome.breakdown,
            "verdicts": [verdict.model_dump(mode="json") for verdict in outcome.verdicts],
            "usage": outcome.usage.model_copy(update={"seconds": 0}).model_dump(mode="json"),
        },
    }
    strings = RagEvaluator(metric).evaluate_strings(
        prediction=ANSWER, input=QUESTION, callbacks=None, context=DOCUMENTS
    )
    assert set(strings) == {"score", "value", "reasoning", "metadata"}
    assert (strings["score"], strings["value"]) == (VALUE, word)
    nothing = RagEvaluator(metric).evaluate_strings(prediction=ANSWER, input=QUESTION)
    assert (nothing["score"], nothing["value"]) == (None, None)
    assert nothing["reasoning"].startswith("missing_input: retrieved_contexts: ")


UNSCORED = {
    "missing_input": (judge(), {"context": None}),
    "empty_input": (judge(), {"context": [" "]}),
    "judge_unparseable": (FakeLLM(lambda request: "yes and no"), {}),
    "judge_error": (FakeLLM(lambda request: ConnectionError("refused")), {}),
    "timeout": (FakeLLM(lambda request: TimeoutError("no reply")), {}),
}


@pytest.mark.parametrize("reason", UNSCORED)
def test_what_cannot_be_scored_has_no_score_and_says_why(reason) -> None:
    llm, parts = UNSCORED[reason]
    result = called(RagEvaluator(ContextRelevancy(llm=llm, threshold=0.5)), **{**PARTS, **parts})
    assert result["comment"].startswith(f"{reason}: ")
    metadata = result["metadata"]
    assert (result["score"], metadata["passed"], metadata["unscored"]) == (None, None, reason)
    assert (metadata["breakdown"], metadata["verdicts"]) == ({}, [])


def test_what_was_spent_before_the_judge_failed_is_known_and_what_is_no_exception_is_not_swallowed() -> None:
    replies = iter([{"ids": [99]}, ConnectionError("refused")])
    result = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: next(replies))))(**PARTS)
    assert (result["score"], result["metadata"]["usage"]["llm_calls"]) == (None, 2)

    def stop(request):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RagEvaluator(ContextRelevancy(llm=FakeLLM(stop)))(**PARTS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fields": {"question": "q"}}, "fields: 'question' is not one of 'user_input', "),
        ({"fields": {"response": 7}}, "fields: the key of response is int, not text"),
        ({"fields": "response"}, "fields: is str; pass a mapping"),
        ({"retriever_tools": "search"}, r"retriever_tools: is one text; pass the names as \['search'\]"),
        ({"metric": ContextRelevancy}, "metric: is the class ContextRelevancy; pass a metric"),
    ],
)
def test_what_no_sample_can_come_of_is_refused_at_once(options, said) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        RagEvaluator(**{"metric": relevancy(), **options})


def test_a_metric_by_name_is_judged_by_a_langchain_model() -> None:
    model = FakeListChatModel(responses=['{"ids": [1]}'])
    assert RagEvaluator("context_relevancy", llm=model)(**PARTS)["score"] == VALUE
    relevancy = RagEvaluator("response_relevancy", llm=model, embedder=DeterministicFakeEmbedding(size=4))
    assert isinstance(relevancy.metric.judge_embedder, LangChainEmbedder)
    assert RagEvaluator("context_relevancy", llm=judge())(**PARTS)["score"] == VALUE
    with pytest.raises(ValueError, match="there is no metric 'relevancy'; there are "):
        RagEvaluator("relevancy", llm=model)
    with pytest.raises(TypeError, match="llm: is None"):
        RagEvaluator("context_relevancy")


def test_the_options_reach_the_reading() -> None:
    state = {"q": QUESTION, "found": DOCUMENTS, "n": 1}
    evaluator = RagEvaluator(relevancy(), fields={"user_input": "q", "retrieved_contexts": "found"})
    assert called(evaluator, outputs=state)["score"] == VALUE
    raising = called(RagEvaluator(relevancy(), fields=lambda **_: 1 / 0), outputs=state)
    assert raising["comment"] == "missing_input: fields: the function raised ZeroDivisionError: division by zero"
    messages = [("user", QUESTION), {"role": "tool", "name": "search", "content": FIRST}, ("ai", ANSWER)]
    assert called(RagEvaluator(relevancy(), retriever_tools=["search"]), outputs=messages)["score"] == 0.5


def test_what_else_it_is_called_with_is_not_read_but_a_reference_where_fields_says_so() -> None:
    assert RagEvaluator(relevancy())(**PARTS, reference_outputs="x", rubric="theirs")["score"] == VALUE
    evaluator = RagEvaluator(
        AlignmentCoverage(llm=judge()),
        fields=lambda outputs, reference_outputs, **_: {"user_input": reference_outputs, "response": outputs},
    )
    assert evaluator.evaluate_strings(prediction=ANSWER, reference=ANSWER)["score"] == 1.0


AGENT = [("user", QUESTION), {"role": "tool", "content": "", "artifact": DOCUMENTS}, ("ai", ANSWER)]
STATES = {
    "a state": STATE,
    "outputs beside others": {"input": STATE, "outputs": STATE},
    "keywords": {"inputs": QUESTION, "outputs": {"answer": ANSWER}, "context": DOCUMENTS, "reference_outputs": {}},
    "the question beside the outputs": {"question": QUESTION, "outputs": ANSWER, "context": DOCUMENTS},
    "messages": AGENT,
}


def test_a_step_of_a_chain_takes_the_state_or_the_calls_keywords() -> None:
    step = RagEvaluator(relevancy()).as_runnable()
    for form, state in STATES.items():
        results = [step.invoke(state), asyncio.run(step.ainvoke(state)), *step.batch([state, state])]
        assert [result["score"] for result in results] == [VALUE] * 4, form
    chain = RunnableLambda(lambda _: STATE) | RunnablePassthrough.assign(relevancy=step)
    assert chain.invoke("x").pop("relevancy")["score"] == VALUE


def test_the_step_and_the_evaluator_can_be_pickled_also_after_use() -> None:
    evaluator = RagEvaluator(ContextRelevancy(llm=LangChainLLM(FakeListChatModel(responses=['{"ids": [1]}']))))
    state = {"question": "Who?", "answer": "Jane.", "context": "Jane wrote it."}
    assert evaluator(outputs=state)["score"] == 1.0
    assert pickle.loads(pickle.dumps(evaluator))(outputs=state)["score"] == 1.0
    assert pickle.loads(pickle.dumps(evaluator.as_runnable())).invoke(state)["score"] == 1.0


def test_what_an_app_returns_when_it_fails_is_no_answer() -> None:
    evaluator = RagEvaluator(ResponseRelevancy(llm=judge(), embedder=FakeEmbedder()))
    for outputs in ({"error": "rate limited"}, {"status": "ok"}, {"thread_id": "u-42"}):
        result = evaluator(inputs="Who?", outputs=outputs)
        assert result["comment"].startswith("missing_input: response: is not in outputs")


def test_a_lone_text_is_the_question_only_where_there_is_no_other() -> None:
    for inputs, outputs in (
        ({"language": "en"}, {"messages": [("user", QUESTION), ("ai", "A.")]}),
        ({"tenant": "u-42"}, {"question": QUESTION, "answer": "A."}),
        ({"anything": QUESTION}, "A."),
    ):
        evaluator = RagEvaluator(relevancy())
        evaluator(inputs=inputs, outputs=outputs, context=["It is A."])
        assert QUESTION in evaluator.metric.llm.requests[0].user


def test_an_object_that_fails_when_it_is_looked_into_is_a_comment() -> None:
    class Broken(dict):
        def items(self):
            raise RuntimeError("no database")

        __getitem__ = items

    result = RagEvaluator(relevancy())(inputs="Who?", outputs=Broken(answer="A."))
    assert result["score"] is None
    assert "no database" in result["comment"]


class Keyed(FakeListChatModel):
    api_key: SecretStr = SecretStr(OWN)

    def _call(self, messages, *args, **kwargs):
        raise ConnectionError(self.responses[0])


def test_no_key_is_in_a_result():
    models = [Keyed(responses=[ERRORS[key]]) for key in KEYS]
    for model in [*models, models[-1].with_retry(stop_after_attempt=1)]:  # whose key is inside
        result = RagEvaluator(ContextRelevancy(llm=LangChainLLM(model)))(**PARTS)
        assert "[hidden]" in result["comment"]
        assert leaked(json.dumps(result)) == []
