"""A metric as an evaluator: what a result holds, that it never raises, and each form that it comes in."""

import asyncio
import copy
import inspect
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from pydantic import SecretStr

from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, Sample, SummarizationScore
from ragstone.errors import score_safely
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_langchain import LangChainLLM, RagEvaluator

from ..core.judges import truth  # noqa: TID252
from ..support.keys import ERRORS, KEYS, OWN, leaked  # noqa: TID252
from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, NeedsNothing, judge, relevancy

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


def test_a_score_is_passed_on_with_all_that_it_rests_on():
    metric = relevancy(threshold=0.2)
    result = called(RagEvaluator(metric), **PARTS)
    outcome = metric.score(Sample(user_input=QUESTION, retrieved_contexts=[FIRST, SECOND], response=ANSWER))
    assert set(result) == {"key", "score", "comment", "metadata"}
    assert (result["key"], result["score"]) == ("context_relevancy", VALUE)
    assert result["comment"] == outcome.reason
    assert result["metadata"] == {
        "metric": "context_relevancy",
        "version": metric.version,
        "judge": "fake",
        "passed": True,
        "unscored": None,
        "breakdown": outcome.breakdown,
        "verdicts": [verdict.model_dump(mode="json") for verdict in outcome.verdicts],
        "usage": outcome.usage.model_copy(update={"seconds": 0}).model_dump(mode="json"),
    }
    assert result["metadata"]["verdicts"][0]["evidence"][0]["text"] == "It has word1 here."


@pytest.mark.parametrize(("threshold", "passed"), [(None, None), (VALUE, True), (0.9, False)])
def test_passing_is_known_where_there_is_a_threshold(threshold, passed):
    assert called(RagEvaluator(relevancy(threshold=threshold)), **PARTS)["metadata"]["passed"] is passed


UNSCORED = {
    "missing_input": (judge(), {"context": None}),
    "empty_input": (judge(), {"context": [" "]}),
    "judge_unparseable": (FakeLLM(lambda request: "yes and no"), {}),
    "judge_error": (FakeLLM(lambda request: ConnectionError("refused")), {}),
    "timeout": (FakeLLM(lambda request: TimeoutError("no reply")), {}),
}


@pytest.mark.parametrize("reason", UNSCORED)
def test_what_cannot_be_scored_has_no_score_and_says_why(reason):
    llm, parts = UNSCORED[reason]
    result = called(RagEvaluator(ContextRelevancy(llm=llm, threshold=0.5)), **{**PARTS, **parts})
    assert result["score"] is None
    assert result["comment"].startswith(f"{reason}: ")
    assert result["metadata"]["unscored"] == reason
    assert result["metadata"]["passed"] is None
    assert (result["metadata"]["breakdown"], result["metadata"]["verdicts"]) == ({}, [])


def test_an_undefined_score_is_none():
    result = called(RagEvaluator(AlignmentCoverage(llm=judge())), inputs=FIRST, outputs="no sentence")
    assert (result["score"], result["metadata"]["unscored"]) == (None, "undefined")


def test_what_is_unreadable_costs_no_call():
    llm = judge()
    result = called(RagEvaluator(ContextRelevancy(llm=llm)), inputs=QUESTION, outputs=ANSWER, context=[FIRST, 7])
    assert result["comment"].startswith(
        "missing_input: retrieved_contexts: context[1] is int, not text or a Document; pass "
    )
    assert (llm.requests, result["metadata"]["usage"]["llm_calls"]) == ([], 0)


def test_what_was_spent_before_the_judge_failed_is_known():
    replies = iter([{"ids": [99]}, ConnectionError("refused")])
    result = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: next(replies))))(**PARTS)
    assert (result["score"], result["metadata"]["usage"]["llm_calls"]) == (None, 2)


def test_what_is_no_exception_is_not_swallowed():
    def stop(request):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RagEvaluator(ContextRelevancy(llm=FakeLLM(stop)))(**PARTS)


ALL = [
    SummarizationScore(llm=judge()),
    AlignmentCoverage(llm=judge()),
    AlignmentCoverage(llm=judge(), source="retrieved_contexts"),
    ResponseRelevancy(llm=judge(), embedder=FakeEmbedder()),
    relevancy(),
    relevancy(asking="one_by_one"),
]


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
@pytest.mark.parametrize("original", ["inputs", "context"])
def test_every_metric_scores_as_it_does_without_langchain(metric, original):
    question = FIRST if metric.source_field else QUESTION
    sample = Sample(user_input=question, retrieved_contexts=[FIRST], response=ANSWER)
    parts = {"inputs": question, "context": FIRST}
    if metric.source_field and not metric.source_chosen:
        parts = {original: FIRST}
    outcome, result = score_safely(metric, sample), called(RagEvaluator(metric), outputs=ANSWER, **parts)
    assert result["score"] == outcome.value
    assert result["metadata"]["breakdown"] == outcome.breakdown
    assert len(result["metadata"]["verdicts"]) == len(outcome.verdicts)


