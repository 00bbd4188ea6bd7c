"""LangSmith's evaluator of runs: on runs as LangSmith stores them, and inside LangChain's own handler."""

import asyncio
import copy
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tracers.evaluation import EvaluatorCallbackHandler
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith.evaluation import EvaluationResult, RunEvaluator
from langsmith.schemas import Example, Run

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_langchain.evaluator import RagEvaluator
from ragstone_langchain.runs import retriever_outputs

from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, judge, relevancy

# langchain-core 1.0's tracers copy runs by pydantic's old way
pytestmark = pytest.mark.filterwarnings("ignore:The `copy` method is deprecated")
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def run_of(run_type="chain", second=0, *, children=(), inputs=None, outputs=None):
    """A run as LangSmith's client reads it."""
    return Run(
        id=uuid.uuid4(),
        name=run_type,
        run_type=run_type,
        start_time=START + timedelta(seconds=second),
        trace_id=uuid.uuid4(),
        inputs=inputs or {},
        outputs=outputs,
        child_runs=list(children),
    )


def search(*texts, second=0, children=()):
    documents = [{"page_content": text, "metadata": {}, "type": "Document"} for text in texts]
    return run_of("retriever", second, inputs={"query": "q"}, outputs={"documents": documents}, children=children)


def evaluated(run, evaluator=None, example=None):
    """Evaluate a run both ways; they give the same."""
    evaluator = (evaluator or RagEvaluator(relevancy())).as_run_evaluator()
    before = copy.deepcopy(run)
    results = [evaluator.evaluate_run(run, example), asyncio.run(evaluator.aevaluate_run(run, example))]
    assert run == before
    for result in results:
        assert isinstance(result, EvaluationResult)
        result.metadata["usage"]["seconds"] = 0
    assert results[0] == results[1]
    return results[0]


def whole(children=(), **outputs):
    return run_of(inputs={"input": QUESTION}, outputs={"output": ANSWER, **outputs}, children=children)


def test_a_run_is_scored_from_its_inputs_outputs_and_retrievers():
    result = evaluated(whole([run_of(children=[search(FIRST, SECOND)])]))
    assert (result.key, result.score) == ("context_relevancy", VALUE)
    assert result.comment.startswith("1 of 4 sentences in 1 of 2 contexts")
    assert result.metadata["version"] == ContextRelevancy.version


def test_it_is_a_run_evaluator_that_says_its_key():
    evaluator = RagEvaluator(relevancy(), key="padding").as_run_evaluator()
    assert isinstance(evaluator, RunEvaluator)
    assert evaluator.feedback_keys == ["padding"]
    assert evaluator.evaluate_run(whole([search(FIRST)]), None, uuid.uuid4()).key == "padding"


def test_contexts_in_the_outputs_go_before_those_of_retrievers():
    assert evaluated(whole([search(SECOND)], context=[FIRST])).score == 0.5


def test_only_the_outermost_retrievers_count_in_the_order_of_their_start():
    ensemble = search("both 1", "both 2", second=5, children=[search("part", second=6), run_of(second=7)])
    first = run_of(second=1, children=[search("first", second=2)])
    failed = run_of("retriever", 3)
    tool = run_of("tool", 8, children=[search("both 1", "last", second=9)])
    root = whole([tool, ensemble, failed, first])
    found = [[document["page_content"] for document in outputs["documents"]] for outputs in retriever_outputs(root)]
    assert found == [["first"], ["both 1", "both 2"], ["both 1", "last"]]
    assert evaluated(root).comment.startswith("0 of 4 sentences in 0 of 4 contexts")  # each text once


def test_runs_without_children_loaded_have_no_contexts():
    root = whole().model_copy(update={"child_runs": None})
    assert retriever_outputs(root) is None
    result = evaluated(root)
    assert result.score is None
    assert result.comment.startswith("missing_input: retrieved_contexts: is not in context (None)")


def test_a_retriever_that_found_nothing_is_known_from_none():
    assert evaluated(whole([search()])).comment.startswith("empty_input: retrieved_contexts: ")


