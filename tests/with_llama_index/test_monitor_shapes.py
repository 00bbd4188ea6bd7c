"""What a person would read in a trace is what the sample says: history, named contexts, ids, and reasons for none."""

import asyncio
import warnings

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.evaluation import (
    BatchEvalRunner,
    CorrectnessEvaluator,
    DatasetGenerator,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.indices.query.query_transform.base import StepDecomposeQueryTransform
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
)
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation.dispatcher import instrument_tags

import ragstone
from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.live import CallableSink, Sampling
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import (
    MetricEvaluator,
    aevaluate_query_engine,
    contexts,
    evaluate_query_engine,
    instrument,
    uninstrument,
)

from ..support.noting import Noting  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .models import truth
from .monitored import (
    ANSWER,
    TEXTS,
    Calling,
    LLMMetadata,
    Speaking,
    engine,
    index,
    memory,
    retriever,
)
from .test_monitor_runs import Second, asking_subs, run, tool

pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.PydanticDeprecatedSince20",
    "ignore::pydantic.PydanticDeprecatedSince211",
    "ignore:is_running called from within a step:DeprecationWarning",
)
DONE = ("Who?", TEXTS, ANSWER)
EARLIER = [("user", "Who?"), ("assistant", ANSWER)]


def synthesizer(answer=ANSWER, **options):
    return get_response_synthesizer(llm=Speaking(answer), **options)


# -------------------------------------------------------------------------------- retrieve, then synthesize


def by_engine():
    app = engine()
    return app.synthesize(QueryBundle("Who?"), app.retrieve(QueryBundle("Who?")))


def by_parts():
    return synthesizer().synthesize("Who?", retriever().retrieve("Who?"))


def by_stream():
    return "".join(synthesizer(streaming=True).synthesize("Who?", retriever().retrieve("Who?")).response_gen)


def by_async():
    async def main():
        return await synthesizer().asynthesize("Who?", await retriever().aretrieve("Who?"))

    return asyncio.run(main())


def after_reranking():
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]  # of other ids than those retrieved
    retriever().retrieve("Who?")
    return synthesizer().synthesize("Who?", nodes)


@pytest.mark.parametrize("ask", [by_engine, by_parts, by_stream, by_async, after_reranking])
def test_retrieve_then_synthesize_is_one_sample(notes, ask):
    assert str(ask()) == ANSWER
    assert notes.told == [DONE]
    assert notes.skipped == {}


def test_the_nodes_that_were_synthesized_are_the_contexts(notes):
    nodes = Second().postprocess_nodes(retriever().retrieve("Who?"))
    synthesizer().synthesize("Who?", nodes)
    assert notes.told == [("Who?", (f"reranked: {TEXTS[1]}",), ANSWER)]


def test_a_retrieval_that_nothing_answers_is_counted_and_one_of_another_request_is_not_taken_back(notes):
    retriever().retrieve("Search alone?")
    retriever().retrieve("Who?")
    assert notes.skipped == {"only_retrieval": 2}
    nodes = retriever().retrieve("Who?")
    synthesizer().synthesize("Who?", nodes)
    assert notes.skipped == {"only_retrieval": 2}
    assert notes.told == [DONE]


async def test_many_at_once(notes):
    async def ask(i):
        nodes = await retriever([f"Text {i}."]).aretrieve(f"{i}?")
        await get_response_synthesizer(llm=Speaking(f"Answer {i}.", 0.002)).asynthesize(f"{i}?", nodes)

    await asyncio.gather(*map(ask, range(20)), retriever().aretrieve("Alone?"))
    assert sorted(notes.told) == sorted((f"{i}?", (f"Text {i}.",), f"Answer {i}.") for i in range(20))
    assert notes.skipped == {"only_retrieval": 1}


