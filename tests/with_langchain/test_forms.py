"""One metric in every form that an evaluator comes in: the same number, verdicts and usage, also in LangSmith's hands."""

import asyncio
import copy
import uuid
from datetime import datetime, timedelta, timezone

import langsmith
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tracers.evaluation import EvaluatorCallbackHandler
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith.evaluation import EvaluationResult, RunEvaluator
from langsmith.schemas import Example, Run

from ragstone import ContextRelevancy
from ragstone.testing import FakeLLM
from ragstone_langchain import RagEvaluator

from ..core.judges import metrics  # noqa: TID252
from .monitored import PROMPT, Around, Searching, joined
from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, relevancy
from .test_models import SAMPLE, counted
from .ways import ainvoke, named, sampled, stream

pytestmark = [
    pytest.mark.usefixtures("offline"),
    pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta"),  # says langsmith of its own parameter
    pytest.mark.filterwarnings("ignore:The `copy` method is deprecated"),  # langchain-core 1.0's tracers use it
]
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
INPUTS = {"question": SAMPLE.user_input}
DOCUMENTS = [Document(text) for text in SAMPLE.retrieved_contexts]
OUTPUTS = {"answer": SAMPLE.response, "context": DOCUMENTS}
STRINGS = {"prediction": SAMPLE.response, "input": SAMPLE.user_input, "contexts": DOCUMENTS, "tags": ["t"]}


def classic(metric, **options):
    pytest.importorskip("langchain_classic.evaluation")
    from ragstone_langchain.classic import RagStringEvaluator

    return RagStringEvaluator(RagEvaluator(metric, **options))


def strings(result):
    return {"score": result["score"], "comment": result["reasoning"], "metadata": result["metadata"]}


class Silent(langsmith.Client):
    """Sends nothing. `aevaluate(upload_results=False)` still posts the run of an async target (langsmith 0.14)."""

    def __init__(self):
        super().__init__(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)

    def create_run(self, *args, **kwargs):
        pass

    def update_run(self, *args, **kwargs):
        pass


def evaluate(target, evaluator, **inputs):
    """Return the one result of LangSmith's evaluation; sync or async by the target."""
    examples = [Example(id=uuid.uuid4(), inputs=inputs or {"question": QUESTION}, outputs={}, dataset_id=uuid.uuid4())]
    settings = {"data": examples, "evaluators": [evaluator], "upload_results": False, "client": Silent()}

    async def rows():
        return [row async for row in await langsmith.aevaluate(target, **settings)]

    (row,) = asyncio.run(rows()) if asyncio.iscoroutinefunction(target) else langsmith.evaluate(target, **settings)
    return row["evaluation_results"]["results"][0].model_dump()


async def atarget(inputs):
    return OUTPUTS


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


FORMS = {
    "call": lambda ev: ev(inputs=INPUTS, outputs=OUTPUTS),
    "call with texts": lambda ev: ev(
        inputs=SAMPLE.user_input, outputs=SAMPLE.response, contexts=list(SAMPLE.retrieved_contexts)
    ),
    "acall": lambda ev: asyncio.run(ev.acall(inputs=INPUTS, outputs=OUTPUTS)),
    "run": lambda ev: ev.as_run_evaluator().evaluate_run(run_of(inputs=INPUTS, outputs=OUTPUTS)).model_dump(),
    "runnable": lambda ev: ev.as_runnable().invoke({**INPUTS, **OUTPUTS}),
    "runnable async": lambda ev: asyncio.run(ev.as_runnable().ainvoke({**INPUTS, **OUTPUTS})),
    "strings": lambda ev: strings(ev.evaluate_strings(**STRINGS)),
    "strings async": lambda ev: strings(asyncio.run(ev.aevaluate_strings(**STRINGS))),
    "classic": lambda ev: strings(classic(ev.metric).evaluate_strings(**STRINGS)),
    "classic async": lambda ev: strings(asyncio.run(classic(ev.metric).aevaluate_strings(**STRINGS))),
    "langsmith.evaluate": lambda ev: evaluate(lambda inputs: OUTPUTS, ev, **INPUTS),
    "langsmith.evaluate, run": lambda ev: evaluate(lambda inputs: OUTPUTS, ev.as_run_evaluator(), **INPUTS),
    "langsmith.aevaluate": lambda ev: evaluate(atarget, ev.acall, **INPUTS),
}


@pytest.mark.filterwarnings("ignore:Ignoring input")
@pytest.mark.parametrize(("form", "index"), sampled(FORMS, range(8), 1), ids=str)
def test_every_form_gives_what_the_metric_gives(form, index) -> None:
    outcome = metrics(counted)[index].score(SAMPLE)
    result = FORMS[form](RagEvaluator(metrics(counted)[index]))
    expected = outcome.model_dump(mode="json")
    metadata = result["metadata"]
    assert (result["score"], result["comment"]) == (outcome.value, outcome.reason)
    assert [metadata[name] for name in ("verdicts", "breakdown", "version")] == [
        expected[name] for name in ("verdicts", "breakdown", "version")
    ]
    assert metadata["usage"] | {"seconds": 0} == expected["usage"] | {"seconds": 0}