def test_one_evaluator_serves_many_at_once():
    evaluator = RagEvaluator(relevancy())
    contexts = [["It has word1 here.", *(f"It has item{i} here." for i in range(n))] for n in range(30)]
    expected = [1 / n for n in range(1, 31)]

    def call(context):
        return evaluator(inputs=QUESTION, outputs=ANSWER, context=context)["score"]

    async def all_at_once():
        calls = [evaluator.acall(inputs=QUESTION, outputs=ANSWER, context=context) for context in contexts]
        return [result["score"] for result in await asyncio.gather(*calls)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, contexts)) == expected
    assert asyncio.run(all_at_once()) == expected


def test_it_works_inside_a_running_loop():
    async def inside():
        return RagEvaluator(relevancy())(**PARTS)["score"]

    assert asyncio.run(inside()) == VALUE


# --- how it is made ------------------------------------------------------------------------------------------------


def test_the_key_is_the_metrics_name_unless_given():
    assert RagEvaluator(relevancy()).key == "context_relevancy"
    evaluator = RagEvaluator(relevancy(), key="padding")
    assert (evaluator.key, evaluator(**PARTS)["key"], evaluator.evaluation_name) == ("padding",) * 3
    assert repr(evaluator) == "RagEvaluator(context_relevancy, key='padding')"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (
            {"fields": {"question": "q"}},
            ValueError,
            "fields: 'question' is not one of 'user_input', 'retrieved_contexts'",
        ),
        ({"fields": {"response": 7}}, ValueError, "fields: the key of response is int, not text (str)"),
        (
            {"fields": "response"},
            TypeError,
            "fields: is str; pass a mapping from a sample's field to a key, or a funct",
        ),
        ({"retriever_tools": "search"}, TypeError, "retriever_tools: is one text; pass the names as ['search']"),
        ({"metric": ContextRelevancy}, TypeError, "metric: is the class ContextRelevancy; pass a metric, such as rags"),
        ({"metric": None}, TypeError, "metric: is None; pass a metric"),
    ],
)
def test_what_no_sample_can_come_of_is_refused_at_once(options, error, said):
    with pytest.raises(error) as refused:
        RagEvaluator(**{"metric": relevancy(), **options})
    assert str(refused.value).startswith(said)


def test_the_options_reach_the_reading():
    state = {"q": QUESTION, "found": DOCUMENTS, "n": 1}
    evaluator = RagEvaluator(relevancy(), fields={"user_input": "q", "retrieved_contexts": "found"})
    assert called(evaluator, outputs=state)["score"] == VALUE
    nowhere = called(RagEvaluator(relevancy(), fields={"user_input": "ask"}), outputs=state)
    assert nowhere["score"] is None
    assert nowhere["comment"].startswith("missing_input: user_input: the key 'ask', which fields= names, is not in ")
    raising = called(RagEvaluator(relevancy(), fields=lambda **_: 1 / 0), outputs=state)
    assert raising["comment"] == "missing_input: fields: the function raised ZeroDivisionError: division by zero"
    messages = [("user", QUESTION), {"role": "tool", "name": "search", "content": FIRST}, ("ai", ANSWER)]
    assert called(RagEvaluator(relevancy(), retriever_tools=["search"]), outputs=messages)["score"] == 0.5


# --- openevals ------------------------------------------------------------------------------------------------------


def test_it_is_called_as_openevals_calls_evaluators():
    types = pytest.importorskip("openevals.types")
    evaluator = RagEvaluator(relevancy())
    theirs = inspect.signature(types.SimpleEvaluator.__call__).parameters
    ours = inspect.signature(evaluator).parameters
    for name, parameter in theirs.items():
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
            assert ours[name].kind is parameter.kind
    assert set(evaluator(**PARTS)) >= set(types.EvaluatorResult.__required_keys__) - {"source_run_id"}
    assert evaluator(**PARTS, reference_outputs="x", rubric="theirs")["score"] == VALUE  # whatever else they pass