def test_a_monitor_counts_no_retrieval_that_was_answered():
    with Monitor(ContextRelevancy(llm=FakeLLM(truth)), sinks=CallableSink(lambda outcomes: None)) as monitor:
        instrument(monitor)
        nodes = retriever().retrieve("Who?")
        assert monitor.stats().skipped == {"only_retrieval": 1}
        synthesizer().synthesize("Who?", nodes)
        assert monitor.stats().skipped == {}
        uninstrument(monitor)


def test_models_alone(notes):
    model = Speaking()
    model.complete("x")
    model.chat([ChatMessage("x")])
    assert list(model.stream_chat([ChatMessage("x")]))
    assert notes.skipped == {"only_model": 3}
    assert "".join(engine(streaming=True).query("Who?").response_gen) == ANSWER  # its model is called while it is read
    assert notes.skipped == {"only_model": 3}


# -------------------------------------------------------------------------------- contexts


class Naming(CustomQueryEngine):
    def custom_query(self, query_str):
        found = ["Emma is a novel.", "Emma is a novel."]
        assert contexts(found) is found
        retriever().retrieve(query_str)
        contexts(NodeWithScore(node=TextNode(text="Its author is Jane Austen.")))
        return ANSWER


NAMED = ("Emma is a novel.", "Its author is Jane Austen.")


class NamingFlow(Workflow):
    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        def search():
            return contexts([TextNode(text=text) for text in NAMED])

        search()
        return StopEvent(result=engine().query(ev.query))


def test_named_contexts_count_before_those_of_retrievers(notes):
    other = Noting()
    instrument(other)
    Naming().query("Who?")
    asyncio.run(Naming().aquery("Who?"))
    run(NamingFlow(), query="Who?")
    assert notes.told == other.told == [("Who?", NAMED, ANSWER)] * 3


def test_a_tool_names_contexts(notes):
    async def search(query: str) -> str:  # a plain one is called without its run's context by LlamaIndex 0.13
        """Search."""
        contexts(NAMED)
        return "Found."

    asked(search)
    assert notes.told == [("How many?", NAMED, ANSWER)]


def test_contexts_with_nothing_around_return_what_they_were_given_and_never_raise(notes):
    for found in ([], "one text", None, iter("ab"), {"a": 1}, [3]):
        assert contexts(found) is found
    with ragstone.trace_id("request"):
        assert contexts({"a": 1}) == {"a": 1}
    assert (notes.told, notes.errors) == ([], [])


def test_contexts_that_cannot_be_read_are_counted(notes):
    class Odd(CustomQueryEngine):
        def custom_query(self, query_str):
            assert contexts({"a": 1}) == {"a": 1}
            return ANSWER

    Odd().query("Who?")
    assert notes.told == [("Who?", (), ANSWER)]
    assert [str(error) for error in notes.errors] == ["contexts: has dict; pass nodes or texts"]
    notes.errors.clear()


# -------------------------------------------------------------------------------- ids


def test_the_samples_of_a_block_have_its_id_and_the_contexts_named_before_them(notes):
    other = Noting()
    instrument(other)
    with ragstone.trace_id("request 7"):
        contexts(["Named outside."])
        engine().query("First?")
        retriever().retrieve("Nothing?")
        engine().query("Second?")
    engine().query("Third?")
    for monitor in (notes, other):
        assert [one.id for one in monitor.samples[:2]] == ["request 7", "request 7/2"]
        assert [one.retrieved_contexts for one in monitor.samples] == [("Named outside.",), TEXTS, TEXTS]
        assert monitor.samples[2].metadata["run_id"] == f"RetrieverQueryEngine.query-{monitor.samples[2].id}"


def test_tags_name_the_id_the_user_and_the_thread(notes):
    tags = {"ragstone_trace_id": "mine", "user_id": "ann", "thread_id": "t1", "team": "books"}
    with instrument_tags(tags):
        engine().query("Who?")
    (sample,) = notes.samples
    assert sample.id == "mine"
    about = {key: sample.metadata[key] for key in ("tags", "user_id", "thread_id")}
    assert about == {"tags": {"team": "books"}, "user_id": "ann", "thread_id": "t1"}


