"""MetricEvaluator: the same outcome as core's, in LlamaIndex's form, of texts and of what apps return."""

import asyncio
import dataclasses
import json
from functools import partial

import pytest
from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate
from llama_index.core.query_engine import RetryQueryEngine
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, TextNode
from llama_index.core.tools.eval_query_engine import EvalQueryEngineTool
from pydantic import BaseModel

from ragstone import ContextRelevancy, LLMReply, ResponseRelevancy, Score
from ragstone.batch.estimation import synthetic_reply
from ragstone.testing import FakeDecisions, FakeEmbedder, FakeLLM
from ragstone_llama_index import (
    LlamaIndexEmbedder,
    LlamaIndexLLM,
    MetricEvaluator,
    MetricResult,
    evaluate_query_engine,
    instrument,
)

from ..core.test_prompts import SAMPLE as PROMPTED  # noqa: TID252
from ..support.keys import ERRORS, KEYS, OWN, leaked  # noqa: TID252
from ..support.noting import Noting  # noqa: TID252
from .models import SAMPLE, Chatting, Completing, Placing, metrics, truth
from .monitored import ANSWER, Answering, Speaking, engine, memory

INPUTS = {"query": SAMPLE.user_input, "response": SAMPLE.response, "contexts": list(SAMPLE.retrieved_contexts)}


def evaluate(evaluator, **inputs):
    return evaluator.evaluate(**inputs)


def aevaluate(evaluator, **inputs):
    return asyncio.run(evaluator.aevaluate(**inputs))


def inside_a_loop(evaluator, **inputs):
    async def notebook():
        return evaluator.evaluate(**inputs)

    return asyncio.run(notebook())


WAYS = [evaluate, aevaluate, inside_a_loop]
BOTH_WAYS = pytest.mark.parametrize("way", [evaluate, aevaluate])


def counted(request):
    """The truth, with the tokens that a provider would count."""
    reply = truth(request)
    return LLMReply(reply if isinstance(reply, str) else json.dumps(reply), input_tokens=11, output_tokens=3)


def timeless(outcome):
    return outcome.model_copy(update={"usage": outcome.usage.model_copy(update={"seconds": 0.0})})