# --- a step of a chain ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        STATE,
        {"input": STATE, "outputs": STATE},
        {"outputs": STATE},
        {
            "inputs": {"question": QUESTION},
            "outputs": {"answer": ANSWER},
            "context": DOCUMENTS,
            "reference_outputs": {},
        },
        [("user", QUESTION), {"role": "tool", "content": "", "artifact": DOCUMENTS}, ("ai", ANSWER)],
        {"messages": [("user", QUESTION), {"role": "tool", "content": "", "artifact": DOCUMENTS}, ("ai", ANSWER)]},
    ],
)
def test_a_step_of_a_chain_takes_the_state_or_the_calls_keywords(state):
    before = copy.deepcopy(state)
    step = RagEvaluator(relevancy()).as_runnable()
    assert step.invoke(state)["score"] == VALUE
    assert [result["score"] for result in step.batch([state, state])] == [VALUE, VALUE]
    assert asyncio.run(step.ainvoke(state))["score"] == VALUE
    assert [result["score"] for result in asyncio.run(step.abatch([state, state]))] == [VALUE, VALUE]
    assert state == before


def test_a_chains_state_gets_the_result_as_another_entry():
    rag = RunnablePassthrough.assign(context=lambda _: DOCUMENTS, answer=lambda _: AIMessage(ANSWER))
    chain = rag.assign(relevancy=RagEvaluator(relevancy()).as_runnable())
    state = chain.invoke({"question": QUESTION})
    assert (state["relevancy"]["score"], state["answer"].content) == (VALUE, ANSWER)
    assert asyncio.run(chain.ainvoke({"question": QUESTION}))["relevancy"]["score"] == VALUE


def test_an_answer_alone_is_not_taken_for_the_question_too():
    for answer in (ANSWER, AIMessage(ANSWER), AIMessage(ANSWER).model_dump()):
        chain = RunnableLambda(lambda _, answer=answer: answer) | RagEvaluator(relevancy()).as_runnable()
        comment = chain.invoke(QUESTION)["comment"]
        assert comment.startswith("missing_input: user_input: is not in inputs (None) or outputs")
    alone = RagEvaluator(relevancy()).as_runnable().invoke({"draft": ANSWER})
    assert alone["comment"].startswith("missing_input: user_input: ")


def test_the_steps_config_is_passed_on():
    class Starts(BaseCallbackHandler):
        def __init__(self):
            self.seen = []

        def on_chain_start(self, serialized, inputs, *, name=None, tags=None, metadata=None, **kwargs):
            self.seen.append((name, tuple(tags), metadata["who"]))

    step = RagEvaluator(relevancy(), key="padding").as_runnable()
    for run in (step.invoke, lambda *args: asyncio.run(step.ainvoke(*args))):
        starts = Starts()
        run(STATE, {"callbacks": [starts], "tags": ["t"], "metadata": {"who": "me"}})
        assert starts.seen == [("ragstone:padding", ("t",), "me")]


# --- as LangChain's string evaluators -------------------------------------------------------------------------------


def strings(evaluator, **parts):
    now, later = evaluator.evaluate_strings(**parts), asyncio.run(evaluator.aevaluate_strings(**parts))
    for result in (now, later):
        result["metadata"]["usage"]["seconds"] = 0
    assert now == later
    return now


@pytest.mark.parametrize("contexts", [{"contexts": [FIRST, SECOND]}, {"context": DOCUMENTS}])
@pytest.mark.parametrize(("threshold", "value"), [(None, None), (0.1, "passed"), (0.9, "failed")])
def test_strings_are_evaluated_with_their_contexts(contexts, threshold, value):
    result = strings(
        RagEvaluator(relevancy(threshold=threshold)), prediction=ANSWER, input=QUESTION, callbacks=None, **contexts
    )
    assert set(result) == {"score", "value", "reasoning", "metadata"}
    assert (result["score"], result["value"]) == (VALUE, value)
    assert result["reasoning"].startswith("1 of 4 sentences in 1 of 2 contexts are needed to answer.")


def test_strings_that_cannot_be_scored_have_neither_score_nor_value():
    result = strings(RagEvaluator(relevancy(threshold=0.1)), prediction=ANSWER, input=QUESTION)
    assert (result["score"], result["value"]) == (None, None)
    assert result["reasoning"].startswith("missing_input: retrieved_contexts: ")


def test_it_has_the_members_of_a_string_evaluator():
    question = RagEvaluator(relevancy())
    assert (question.evaluation_name, question.requires_input, question.requires_reference) == (
        "context_relevancy",
        True,
        False,
    )
    assert not RagEvaluator(SummarizationScore(llm=judge())).requires_input
    assert not RagEvaluator(NeedsNothing(llm=judge())).requires_input


def test_messages_are_evaluated_as_strings_are():
    result = strings(
        RagEvaluator(relevancy()), prediction=AIMessage(ANSWER), input=HumanMessage(QUESTION), contexts=DOCUMENTS
    )
    assert result["score"] == VALUE


