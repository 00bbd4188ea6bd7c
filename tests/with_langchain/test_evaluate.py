"""Real `langsmith.evaluate` and `aevaluate` with nothing uploaded."""

import asyncio
import uuid

import langsmith
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langsmith.schemas import Example

from ragstone import AlignmentCoverage, ContextRelevancy
from ragstone.testing import FakeLLM
from ragstone_langchain.evaluator import RagEvaluator

from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, judge, relevancy

pytestmark = [
    pytest.mark.usefixtures("offline"),
    # langsmith calls its own parameter "upload_results" a beta feature
    pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta"),
]


class Silent(langsmith.Client):
    """Sends nothing. `aevaluate(upload_results=False)` still posts the run of an async target (langsmith 0.14)."""

    def __init__(self):
        super().__init__(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)

    def create_run(self, *args, **kwargs):
        pass

    def update_run(self, *args, **kwargs):
        pass


def data(**inputs):
    return [
        Example(
            id=uuid.uuid4(),
            inputs=inputs or {"question": QUESTION},
            outputs={"answer": ANSWER},
            dataset_id=uuid.uuid4(),
        )
    ]


def results_of(rows):
    """The results of the one row, by key."""
    (row,) = rows
    return {result.key: result for result in row["evaluation_results"]["results"]}


def evaluate(target, *evaluators, examples=None):
    rows = langsmith.evaluate(
        target, data=examples or data(), evaluators=list(evaluators), upload_results=False, client=Silent()
    )
    return results_of(rows)


def aevaluate(target, *evaluators, examples=None):
    async def run():
        rows = await langsmith.aevaluate(
            target, data=examples or data(), evaluators=list(evaluators), upload_results=False, client=Silent()
        )
        return [row async for row in rows]

    return results_of(asyncio.run(run()))


def rag(inputs):
    return {"answer": AIMessage(ANSWER), "docs": [Document(FIRST), Document(SECOND)]}


async def arag(inputs):
    return rag(inputs)


def forms(evaluator):
    return {"called": evaluator, "acall": evaluator.acall, "run evaluator": evaluator.as_run_evaluator()}


@pytest.mark.parametrize("form", ["called", "acall", "run evaluator"])
def test_an_evaluator_is_used_directly(form):
    evaluator = forms(RagEvaluator(relevancy(), key="padding"))[form]
    sync = [] if form == "acall" else [evaluate(rag, evaluator)]
    for results in (*sync, aevaluate(arag, evaluator)):
        assert results["padding"].score == VALUE
        assert results["padding"].comment.startswith("1 of 4 sentences in 1 of 2 contexts")
        assert results["padding"].metadata["version"] == ContextRelevancy.version


def test_several_evaluators_stand_side_by_side():
    aligned = RagEvaluator(AlignmentCoverage(llm=judge(), source="retrieved_contexts", n_questions=1))
    results = evaluate(rag, RagEvaluator(relevancy()), aligned)
    assert {key: result.score for key, result in results.items()} == {
        "context_relevancy": VALUE,
        "alignment_coverage": 1.0,
    }


@pytest.mark.parametrize("form", ["called", "run evaluator"])
def test_what_cannot_be_scored_has_no_score(form):
    failing = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: OSError("gone"))))
    result = evaluate(rag, forms(failing)[form])["context_relevancy"]
    assert (result.score, result.comment) == (None, "judge_error: OSError: gone")
    result = evaluate(lambda inputs: {"answer": ANSWER}, forms(RagEvaluator(relevancy()))[form])["context_relevancy"]
    assert result.score is None
    assert result.comment.startswith(
        "missing_input: retrieved_contexts: is not in context (None) or inputs (dict with "
    )


@pytest.mark.parametrize("form", ["called", "run evaluator"])
def test_an_app_that_fails_has_no_score(form):
    def broken(inputs):
        raise OSError("down")

    result = evaluate(broken, forms(RagEvaluator(AlignmentCoverage(llm=judge())))[form])["alignment_coverage"]
    assert result.score is None
    assert result.comment.startswith("missing_input: response: is not in outputs (")


def test_a_traced_retriever_of_the_app_is_found_in_its_run():
    @langsmith.traceable(run_type="retriever")
    def find(question):
        return [{"page_content": FIRST, "metadata": {}, "type": "Document"}, {"page_content": SECOND}]

    def app(inputs):
        assert find(inputs["question"])
        return ANSWER

    assert evaluate(app, RagEvaluator(relevancy()).as_run_evaluator())["context_relevancy"].score == VALUE
    assert evaluate(app, RagEvaluator(relevancy()))["context_relevancy"].score is None  # it gets no run


@pytest.mark.parametrize(
    "returned",
    [
        {"messages": [("user", QUESTION), {"role": "tool", "content": "", "artifact": [FIRST, Document(FIRST)]}]},
        {"output": {"docs": [FIRST]}},
        [Document(FIRST)],
    ],
)
def test_whatever_an_app_returns_is_read(returned):
    assert evaluate(lambda inputs: returned, RagEvaluator(relevancy()))["context_relevancy"].score == 0.5


def test_a_chain_of_the_app_is_evaluated():
    chain = RunnablePassthrough.assign(context=RunnableLambda(lambda state: [Document(FIRST)])).assign(
        answer=RunnableLambda(lambda state: ANSWER)
    )

    def app(inputs):
        # Without this the chain's own trace is sent to LangSmith, whatever upload_results says.
        with langsmith.tracing_context(enabled=False):
            return chain.invoke(inputs)

    async def aapp(inputs):
        return app(inputs)

    for name, form in forms(RagEvaluator(relevancy())).items():
        assert aevaluate(aapp, form)["context_relevancy"].score == 0.5
        if name != "acall":
            assert evaluate(app, form)["context_relevancy"].score == 0.5


def test_fields_are_found_under_keys_of_ones_own():
    evaluator = RagEvaluator(relevancy(), fields={"user_input": "ask", "retrieved_contexts": "found"})
    results = evaluate(lambda inputs: {"draft": ANSWER, "found": [FIRST]}, evaluator, examples=data(ask=QUESTION, n=1))
    assert results["context_relevancy"].score == 0.5