@pytest.mark.parametrize(
    ("number", "asking", "model"),
    [
        (i, ("together", "one_by_one")[(i + i // 2) % 2], (Chatting, Completing)[i % 2])
        for i in range(len(metrics(counted)))
    ],
)
def test_one_sample_one_outcome(number, asking, model):
    """Through core, through the evaluator, and with a LlamaIndex model as the judge: the same, tokens included."""
    way = WAYS[number % 3]
    metric = metrics(counted, asking)[number]
    expected = metric.score(SAMPLE)
    assert isinstance(expected, Score)
    embedder = {"embedder": LlamaIndexEmbedder(Placing())} if isinstance(metric, ResponseRelevancy) else {}
    theirs = dataclasses.replace(metric, llm=LlamaIndexLLM(model(counted), asking=asking), **embedder)
    for scorer in (metric, theirs):
        result = way(MetricEvaluator(scorer), **INPUTS)
        assert timeless(result.outcome) == timeless(expected)
        assert (result.query, result.response, result.contexts) == tuple(INPUTS.values())
        assert (result.score, result.feedback) == (expected.value, expected.reason)
        assert result.passing == (expected.value >= 0.5)
        assert (result.metric, result.version) == (metric.name, metric.version)
        assert (result.invalid_result, result.invalid_reason, result.unscored) == (False, None, None)
        assert MetricResult.model_validate_json(result.model_dump_json()) == result


# -------------------------------------------------------------------------------- metrics and models by name


def judge_by_name():
    return FakeLLM(truth)


def test_judge_embedder_and_writer(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", OWN)
    Settings.llm, Settings.embed_model = Chatting(truth), Placing()
    for metric in (ContextRelevancy(), "context_relevancy"):
        assert MetricEvaluator(metric).evaluate(**INPUTS).score is not None
    assert MetricEvaluator("alignment_coverage", Completing(truth), n_questions=2).metric.n_questions == 2
    assert MetricEvaluator("context_relevancy", f"{__name__}:judge_by_name").evaluate(**INPUTS).score is not None
    for embed_model, kind in (("fake", FakeEmbedder), (None, LlamaIndexEmbedder), (Placing(), LlamaIndexEmbedder)):
        name = f"{__name__}:FakeEmbedder" if embed_model == "fake" else embed_model
        metric = MetricEvaluator("response_relevancy", FakeLLM(truth), name).metric
        assert isinstance(metric.judge_embedder, kind)
    metric = MetricEvaluator("response_relevancy", "openai:gpt-5-mini").metric
    assert (metric.judge.model, metric.judge_embedder.model) == ("gpt-5-mini", "text-embedding-3-small")
    judge, writer = FakeDecisions(0.75), FakeLLM(synthetic_reply)
    evaluator = MetricEvaluator("response_completeness", judge, writer=writer)
    result = evaluator.evaluate(query="Who?", response="Ann did.")
    assert (result.score, len(judge.requests), len(writer.requests)) == (0.75, 1, 1)


def test_what_names_nothing_is_refused_and_a_metric_of_ones_own_comes_alone():
    metric = ContextRelevancy(llm=FakeLLM(truth))
    for make, error, message in (
        (partial(MetricEvaluator, "context_relevance"), ValueError, "there is no metric 'context_relevance'; there ar"),
        (partial(MetricEvaluator, "context_relevancy", 3), ValueError, "context_relevancy: llm: int has no model, ask"),
        (partial(MetricEvaluator, "response_relevancy", FakeLLM(truth), 3), ValueError, "embedder: int has no"),
        (partial(MetricEvaluator, metric, FakeLLM(truth)), TypeError, "already has a judge and options"),
        (partial(MetricEvaluator, ContextRelevancy), TypeError, "metric: is the class ContextRelevancy; make an obj"),
        (
            partial(MetricEvaluator, "context_relevancy", FakeLLM(truth), strictness=2),
            ValueError,
            "context_relevancy has no option 'strictness'; it has asking,",
        ),
    ):
        with pytest.raises(error, match=message):
            make()
    for call in (
        partial(instrument, Noting()),
        partial(MetricEvaluator, metric),
        partial(evaluate_query_engine, Answering(), ["Who?"], [metric]),
    ):
        with pytest.raises(ValueError, match="metadata_mode: 'NONE' should be 'all', 'embed', 'llm' or 'none'"):
            call(metadata_mode="NONE")
        with pytest.raises(ValueError, match="context_tools: 'search' should be"):
            call(context_tools="search")


def test_alignment_is_with_the_contexts():
    assert MetricEvaluator("alignment_coverage", FakeLLM(truth)).metric.source == "retrieved_contexts"


# -------------------------------------------------------------------------------- what passes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise(ContextRelevancy):
    """The lower, the better."""

    higher_is_better = False


HALF, THIRD = "One is. Two are.", "One is. Two are. Three are."
PASSING = pytest.mark.parametrize(
    ("metric", "text", "threshold", "passes"),
    [
        (ContextRelevancy, HALF, None, True),
        (ContextRelevancy, THIRD, None, False),
        (ContextRelevancy, HALF, 0.6, False),
        (ContextRelevancy, THIRD, 0.3, True),
        (Noise, "One is.", None, False),
        (Noise, HALF, None, True),
        (ContextRelevancy, "", None, False),  # the judge fails
    ],
)


def judging(metric, text, threshold):
    judge = FakeLLM(lambda request: {"ids": [1]} if text else ConnectionError("gone"))
    return judge, MetricEvaluator(metric(llm=judge, threshold=threshold))


@PASSING
def test_what_passes_reaches_the_threshold_or_half_in_the_metrics_direction(metric, text, threshold, passes):
    _, evaluator = judging(metric, text, threshold)
    inputs = {"query": "Who?", "response": ANSWER, "contexts": [text or HALF]}
    response = Response(ANSWER, [NodeWithScore(node=TextNode(text=text or HALF))])
    results = [way(evaluator, **inputs) for way in WAYS]
    results += [way(evaluator, response) for way in (evaluate_response, aevaluate_response)]
    results += [each for run in (batch, batch_of_queries) for each in run(evaluator, text or HALF)]
    for result in results:
        assert result.passing is passes
        if text:
            assert result.outcome.passed is (None if threshold is None else passes)
        else:
            assert (result.feedback, result.score) == ("judge_error: ConnectionError: gone", None)


def batch(evaluator, text):
    runner = BatchEvalRunner({"it": evaluator})
    return runner.evaluate_response_strs(queries=["Who?"], response_strs=[ANSWER], contexts_list=[[text]])["it"]


def batch_of_queries(evaluator, text):
    return BatchEvalRunner({"it": evaluator}).evaluate_queries(engine(texts=(text,)), queries=["Who?"])["it"]


@PASSING
@pytest.mark.parametrize("awaited", [False, True])
def test_a_tool_or_a_retry_keeps_the_answer_that_passes(metric, text, threshold, passes, awaited):
    Settings.llm = Speaking()  # which writes the next question
    app = engine(texts=(text or HALF,))
    judge, evaluator = judging(metric, text, threshold)
    retrying = RetryQueryEngine(app, evaluator, max_retries=2)
    assert str(asyncio.run(retrying.aquery("Who?")) if awaited else retrying.query("Who?")) == ANSWER
    assert len(judge.requests) == (1 if passes else 2)
    tool = EvalQueryEngineTool.from_defaults(app, name="books", evaluator=evaluator)
    said = (asyncio.run(tool.acall("Who?")) if awaited else tool.call("Who?")).content
    reason = "The question needs 1 of " if text else "judge_error: ConnectionError: gone"
    refused = f"Could not use tool books because it failed evaluation.\nReason: {reason}"
    assert said == ANSWER if passes else said.startswith(refused)


# -------------------------------------------------------------------------------- what cannot be scored


class Keyed(Completing):
    api_key: str = OWN


@BOTH_WAYS
def test_a_judge_that_fails_is_an_invalid_result_with_no_key_in_it(way):
    result = way(MetricEvaluator("context_relevancy", Chatting(lambda request: TimeoutError("no"))), **INPUTS)
    assert (result.invalid_result, result.score, result.passing, result.unscored) == (True, None, False, "timeout")
    assert (result.invalid_reason, result.usage.llm_calls) == ("timeout: TimeoutError: no", 1)
    result = way(MetricEvaluator("context_relevancy", Completing(lambda request: "pardon?")), **INPUTS)
    assert (result.unscored, result.usage.llm_calls) == ("judge_unparseable", 2)
    for key in KEYS:
        judge = Keyed(lambda *_, key=key: ConnectionError(ERRORS[key]))
        result = way(MetricEvaluator("context_relevancy", judge), **INPUTS)
        assert result.invalid_reason.startswith("judge_error: ConnectionError: ")
        assert "[hidden]" in result.invalid_reason
        assert leaked(result.model_dump_json()) == []


CLAIM = {"evidence": [1], "verdict": "supported"}


def recalling():
    return FakeLLM(lambda request: {"claims": ["A."]} if "claims" in request.task else {"verdicts": {"1": CLAIM}})


@BOTH_WAYS
def test_an_input_that_is_missing_is_an_outcome_and_one_of_the_wrong_type_raises_with_its_name_here(way):
    context, alignment = (MetricEvaluator(name, FakeLLM(truth)) for name in ("context_relevancy", "alignment_coverage"))
    recall = MetricEvaluator("context_recall", recalling())
    for evaluator, argument in ((context, "query"), (context, "contexts"), (alignment, "response"), (recall, "query")):
        result = way(evaluator, **{**INPUTS, argument: None})
        assert (result.score, result.unscored) == (None, "missing_input")
    with pytest.raises(ValueError, match=r"^contexts: is one set; pass a list of texts, one per retrieved context$"):
        way(context, **{**INPUTS, "contexts": {"a text"}})
    assert way(context, **{**INPUTS, "response": None}).score is not None  # it needs none
    assert way(context, **INPUTS, reference="x", sleep_time_in_seconds=9).score  # LlamaIndex gives them to all
    assert way(recall, **INPUTS, reference="It is by Austen.").score == 1.0
    assert "It is by Austen." in recall.metric.llm.requests[0].user


def test_a_row_without_an_input_is_its_own_outcome_and_no_other_rows():
    runner = BatchEvalRunner({"recall": MetricEvaluator("context_recall", recalling())})
    rows = {"queries": ["Who?"] * 3, "response_strs": ["She."] * 3, "contexts_list": [["She did."]] * 3}
    results = asyncio.run(runner.aevaluate_response_strs(**rows, reference=["She did.", None, "She did."]))
    assert [each.unscored for each in results["recall"]] == [None, "missing_input", None]
    assert repr(runner.evaluators["recall"]) == "MetricEvaluator('context_recall')"


# -------------------------------------------------------------------------------- prompts

BRACES = 'Mine. {context_str} {"a": 1} %s'
GIVEN = {"query": PROMPTED.user_input, "response": PROMPTED.response, "contexts": list(PROMPTED.retrieved_contexts)}


def templates(evaluator: MetricEvaluator) -> dict[str, str]:
    return {name: prompt.get_template() for name, prompt in evaluator.get_prompts().items()}


def test_a_changed_prompt_is_what_the_judge_reads_and_shows_in_the_version() -> None:
    judge = FakeLLM(truth)
    evaluator = MetricEvaluator("context_relevancy", judge)
    own = evaluator.get_prompts()
    before = evaluator.evaluate(**GIVEN)
    evaluator.update_prompts({"sentences": PromptTemplate(BRACES)})
    after = evaluator.evaluate(**GIVEN)
    first, second = judge.requests
    assert second.system.startswith(f"{BRACES}\n")
    assert second.user == first.user, "data, reminder and form of the reply are not the prompt's"
    assert after.version.startswith(f"{before.version}+")
    assert templates(evaluator)["sentences"] == BRACES
    evaluator.update_prompts({"passage": PromptTemplate("C.")})
    assert {**templates(evaluator), "sentences": BRACES, "passage": "C."} == templates(evaluator)
    evaluator.update_prompts({"sentences": PromptTemplate("Be {tone}. {other}").partial_format(tone="strict")})
    evaluator.evaluate(**GIVEN)
    assert judge.requests[2].system.startswith("Be strict. {other}\n")
    evaluator.update_prompts(own)
    assert evaluator.metric.version == type(evaluator.metric).version


@pytest.mark.parametrize(
    ("name", "prompt", "message"),
    [
        ("eval_template", PromptTemplate("x"), "'eval_template' is not a step; the steps are question, sentences, sen"),
        ("sentences", PromptTemplate(" "), "is blank"),
        ("sentences", PromptTemplate("{a}", template_var_mappings={"a": "b"}), "without variable mappings"),
        ("sentences", ChatPromptTemplate([]), "sentences: is ChatPromptTemplate; pass a PromptTemplate"),
    ],
)
def test_a_wrong_prompt_is_refused_at_once(name, prompt, message) -> None:
    evaluator = MetricEvaluator("context_relevancy", FakeLLM(truth))
    with pytest.raises((TypeError, ValueError), match=message):
        evaluator.update_prompts({name: prompt})
    assert evaluator.metric.version == ContextRelevancy.version


# -------------------------------------------------------------------------------- what apps return

TEXTS = ("Jane Austen wrote Emma.", "It came out in 1815.")
NODES = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
PIECES = ["Jane ", "", "Austen."]


class Author(BaseModel):
    name: str


async def atokens():
    for piece in PIECES:
        yield piece


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (PydanticResponse(Author(name="Jane"), NODES), '{"name":"Jane"}'),
        (StreamingResponse(iter(PIECES), NODES, None, "Jane Austen."), "Jane Austen."),
        (AgentChatResponse("Jane Austen.", source_nodes=NODES), "Jane Austen."),
        (StreamingAgentChatResponse(response="Jane Austen.", source_nodes=NODES), "Jane Austen."),
    ],
)
def test_text_and_contexts_of_all_responses(response, text):
    result = evaluate_response(MetricEvaluator("context_relevancy", FakeLLM(truth)), response)
    assert (result.response, tuple(result.contexts), result.unscored) == (text, TEXTS, None)


def evaluate_response(evaluator, response):
    return evaluator.evaluate_response(query="Who wrote Emma?", response=response)


def aevaluate_response(evaluator, response):
    return asyncio.run(evaluator.aevaluate_response(query="Who wrote Emma?", response=response))


@pytest.mark.parametrize("way", [evaluate_response, aevaluate_response])
def test_a_response_that_cannot_be_scored_is_an_invalid_result_for_metrics_that_need_it(way):
    llm = FakeLLM(truth)
    alignment, context = MetricEvaluator("alignment_coverage", llm), MetricEvaluator("context_relevancy", llm)
    streamed = "missing_input: response: is still being streamed; read it to its end first"
    for response, reason in (
        (Response(None, NODES), "missing_input: response: "),
        (Response({"answer": 1}, NODES), "missing_input: response: is missing"),
        (StreamingResponse(iter([]), NODES, None, ""), "empty_input: response: "),
        (Response("x", [NodeWithScore(node=ImageNode(image=""))]), "empty_input: retrieved_contexts: "),
        (StreamingAgentChatResponse(response="", source_nodes=NODES), streamed),
    ):
        assert way(alignment, response).invalid_reason.startswith(reason)
    assert way(context, Response("Empty", [])).unscored == "empty_input"
    assert llm.requests == []
    assert way(context, StreamingResponse(iter(PIECES), NODES[:1])).score == 1.0
    assert way(context, None).unscored == "missing_input"
    with pytest.raises(TypeError, match="response: is str; "):
        way(context, "Jane Austen.")


@pytest.mark.parametrize("way", [evaluate_response, aevaluate_response])
def test_a_stream_is_the_apps_to_read_and_is_scored_once_its_response_keeps_the_text(way):
    evaluator = MetricEvaluator("alignment_coverage", FakeLLM(truth))
    unread = "missing_input: response: is a stream that is yet to be read; call response.get_response() first"
    for stream, whole in (
        (StreamingResponse(iter(PIECES), NODES), lambda stream: stream.get_response()),
        (AsyncStreamingResponse(atokens(), NODES), lambda stream: asyncio.run(stream.get_response())),
    ):
        assert way(evaluator, stream).invalid_reason == unread
        assert str(whole(stream)) == way(evaluator, stream).response == "Jane Austen."


# -------------------------------------------------------------------------------- metadata of documents

TEXT = "Emma is a novel by Jane Austen."
MODES = {
    None: TEXT,
    "llm": f"file_path: books/emma.txt\npage_label: 7\n\n{TEXT}",
    MetadataMode.EMBED: f"file_path: books/emma.txt\nsize: 812\n\n{TEXT}",
    "all": f"file_path: books/emma.txt\npage_label: 7\nsize: 812\n\n{TEXT}",
}


@pytest.mark.parametrize("mode", MODES)
def test_metadata_stand_in_the_contexts_if_asked_for_live_and_offline_alike(mode):
    document = Document(
        text=TEXT,
        metadata={"file_path": "books/emma.txt", "page_label": "7", "size": 812},  # as LlamaIndex' readers of files do
        excluded_llm_metadata_keys=["size"],
        excluded_embed_metadata_keys=["page_label"],
    )
    options = {} if mode is None else {"metadata_mode": mode}
    notes = Noting()
    index = VectorStoreIndex.from_documents([document], embed_model=MockEmbedding(embed_dim=2))
    app = index.as_query_engine(llm=Speaking())
    instrument(notes, metadata_mode="all")
    instrument(notes, **options)  # the last call holds
    metric = ContextRelevancy(llm=FakeLLM(truth))
    report = evaluate_query_engine(app, ["Who?"], [metric], **options)
    result = MetricEvaluator(metric, **options).evaluate_response("Who?", app.query("Who?"))
    assert {report.sample(next(report.results())).retrieved_contexts, tuple(result.contexts)} == {(MODES[mode],)}
    with pytest.raises(ConnectionError):
        index.as_query_engine(llm=Speaking(ConnectionError("down"))).query("Who?")
    chat = ContextChatEngine.from_defaults(index.as_retriever(), llm=Speaking(), memory=memory())
    list(chat.stream_chat("Who?").response_gen)
    notes.wait(4)
    Answering(answer=lambda question: str(len(index.as_retriever().retrieve(question)))).query("Who?")
    assert [one.retrieved_contexts for one in notes.samples] == [(MODES[mode],)] * 4
    assert (notes.skipped, notes.errors) == ({"own_run": 1}, [])