def test_a_reference_is_read_where_fields_says_so():
    evaluator = RagEvaluator(
        AlignmentCoverage(llm=judge()),
        fields=lambda outputs, reference_outputs, **_: {"user_input": reference_outputs, "response": outputs},
    )
    assert strings(evaluator, prediction=ANSWER, reference=ANSWER)["score"] == 1.0


def test_without_langsmith_only_the_form_that_is_its_own_is_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "ragstone_langchain.runs", raising=False)
    monkeypatch.setitem(sys.modules, "langsmith.evaluation", None)
    evaluator = RagEvaluator(relevancy())
    assert evaluator(**PARTS)["score"] == VALUE
    with pytest.raises(ImportError):
        evaluator.as_run_evaluator()


RELEVANCY = ResponseRelevancy(llm=FakeLLM(truth), embedder=FakeEmbedder())


@pytest.mark.parametrize("outputs", [{"error": "rate limited"}, {"status": "ok"}, {"thread_id": "u-42"}])
def test_what_an_app_returns_when_it_fails_is_no_answer(outputs):
    result = RagEvaluator(RELEVANCY)(inputs="Who?", outputs=outputs)
    assert result["score"] is None
    assert result["comment"].startswith("missing_input: response: is not in outputs")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"language": "en"}, {"messages": [("user", "Who is it?"), ("ai", "A.")]}),
        ({"tenant": "u-42"}, {"question": "Who is it?", "answer": "A."}),
        ({"anything": "Who is it?"}, "A."),
        ({"inputs": {"question": "Who is it?"}}, {"answer": "A."}),
    ],
)
def test_a_lone_text_is_the_question_only_where_there_is_no_other(inputs, outputs):
    evaluator = RagEvaluator(ContextRelevancy(llm=FakeLLM(truth)))
    judge = evaluator.metric.llm
    evaluator(inputs=inputs, outputs=outputs, context=["It is A."])
    assert "Who is it?" in judge.requests[0].user


@pytest.mark.parametrize(
    "tool",
    [
        ToolMessage("Jane wrote it.", tool_call_id="7"),
        {"role": "tool", "tool_call_id": "7", "content": "Jane wrote it."},
    ],
)
def test_a_tool_s_message_without_a_name_is_known_by_its_call(tool):
    call = {"id": "7", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    for asking in (
        AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "7"}]),
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ):
        evaluator = RagEvaluator(
            ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]})), retriever_tools={"search"}
        )
        assert evaluator(outputs={"messages": [("user", "Who?"), asking, tool, ("ai", "Jane.")]})["score"] == 1.0


def test_a_chain_s_state_may_hold_the_question_beside_the_outputs():
    step = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))).as_runnable()
    assert step.invoke({"question": "Who?", "outputs": "Jane.", "context": "Jane wrote it."})["score"] == 1.0


def test_contexts_have_two_names_in_every_form():
    evaluator = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]})))
    for given in ({"context": ["Jane wrote it."]}, {"contexts": ["Jane wrote it."]}):
        assert evaluator(inputs="Who?", outputs="Jane.", **given)["score"] == 1.0
        assert asyncio.run(evaluator.acall(inputs="Who?", outputs="Jane.", **given))["score"] == 1.0


def test_an_object_that_fails_when_it_is_looked_into_is_a_comment():
    class Broken(dict):
        def __getitem__(self, key):
            raise RuntimeError("no database")

        def items(self):
            raise RuntimeError("no database")

    result = RagEvaluator(RELEVANCY)(inputs="Who?", outputs=Broken(answer="A."))
    assert result["score"] is None
    assert "no database" in result["comment"]


def test_the_step_and_the_evaluator_can_be_pickled():
    evaluator = RagEvaluator(ContextRelevancy(llm=LangChainLLM(FakeListChatModel(responses=['{"ids": [1]}']))))
    state = {"question": "Who?", "answer": "Jane.", "context": "Jane wrote it."}
    for _ in range(2):
        again = pickle.loads(pickle.dumps(evaluator))
        step = pickle.loads(pickle.dumps(evaluator.as_runnable()))
        assert again(outputs=state)["score"] == step.invoke(state)["score"] == 1.0


class Keyed(FakeListChatModel):
    api_key: SecretStr = SecretStr(OWN)

    def _call(self, messages, *args, **kwargs):
        raise ConnectionError(self.responses[0])


def test_no_key_is_in_a_result():
    models = [Keyed(responses=[ERRORS[key]]) for key in KEYS]
    for model in [*models, models[-1].with_retry(stop_after_attempt=1)]:  # whose key is inside
        llm = LangChainLLM(model)
        result = RagEvaluator(ContextRelevancy(llm=llm))(**PARTS)
        assert result["metadata"]["unscored"] == "judge_error"
        assert "[hidden]" in result["comment"]
        assert leaked(json.dumps(result)) == []