# -------------------------------------------------------------------------------- generated and empty


def test_generated_answers_are_no_contexts_live_or_offline(notes):
    subs = asking_subs(tool(engine("Austen."), "a"))
    steps = MultiStepQueryEngine(
        engine(), StepDecomposeQueryTransform(llm=Speaking("Sub?")), response_synthesizer=synthesizer(), num_steps=2
    )
    for app in (subs, steps):
        offline = MetricEvaluator("context_relevancy", FakeLLM(truth)).evaluate_response("Who?", app.query("Who?"))
        assert tuple(offline.contexts) == TEXTS
        report = evaluate_query_engine(app, ["Who?"], ["context_relevancy"], FakeLLM(truth), progress=False)
        assert [report.sample(each).retrieved_contexts for each in report.results()] == [TEXTS]
    assert notes.told == [DONE] * 2


def test_sub_questions_to_engines_without_sources_have_what_these_retrieved(notes):
    class Sourceless(CustomQueryEngine):
        def custom_query(self, query_str):
            retriever(["Deep down."]).retrieve(query_str)
            return "Austen."

    asking_subs(tool(Sourceless(), "a")).query("Who?")
    assert notes.told == [("Who?", ("Deep down.",), ANSWER)]


def test_citations_are_read_without_their_labels_and_a_retry_without_its_evaluation(notes):
    CitationQueryEngine.from_args(index(), llm=Speaking(), similarity_top_k=2).query("Who?")
    RetryQueryEngine(engine(), RelevancyEvaluator(llm=Speaking("YES"))).query("Who?")
    assert notes.told == [("Who?", tuple(f"{text}\n" for text in TEXTS), ANSWER), DONE]
    assert notes.skipped == {}


def test_an_evaluation_within_a_run_adds_no_contexts(notes):
    class Checked(CustomQueryEngine):
        def custom_query(self, query_str):
            retriever().retrieve(query_str)
            FaithfulnessEvaluator(llm=Speaking("YES")).evaluate("Q?", "R.", ["Of the evaluation."])
            return ANSWER

    Checked().query("Who?")
    assert (notes.told, notes.skipped) == ([DONE], {})


@pytest.mark.parametrize("streaming", [False, True])
def test_an_engine_that_found_nothing_has_not_answered(notes, streaming):
    class Finding(BaseRetriever):  # an index that holds nothing fails in LlamaIndex 0.13
        def _retrieve(self, query_bundle):
            return []

    answers = synthesizer(streaming=streaming)
    response = RetrieverQueryEngine(Finding(), response_synthesizer=answers).query("Who?")
    metric = MetricEvaluator("response_relevancy", FakeLLM(truth), FakeEmbedder())
    assert metric.evaluate_response("Who?", response).invalid_reason.startswith("empty_input: response: ")
    if streaming:
        assert "".join(response.response_gen) == "Empty Response"
    assert notes.told == [("Who?", (), "")]
    outcomes = []
    rules = {"sampling": Sampling(rate=0.0, always=["empty_retrieval"]), "sinks": CallableSink(outcomes.extend)}
    with Monitor(metric.metric, **rules) as monitor:
        monitor.submit(notes.samples[0])
        assert monitor.flush(30).done
    assert [one.outcome.reason for one in outcomes] == ["empty_input"]


def test_nodes_without_text_and_texts_that_stand_there_twice(notes):
    texts = [TextNode(text=text) for text in (TEXTS[0], TEXTS[0], " ")]
    synthesizer().synthesize("Who?", [NodeWithScore(node=node) for node in (ImageNode(image="x"), *texts)])
    assert notes.told == [("Who?", TEXTS[:1], ANSWER)]


# -------------------------------------------------------------------------------- tools


def asked(function, **options):
    name = function.__name__
    app = FunctionAgent(tools=[function], llm=Calling((name, {"query": "holidays"}), ANSWER), streaming=False)
    return run(app, user_msg="How many?", memory=memory(), **options)