def test_in_langsmith_what_cannot_be_scored_has_no_score() -> None:
    def broken(inputs):
        raise OSError("down")

    for reply, app, comment in (
        (OSError("gone"), lambda inputs: OUTPUTS, "judge_error: OSError: gone"),
        ({"ids": [1]}, lambda inputs: {"answer": ANSWER}, "missing_input: retrieved_contexts: "),
        ({"ids": [1]}, broken, "missing_input: retrieved_contexts: "),
    ):
        evaluator = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request, reply=reply: reply)))
        for form in (evaluator, evaluator.as_run_evaluator()):
            result = evaluate(app, form)
            assert result["score"] is None
            assert result["comment"].startswith(comment)


def test_a_traced_retriever_of_the_app_is_found_in_its_run() -> None:
    @langsmith.traceable(run_type="retriever")
    def find(question):
        return [{"page_content": FIRST, "metadata": {}, "type": "Document"}, {"page_content": SECOND}]

    def app(inputs):
        return find(inputs["question"]) and ANSWER

    assert evaluate(app, RagEvaluator(relevancy()).as_run_evaluator())["score"] == VALUE


def search(*texts, second=0, children=()):
    documents = [{"page_content": text, "metadata": {}, "type": "Document"} for text in texts]
    return run_of("retriever", second, inputs={"query": "q"}, outputs={"documents": documents}, children=children)


def whole(children=(), **outputs):
    return run_of(inputs={"input": QUESTION}, outputs={"output": ANSWER, **outputs}, children=children)


def evaluated(run, evaluator=None, example=None):
    """Evaluate a run both ways; they give the same and change nothing."""
    evaluator = (evaluator or RagEvaluator(relevancy(), key="padding")).as_run_evaluator()
    assert isinstance(evaluator, RunEvaluator)
    before = copy.deepcopy(run)
    results = [evaluator.evaluate_run(run, example), asyncio.run(evaluator.aevaluate_run(run, example))]
    assert run == before
    for result in results:
        assert isinstance(result, EvaluationResult)
        result.metadata["usage"]["seconds"] = 0
    assert results[0] == results[1]
    assert [results[0].key] == evaluator.feedback_keys
    return results[0]


def test_only_the_outermost_retrievers_count_in_the_order_of_their_start() -> None:
    ensemble = search("both 1", "both 2", second=5, children=[search("part", second=6), run_of(second=7)])
    first = run_of(second=1, children=[search("first", second=2)])
    tool = run_of("tool", 8, children=[search("both 1", "last", second=9)])
    root, got = whole([tool, ensemble, run_of("retriever", 3), first]), []
    evaluator = RagEvaluator(relevancy(), fields=lambda context, **_: got.append(context) or {})
    evaluated(root, evaluator)
    assert got == [["first", "both 1", "both 2", "last"]] * 2, "each text once"


def test_a_run_s_contexts() -> None:
    traced = run_of("retriever", outputs={"output": [{"page_content": FIRST}, SECOND]})
    textless = run_of("retriever", 1, outputs={"output": [{"text": "x"}]})
    for run, comment in (
        (whole([search(SECOND)], context=[FIRST]), "1 of 2 sentences in 1 of 1 contexts"),
        (whole().model_copy(update={"child_runs": None}), "missing_input: retrieved_contexts: is not in context"),
        (whole([search()]), "empty_input: retrieved_contexts: "),
        (whole([traced]), "1 of 4 sentences in 1 of 2 contexts"),
        (whole([search(FIRST), textless]), "missing_input: retrieved_contexts: retriever run 2['output'][0] is dict"),
    ):
        assert evaluated(run).comment.startswith(comment)


def test_the_examples_outputs_are_the_reference() -> None:
    example = Example(id=uuid.uuid4(), inputs={}, outputs={"context": [FIRST]}, dataset_id=uuid.uuid4())
    evaluator = RagEvaluator(relevancy(), fields={"retrieved_contexts": "context"})
    assert evaluated(whole(), evaluator, example).score == 0.5


class Feedback:
    """LangSmith's client, as far as LangChain's handler uses it."""

    def __init__(self):
        self.received = []

    def create_feedback(self, run_id, key, *, score=None, comment=None, **more):
        self.received.append((key, score, comment[:35]))


@pytest.mark.parametrize("way", [ainvoke, stream], ids=named)
def test_langchains_handlers_score_a_live_chain(way) -> None:
    retriever = Around(inner=[Searching(texts=(FIRST, SECOND)), Searching(texts=("Not chosen. At all.",))], keep=2)
    evaluator = RagEvaluator(relevancy()).as_run_evaluator()
    client, collected = Feedback(), RunCollectorCallbackHandler()
    handler = EvaluatorCallbackHandler([evaluator], client=client, max_concurrency=0)
    chain = {"context": retriever | joined, "question": RunnablePassthrough()} | PROMPT
    chain |= FakeListChatModel(responses=[ANSWER]) | StrOutputParser()
    way(chain, QUESTION, {"callbacks": [handler, collected]})
    assert client.received == [("context_relevancy", VALUE, "1 of 4 sentences in 1 of 2 contexts")]
    (run,) = collected.traced_runs
    assert evaluator.evaluate_run(run).score == VALUE


def test_it_is_a_string_evaluator_with_langchain_s_own_checks() -> None:
    schema = pytest.importorskip("langchain_classic.evaluation")
    evaluator = classic(relevancy(), key="padding")
    assert isinstance(evaluator, schema.StringEvaluator)
    assert evaluator.evaluation_name == "padding"
    with pytest.raises(ValueError, match="requires an input string"):
        evaluator.evaluate_strings(prediction=ANSWER, contexts=[FIRST])
