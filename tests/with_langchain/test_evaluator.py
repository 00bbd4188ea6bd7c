"""A metric as an evaluator: what a result holds in every form, that it never raises, and LangSmith's runs."""

import asyncio
import copy
import json
import pickle
import uuid
from datetime import datetime, timedelta, timezone

import langsmith
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tracers.evaluation import EvaluatorCallbackHandler
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith.evaluation import EvaluationResult, RunEvaluator
from langsmith.schemas import Example, Run
from pydantic import SecretStr

from ragstone import ContextRelevancy
from ragstone.batch.estimation import synthetic_reply
from ragstone.testing import FakeLLM
from ragstone_langchain import LangChainLLM, RagEvaluator

from ..support.judges import metrics, truth  # noqa: TID252
from ..support.keys import ERRORS, KEYS, OWN, leaked  # noqa: TID252
from .monitored import Around, Searching, rag, says
from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, NeedsNothing, relevancy
from .test_models import SAMPLE
from .ways import ainvoke, named, sampled, stream

pytestmark = [
    pytest.mark.usefixtures("offline"),
    pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta"),  # says langsmith of its own parameter
    pytest.mark.filterwarnings("ignore:The `copy` method is deprecated"),  # langchain-core 1.0's tracers use it
]
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
DOCUMENTS = [Document(FIRST), Document(SECOND)]
PARTS = {"inputs": QUESTION, "outputs": ANSWER, "context": DOCUMENTS}
STATE = {"question": QUESTION, "context": DOCUMENTS, "answer": AIMessage(ANSWER)}


# --- every form ------------------------------------------------------------------------------------------------------

INPUTS = {"question": SAMPLE.user_input}
OUTPUTS = {"answer": SAMPLE.response, "context": [Document(text) for text in SAMPLE.retrieved_contexts]}
STRINGS = {"prediction": SAMPLE.response, "input": SAMPLE.user_input, "contexts": OUTPUTS["context"], "tags": ["t"]}


def classic(evaluator):
    pytest.importorskip("langchain_classic.evaluation")
    from ragstone_langchain.classic import RagStringEvaluator

    return RagStringEvaluator(evaluator)


def strings(result):
    assert set(result) == {"score", "value", "reasoning", "metadata"}
    return {"score": result["score"], "comment": result["reasoning"], "metadata": result["metadata"]}


class Silent(langsmith.Client):
    """Sends nothing. `aevaluate(upload_results=False)` still posts the run of an async target (langsmith 0.14)."""

    def __init__(self):
        super().__init__(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)

    def create_run(self, *args, **kwargs):
        pass

    update_run = create_run


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


FORMS = {  # the classic ones for a summary, whose original may be the input or the contexts
    "classic": lambda ev: strings(classic(ev).evaluate_strings(**STRINGS)),
    "classic async": lambda ev: strings(asyncio.run(classic(ev).aevaluate_strings(**STRINGS))),
    "call": lambda ev: ev(inputs=INPUTS, outputs=OUTPUTS, reference_outputs="x", rubric="theirs"),
    "call with texts": lambda ev: ev(
        inputs=SAMPLE.user_input, outputs=SAMPLE.response, contexts=list(SAMPLE.retrieved_contexts)
    ),
    "acall": lambda ev: asyncio.run(ev.acall(inputs=INPUTS, outputs=OUTPUTS)),
    "run": lambda ev: ev.as_run_evaluator().evaluate_run(run_of(inputs=INPUTS, outputs=OUTPUTS)).model_dump(),
    "runnable": lambda ev: ev.as_runnable().invoke({**INPUTS, **OUTPUTS}),
    "runnable async": lambda ev: asyncio.run(ev.as_runnable().ainvoke({**INPUTS, **OUTPUTS})),
    "langsmith.evaluate": lambda ev: evaluate(lambda inputs: OUTPUTS, ev, **INPUTS),
    "langsmith.evaluate, run": lambda ev: evaluate(lambda inputs: OUTPUTS, ev.as_run_evaluator(), **INPUTS),
    "langsmith.aevaluate": lambda ev: evaluate(atarget, ev.acall, **INPUTS),
}


@pytest.mark.filterwarnings("ignore:Ignoring input")
@pytest.mark.parametrize(("form", "index"), sampled(FORMS, range(8), 1), ids=str)
def test_every_form_gives_what_the_metric_gives(form, index) -> None:
    metric = metrics(truth)[index]
    outcome = metric.score(SAMPLE)
    result = FORMS[form](RagEvaluator(metrics(truth)[index]))
    expected = outcome.model_dump(mode="json")
    assert (result["score"], result["comment"]) == (outcome.value, outcome.reason)
    assert result["metadata"] | {"usage": {**result["metadata"]["usage"], "seconds": 0}} == {
        "metric": metric.name,
        "version": metric.version,
        "judge": "fake",
        "passed": outcome.passed,
        "unscored": None,
        "breakdown": expected["breakdown"],
        "verdicts": expected["verdicts"],
        "usage": {**expected["usage"], "seconds": 0},
    }
    assert json.loads(json.dumps(result["metadata"])) == result["metadata"]