def search_handbook(query: str) -> str:
    """Search."""
    return f"There are 30 days of {query}."


def search_texts(query: str) -> list:
    """Search."""
    return ["One.", "", "Two."]


def search_nodes(query: str) -> list:
    """Search, and give some of what was found."""
    return retriever((*TEXTS, "Left out.")).retrieve(query)[:2]


async def search_as_text(query: str) -> str:
    """Search, and give one text."""
    return "\n".join(node.text for node in retriever().retrieve(query))


def failing(query: str) -> str:
    """Search."""
    raise ConnectionError("down")


TOOLS = {
    search_handbook: ((), ("There are 30 days of holidays.",)),
    search_texts: ((), ("One.", "Two.")),
    search_nodes: (TEXTS, TEXTS),
    search_as_text: ((), ("\n".join(TEXTS),)),
    failing: ((), ()),
}


@pytest.mark.parametrize("function", TOOLS, ids=lambda one: one.__name__)
def test_the_texts_of_a_tool_are_contexts_when_it_is_named_live_and_offline(notes, function):
    unnamed, named = TOOLS[function]
    for tools, found in (((), unnamed), ([function.__name__], named)):
        instrument(notes, context_tools=tools)
        response = asked(function)
        offline = MetricEvaluator("faithfulness", FakeLLM(truth), context_tools=tools)
        assert tuple(offline.evaluate_response("How many?", response).contexts) == found
        live = TEXTS if function is search_as_text and not tools else found  # a retriever is seen within the run
        assert notes.samples[-1].retrieved_contexts == live


# -------------------------------------------------------------------------------- workflows


class Ask(StartEvent):
    prompt: str
    tone: str = "kind"


class Done(StopEvent):
    words: str


class Own(Workflow):
    @step
    async def answer(self, ev: Ask) -> Done:
        engine().query("Within?")
        return Done(words=f"{ev.prompt} {ANSWER}")


class Ingest(Workflow):
    @step
    async def take(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result="3 files")


def told_by(notes, fields, flow=Own, **asked):
    instrument(notes, fields=fields)
    run(flow(), **asked)
    return notes.told


def test_fields_by_a_function_of_what_was_asked_and_returned(notes):
    seen = []

    def fields(inputs, output):
        seen.append((inputs, type(output)))
        return {"response": output.words, "metadata": {"tone": inputs["tone"]}}

    assert told_by(notes, fields, prompt="Who?") == [("Who?", TEXTS, f"Who? {ANSWER}")]
    assert seen == [({"prompt": "Who?", "tone": "kind"}, Done)]
    assert notes.samples[0].metadata["tone"] == "kind"
    assert notes.samples[0].metadata["name"] == "Own.run"


def test_fields_by_name(notes):
    named = {"response": "words", "user_input": "tone", "reference": "deep.er"}
    assert told_by(notes, named, prompt="Who?") == [("kind", TEXTS, f"Who? {ANSWER}")]
    engine().query("Who?")  # has none of the names
    assert notes.told[1] == DONE


def test_what_the_function_may_return(notes):
    node = NodeWithScore(node=TextNode(text="A node."))
    given = Sample(user_input="Asked?", response="Said.", id="mine")
    for returned in ({"user_input": "Asked?", "retrieved_contexts": [node, "A text."], "response": "Said."}, given, {}):
        told_by(notes, lambda inputs, output, returned=returned: returned, Ingest, query="Who?")
    assert notes.told == [
        ("Asked?", ("A node.", "A text."), "Said."),
        ("Asked?", (), "Said."),
        ("Who?", (), "3 files"),
    ]
    assert notes.samples[1].id == "mine"


def test_the_function_may_return_a_stream(notes):
    streams = []

    def fields(inputs, output):
        if output != "3 files":
            return {}
        streams.append(engine(streaming=True).query("Again?"))
        return {"response": streams[0]}

    assert told_by(notes, fields, Ingest, query="Who?") == []
    assert "".join(streams[0].response_gen) == ANSWER
    assert DONE in notes.told