@pytest.mark.parametrize("outputs", [{"output": [FIRST, SECOND]}, {"output": [{"page_content": FIRST}, SECOND]}])
def test_a_traced_function_may_be_the_retriever(outputs):
    assert evaluated(whole([run_of("retriever", outputs=outputs)])).score == VALUE


def test_a_retriever_that_returned_no_texts_is_named():
    result = evaluated(whole([search(FIRST), run_of("retriever", 1, outputs={"output": [{"text": "x"}]})]))
    assert result.comment.startswith(
        "missing_input: retrieved_contexts: retriever run 2['output'][0] is dict with 'text', not text or a Document"
    )


def test_a_run_that_failed_has_no_answer():
    run = run_of(inputs={"input": QUESTION})
    result = evaluated(run, RagEvaluator(ResponseRelevancy(llm=judge(), embedder=FakeEmbedder())))
    assert (result.score, result.comment[:60]) == (None, "missing_input: response: is not in outputs (None); pass outp")


def test_a_judge_that_fails_does_not_raise():
    evaluator = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: OSError("gone"))))
    result = evaluated(whole([search(FIRST)]), evaluator)
    assert (result.score, result.comment) == (None, "judge_error: OSError: gone")


def test_the_examples_outputs_are_the_reference():
    example = Example(id=uuid.uuid4(), inputs={}, outputs={"context": [FIRST]}, dataset_id=uuid.uuid4())
    evaluator = RagEvaluator(relevancy(), fields={"retrieved_contexts": "context"})
    assert evaluated(whole(), evaluator, example).score == 0.5


# --- inside LangChain's handler that evaluates live runs --------------------------------------------------------------


class Searches(BaseRetriever):
    """Returns its documents; asks its parts first, as an ensemble does."""

    texts: list[str]
    parts: tuple[BaseRetriever, ...] = ()

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        for part in self.parts:
            part.invoke(query, {"callbacks": run_manager.get_child()})
        return [Document(text) for text in self.texts]


class Feedback:
    """LangSmith's client, as far as the handler uses it."""

    def __init__(self):
        self.given = []

    def create_feedback(self, run_id, key, *, score=None, comment=None, **more):
        self.given.append((key, score, comment))

    def create_run(self, *args, **kwargs):
        raise AssertionError("the evaluator traced a run")


def chain(retriever):
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    found = RunnableParallel(context=RunnableLambda(lambda q: q) | retriever, question=RunnablePassthrough())
    return found | prompt | FakeListChatModel(responses=[ANSWER]) | StrOutputParser()


RETRIEVER = Searches(texts=[FIRST, SECOND], parts=(Searches(texts=["Not chosen. At all."]),))


def handled(call):
    client = Feedback()
    handler = EvaluatorCallbackHandler([RagEvaluator(relevancy()).as_run_evaluator()], client=client, max_concurrency=0)
    call(chain(RETRIEVER), {"callbacks": [handler]})
    return client.given


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    "call",
    [
        lambda chain, config: chain.invoke(QUESTION, config),
        lambda chain, config: asyncio.run(chain.ainvoke(QUESTION, config)),
        lambda chain, config: list(chain.stream(QUESTION, config)),
        lambda chain, config: chain.batch([QUESTION], config),
    ],
    ids=["invoke", "ainvoke", "stream", "batch"],
)
def test_langchains_evaluator_handler_scores_a_live_chain(call):
    ((key, score, comment),) = handled(call)
    assert (key, score) == ("context_relevancy", VALUE)
    assert comment.startswith("1 of 4 sentences in 1 of 2 contexts")


@pytest.mark.usefixtures("offline")
def test_a_collected_run_is_scored():
    collected = RunCollectorCallbackHandler()
    chain(RETRIEVER).invoke(QUESTION, {"callbacks": [collected]})
    (run,) = collected.traced_runs
    assert RagEvaluator(relevancy()).as_run_evaluator().evaluate_run(run).score == VALUE