UNSCORED = {
    "missing_input": (FakeLLM(truth), {"context": None}),
    "empty_input": (FakeLLM(truth), {"context": [" "]}),
    "judge_unparseable": (FakeLLM("yes and no"), {}),
    "judge_error": (FakeLLM(ConnectionError("refused")), {}),
    "timeout": (FakeLLM(TimeoutError("no reply")), {}),
}


def test_what_cannot_be_scored_has_no_score_and_says_why() -> None:
    for reason, (llm, parts) in UNSCORED.items():
        evaluator, given = RagEvaluator(ContextRelevancy(llm=llm, threshold=0.5)), {**PARTS, **parts}
        for result in (evaluator(**given), asyncio.run(evaluator.acall(**given))):
            metadata = result["metadata"]
            assert result["comment"].startswith(f"{reason}: ")
            assert (result["score"], metadata["passed"], metadata["unscored"]) == (None, None, reason)
            assert (metadata["breakdown"], metadata["verdicts"]) == ({}, [])


REFUSED = [
    ({"fields": {"question": "q"}}, "fields.*'question' should be 'user_input', "),
    ({"fields": {"q": "user_input"}}, "fields: write it the other way round: {'user_input': 'q'}"),
    ({"fields": "response"}, "fields: 'response' should be a valid dict"),
    ({"retriever_tools": "search"}, "retriever_tools: 'search' should be"),
    ({"metric": "context_relevancy"}, "llm: is missing; pass a judge for 'context_relevancy'"),
    ({"metric": "golden", "llm": FakeLLM(truth), "key": "x"}, "key: is one for context_recall, factual_correctness"),
]


def test_what_no_sample_can_come_of_is_refused_at_once() -> None:
    for options, said in REFUSED:
        with pytest.raises(ValueError, match=said):
            RagEvaluator(**{"metric": relevancy(), **options})


def test_a_group_of_metrics_gives_a_result_for_each_and_is_refused_where_there_is_one() -> None:
    llm = FakeLLM(lambda request: synthetic_reply(request) if "claim" in request.task else ConnectionError("refused"))
    evaluator = RagEvaluator("rag", llm=llm, embedder=DeterministicFakeEmbedding(size=4))
    names = ["response_relevancy", "response_completeness", "context_relevancy", "faithfulness"]
    runs = evaluator.as_run_evaluator()
    assert evaluator.keys == runs.feedback_keys == names
    run = run_of(inputs=INPUTS, outputs=OUTPUTS)
    forms = [
        evaluator(inputs=INPUTS, outputs=OUTPUTS),
        asyncio.run(evaluator.acall(inputs=INPUTS, outputs=OUTPUTS)),
        evaluator.as_runnable().invoke({**INPUTS, **OUTPUTS}),
        {"results": [result.model_dump() for result in runs.evaluate_run(run)["results"]]},
        {"results": [result.model_dump() for result in asyncio.run(runs.aevaluate_run(run))["results"]]},
    ]
    for form in forms:
        assert [(result["key"], result["metadata"]["metric"]) for result in form["results"]] == [
            (name, name) for name in names
        ]
        assert form["results"][2]["comment"] == "judge_error: ConnectionError: refused", "one that fails fails alone"
    assert evaluate(lambda inputs: OUTPUTS, evaluator)["key"] == names[0]
    assert evaluate(lambda inputs: OUTPUTS, runs)["key"] == names[0]
    with pytest.raises(ValueError, match=f"name one of them: {', '.join(names)}"):
        classic(evaluator)


def test_the_step_and_the_evaluator_can_be_pickled_also_after_use() -> None:
    evaluator = RagEvaluator(ContextRelevancy(llm=LangChainLLM(FakeListChatModel(responses=['{"ids": [1]}']))))
    assert evaluator(outputs=STATE)["score"] == VALUE
    assert pickle.loads(pickle.dumps(evaluator))(outputs=STATE)["score"] == VALUE
    assert pickle.loads(pickle.dumps(evaluator.as_runnable())).invoke(STATE)["score"] == VALUE


def test_an_object_that_fails_when_it_is_looked_into_is_a_comment() -> None:
    class Broken(dict):
        def items(self):
            raise RuntimeError("no database")

        __getitem__ = items

    result = RagEvaluator(relevancy())(inputs="Who?", outputs=Broken(answer="A."))
    assert result["score"] is None
    assert "no database" in result["comment"]