def test_what_the_function_declines_or_cannot_read_is_counted(notes):
    told_by(notes, lambda inputs, output: None, Ingest, query="Who?")
    assert (notes.told, notes.skipped, notes.errors) == ([], {"declined": 1}, [])
    for wrong in (lambda *_: 1 / 0, lambda *_: 7, lambda *_: {"questoin": "Who?"}, lambda *_: {"user_input": 7}):
        told_by(notes, wrong, Ingest, query="Who?")
    assert (notes.told, notes.skipped) == ([], {"declined": 1, "fields_failed": 4})
    assert [str(error) for error in notes.errors] == [
        "fields: the function raised ZeroDivisionError: division by zero",
        "fields: the function returned int; return a Sample or a mapping of fields",
        "fields: questoin: write user_input. A sample has user_input, retrieved_contexts, response, reference, id, history, metadata",
        "fields: user_input: is int, not text (str)",
    ]
    notes.errors.clear()
    with pytest.raises(ValueError, match="fields: 'response' should be a valid dictionary"):
        instrument(notes, fields="response")


def test_without_a_question_or_chosen_away_there_is_no_sample(notes):
    run(Ingest(), folder="books", tone="kind")
    run(Ingest(), query="/summarize the contract of https://example.org")
    assert (len(notes.told), notes.skipped) == (1, {"no_question": 1})
    instrument(notes, where=lambda app, name: not isinstance(app, Ingest))
    run(Ingest(), input="What is it?")
    assert notes.skipped == {"no_question": 1, "excluded": 1}


# -------------------------------------------------------------------------------- evaluations


def batch():
    runner = BatchEvalRunner({"relevancy": MetricEvaluator("context_relevancy", FakeLLM(truth))})
    asyncio.run(runner.aevaluate_queries(engine(), queries=["Who?"]))


def both_halves(**options):
    metrics = (["context_relevancy"], FakeLLM(truth))
    evaluate_query_engine(engine(**options), ["Who?"], *metrics, progress=False)
    asyncio.run(aevaluate_query_engine(engine(**options), ["Who?"], *metrics, progress=False))


def dataset():
    nodes, model = [TextNode(text=TEXTS[0])], Speaking("1. Who?")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the class, in favour of one in another package
        DatasetGenerator(nodes, llm=model, num_questions_per_chunk=1).generate_dataset_from_nodes()


EVALUATIONS = {
    "faithfulness": (lambda: FaithfulnessEvaluator(llm=Speaking("YES")).evaluate("Who?", ANSWER, TEXTS), 1),
    "relevancy": (lambda: RelevancyEvaluator(llm=Speaking("YES")).evaluate("Who?", ANSWER, TEXTS), 1),
    "correctness": (lambda: CorrectnessEvaluator(llm=Speaking("4\nSo.")).evaluate("Who?", ANSWER, reference="x"), 1),
    "batch": (batch, 1),
    "ours": (both_halves, 2),
    "ours, streaming": (lambda: both_halves(streaming=True), 2),
    "dataset": (dataset, 2),
}


@pytest.mark.parametrize("name", EVALUATIONS)
def test_an_evaluation_is_no_traffic(notes, name):
    evaluation, runs = EVALUATIONS[name]
    evaluation()
    assert (notes.told, notes.skipped) == ([], {"own_run": runs})
    engine().query("Who?")
    assert notes.told == [DONE]


# -------------------------------------------------------------------------------- history


def history(sample):
    return [(turn.role, turn.content) for turn in sample.history]