def test_it_says_what_it_does_not_read_and_takes_the_sample_s_own_name() -> None:
    evaluator = RagEvaluator(relevancy())
    whole = {"inputs": QUESTION, "outputs": ANSWER}
    assert evaluator(**whole, retrieved_contexts=[FIRST, SECOND])["score"] == VALUE
    said = evaluator(**whole, contxt=[FIRST])["comment"]
    assert "not read: contxt (it takes inputs, outputs, reference_outputs, context" in said
    for unnamed in ((QUESTION, ANSWER), ([], [])):  # LangSmith's summary evaluators are called with runs and examples
        with pytest.raises(TypeError, match=r"by name: evaluator\(inputs=\.\.\., outputs=\.\.\.\)"):
            evaluator(*unnamed)


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


# --- LangSmith's runs, LangChain's handlers, StringEvaluators --------------------------------------------------------


def test_in_langsmith_what_cannot_be_scored_has_no_score() -> None:
    def broken(inputs):
        raise OSError("down")

    for reply, app, comment in (
        (OSError("gone"), lambda inputs: OUTPUTS, "judge_error: OSError: gone"),
        ({"ids": [1]}, broken, "missing_input: the app failed: the target raised OSError('down')"),
        ({"ids": [1]}, lambda inputs: None, "missing_input: the app returned nothing"),
    ):
        evaluator = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request, reply=reply: reply)))
        for form in (evaluator, evaluator.as_run_evaluator()):
            result = evaluate(app, form)
            assert result["score"] is None
            assert result["comment"].startswith(comment)


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

    class Seeing(NeedsNothing):
        def _flow(self, sample):
            got.append(sample.retrieved_contexts)
            return (yield from super()._flow(sample))

    evaluated(root, RagEvaluator(Seeing(llm=FakeLLM(truth))))
    assert got == [("first", "both 1", "both 2", "last")] * 2, "each text once"


def test_a_run_s_contexts() -> None:
    traced = run_of("retriever", outputs={"output": [{"page_content": FIRST}, SECOND]})
    textless = run_of("retriever", 1, outputs={"output": [{"title": "x"}]})
    for run, comment in (
        (whole([search(SECOND)], context=[FIRST]), "The question needs 1 of 2 sentences"),
        (whole().model_copy(update={"child_runs": None}), "missing_input: retrieved_contexts: is not in context"),
        (whole([search()]), "empty_input: retrieved_contexts: "),
        (whole([traced]), "The question needs 1 of 4 sentences"),
        (whole([search(FIRST), textless]), "missing_input: retrieved_contexts: a retriever's result[0] is dict"),
    ):
        assert evaluated(run).comment.startswith(comment)
    example = Example(id=uuid.uuid4(), inputs={}, outputs={"context": [FIRST]}, dataset_id=uuid.uuid4())
    by_reference = RagEvaluator(relevancy(), fields={"retrieved_contexts": "context"})
    assert evaluated(whole(), by_reference, example).score == 0.5, "an example's outputs are the reference"


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
    way(rag(says(ANSWER), search=retriever), QUESTION, {"callbacks": [handler, collected]})
    assert client.received == [("context_relevancy", VALUE, "The question needs 1 of 4 sentences")]
    (run,) = collected.traced_runs
    assert evaluator.evaluate_run(run).score == VALUE


def test_it_is_a_string_evaluator_with_langchain_s_own_checks() -> None:
    schema = pytest.importorskip("langchain_classic.evaluation")
    for threshold, word in ((VALUE, "passed"), (0.9, "failed")):
        evaluator = classic(RagEvaluator(relevancy(threshold=threshold), key="padding"))
        assert evaluator.evaluate_strings(prediction=ANSWER, input=QUESTION, contexts=DOCUMENTS)["value"] == word
    assert isinstance(evaluator, schema.StringEvaluator)
    assert evaluator.evaluation_name == "padding"
    with pytest.raises(ValueError, match="requires an input string"):
        evaluator.evaluate_strings(prediction=ANSWER, contexts=[FIRST])


def test_reference_outputs_are_the_reference():
    llm = FakeLLM(lambda request: {"claims": ["A."]} if "claims" in request.task else {"verdicts": {"1": CLAIM}})
    evaluator, reference = RagEvaluator("context_recall", llm=llm), "It is by Austen."
    given = {"inputs": QUESTION, "outputs": {"answer": ANSWER, "context": [FIRST]}}
    for form in (reference, {"answer": reference}, {"expected_output": reference}, AIMessage(reference)):
        assert evaluator(**given, reference_outputs=form)["score"] == 1.0
        assert reference in llm.requests[-2].user
    assert evaluator(**given)["metadata"]["unscored"] == "missing_input"


CLAIM = {"evidence": [1], "verdict": "supported"}