CHATS = {
    "context": lambda: ContextChatEngine.from_defaults(retriever(), llm=Speaking(), memory=memory()),
    "condensed, with context": lambda: CondensePlusContextChatEngine.from_defaults(
        retriever(), llm=Speaking(), memory=memory()
    ),
    "condensed": lambda: CondenseQuestionChatEngine.from_defaults(engine(), llm=Speaking(), memory=memory()),
    "simple": lambda: SimpleChatEngine.from_defaults(llm=Speaking(), memory=memory()),
}


def chats(app, question, **options):
    return str(app.chat(question, **options))


def achats(app, question, **options):
    return str(asyncio.run(app.achat(question, **options)))


def stream_chats(app, question, **options):
    response = app.stream_chat(question, **options)
    text = "".join(response.response_gen)
    soon(lambda: app.chat_history[-1].role == "assistant")  # a thread writes it
    return text


@pytest.mark.parametrize("ask", [chats, achats, stream_chats])
@pytest.mark.parametrize("name", CHATS)
def test_a_follow_up_question_has_what_was_said_before(notes, name, ask):
    app = CHATS[name]()
    for question in ("Who?", "And when?"):
        assert ask(app, question) == ANSWER
    given = [ChatMessage("Before?"), ChatMessage("Yes.", role="assistant"), ChatMessage("Now?")]
    ask(app, "Now?", chat_history=given)
    notes.wait(3)
    assert [one.user_input for one in notes.samples] == ["Who?", "And when?", "Now?"]
    told = [history(one) for one in notes.samples]
    assert told == [[], EARLIER, [("user", "Before?"), ("assistant", "Yes.")]]


class Chatty(Speaking):
    @property
    def metadata(self):
        return LLMMetadata(model_name="chatty", num_output=64, is_chat_model=True)


def test_an_agents_history_is_its_memory_before_the_turn(notes):
    kept = memory()
    app = FunctionAgent(tools=[search_handbook], llm=Calling(ANSWER), streaming=False)
    for question in ("Who?", "And when?"):
        run(app, user_msg=question, memory=kept)
    given = [ChatMessage("Before?"), ChatMessage("Yes.", role="assistant")]
    run(app, user_msg="Now?", chat_history=given, memory=memory())
    run(app, chat_history=[*given, ChatMessage("Now?")], memory=memory())
    before = [("user", "Before?"), ("assistant", "Yes.")]
    assert [history(one) for one in notes.samples] == [[], EARLIER, before, before]


def test_an_agent_that_thinks_aloud_is_remembered_by_its_answers(notes):
    turns = iter([f"Thought: I know.\nAnswer: {ANSWER}"] * 2)
    app, kept = ReActAgent(tools=[], llm=Speaking(lambda _: next(turns)), streaming=False), memory()
    for question in ("Who?", "And when?"):
        run(app, user_msg=question, memory=kept)
    assert history(notes.samples[1]) == EARLIER


def test_a_workflow_with_a_memory_or_a_history(notes):
    class Bot(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            await ev.memory.aput(ChatMessage(ev.input))
            response = await Speaking().achat(await ev.memory.aget())
            await ev.memory.aput(response.message)
            return StopEvent(result=response)

    kept = memory()
    for question in ("Who?", "And when?"):
        run(Bot(), input=question, memory=kept)
    run(Ingest(), query="Now?", chat_history=[{"role": "user", "content": "Before?"}])
    assert [history(one) for one in notes.samples] == [[], EARLIER, [("user", "Before?")]]


def test_few_shot_examples_of_an_engine_are_no_history(notes):
    class Shown(CustomQueryEngine):
        def custom_query(self, query_str):
            shown = [ChatMessage("Example?"), ChatMessage("So.", role="assistant"), ChatMessage(query_str)]
            return str(Chatty().chat(shown).message.content)

    Shown().query("Who?")
    report = evaluate_query_engine(Shown(), ["Who?"], ["context_relevancy"], FakeLLM(truth), progress=False)
    offline = [report.sample(each) for each in report.results()]
    assert [history(one) for one in (*notes.samples, *offline)] == [[], []]


# -------------------------------------------------------------------------------- streams and reasons
