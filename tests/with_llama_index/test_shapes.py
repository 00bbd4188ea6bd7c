"""What apps of all shapes become: each outermost run one sample, or a reason why it is none."""

import asyncio
import warnings

import pytest
from llama_index.core import ComposableGraph, Document, DocumentSummaryIndex, Settings, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.evaluation import (
    BatchEvalRunner,
    DatasetGenerator,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.indices.query.query_transform.base import StepDecomposeQueryTransform
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.objects import ObjectIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, RecursiveRetriever
from llama_index.core.schema import ImageNode, IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from ragstone import ContextRelevancy
from ragstone.testing import FakeLLM
from ragstone_llama_index import (
    MetricEvaluator,
    aevaluate_query_engine,
    contexts,
    evaluate_query_engine,
    instrument,
)

from ..support.waiting import soon  # noqa: TID252
from .models import truth
from .monitored import (
    ANSWER,
    TEXTS,
    Answering,
    Calling,
    LLMMetadata,
    Speaking,
    as_json,
    embedding,
    engine,
    index,
    memory,
    retriever,
    run,
    settled,
)

DONE = ("Who?", TEXTS, ANSWER)
MADE_UP = "Mark Twain wrote Emma."


class Second(BaseNodePostprocessor):
    """Leaves the second of the nodes, rewritten."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=TextNode(text=f"reranked: {nodes[1].text}"), score=1.0)]


class Telling(BaseNodePostprocessor):
    """Leaves the second node, and says so as rerankers do."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        dispatcher = get_dispatcher(__name__)
        dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=1, model_name="second"))
        dispatcher.event(ReRankEndEvent(nodes=nodes[1:2]))
        return nodes[1:2]


class Found(BaseRetriever):
    """Finds what it is given."""

    def __init__(self, *nodes):
        self.nodes = nodes
        super().__init__()

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=node, score=0.9) for node in self.nodes]


def tool(app, name):
    return QueryEngineTool.from_defaults(app, name=name, description=name)


def synthesizer(answer=ANSWER, **options):
    return get_response_synthesizer(llm=Speaking(answer), **options)


# -------------------------------------------------------------------------------- query engines


def router():
    tools = [tool(engine("one", texts=TEXTS[:1]), "one"), tool(engine("two", texts=TEXTS[1:]), "two")]
    choice = Speaking(as_json([{"choice": 2, "reason": "so"}]))
    return RouterQueryEngine(LLMSingleSelector.from_defaults(llm=choice), tools, llm=choice)


def asking_subs(*tools, use_async=False):
    """An engine that asks two questions, of the first and the last of the tools."""
    asked = zip(("Who wrote Emma?", "Who Dune?"), (tools[0], tools[-1]), strict=True)
    subs = [{"sub_question": question, "tool_name": one.metadata.name} for question, one in asked]
    generator = LLMQuestionGenerator.from_defaults(llm=Speaking(as_json(subs)))
    return SubQuestionQueryEngine.from_defaults(
        tools, llm=Speaking(), question_gen=generator, use_async=use_async, verbose=False
    )


def steps():
    transform = StepDecomposeQueryTransform(llm=Speaking("Sub?"))
    return MultiStepQueryEngine(engine(), transform, response_synthesizer=synthesizer(), num_steps=2)


def recursive():
    found = Found(IndexNode(text="about Emma", index_id="emma"))
    inner = RecursiveRetriever("root", {"root": found}, query_engine_dict={"emma": engine(MADE_UP)})
    return RetrieverQueryEngine.from_args(inner, llm=Speaking())


def by_object():
    return RetrieverQueryEngine.from_args(Found(IndexNode(text="", index_id="x", obj=engine(MADE_UP))), llm=Speaking())


def graph():
    Settings.llm = Speaking(lambda prompt: ANSWER if MADE_UP in prompt else MADE_UP)
    inner = [SummaryIndex.from_documents([Document(text=text)]) for text in TEXTS]
    return ComposableGraph.from_indices(SummaryIndex, inner, index_summaries=["a", "b"]).as_query_engine()


def one_by_one(question):
    """Gives its synthesizer one node at a time, and not all that it retrieved."""
    nodes = [retriever((*TEXTS, "Thrown away.")).retrieve(question) for _ in range(2)]
    return " ".join(str(synthesizer("So.").synthesize(question, nodes[i][i : i + 1])) for i in range(2))


def reranked(question):
    retriever(["Not reranked."]).retrieve(question)
    nodes = Telling().postprocess_nodes(retriever().retrieve(question), query_str=question)
    return str(Speaking().complete(f"Not reranked. {nodes[0].text}"))


CHOSEN = (*TEXTS, "Ulysses is a novel by James Joyce.")


def chosen(question):
    return "\n".join(node.text for node in retriever(CHOSEN).retrieve(question)[::2])


def prompted(question):
    return str(Speaking().complete(chosen(question)))


def drafted(question):
    draft = Speaking("It is a novel of Jane Austen's.").complete(chosen(question))
    return str(Speaking().complete(f"Say it in four words: {draft}"))


def pieces(question):
    return StreamingResponse(piece.delta for piece in Speaking().stream_complete(chosen(question)))


def naming(question):
    found = ["Emma is a novel.", "Emma is a novel."]
    assert contexts(found) is found
    retriever().retrieve(question)
    contexts(NodeWithScore(node=TextNode(text="Its author is Jane Austen.")))
    return ANSWER


def checked(question):
    retriever().retrieve(question)
    FaithfulnessEvaluator(llm=Speaking("YES")).evaluate("Q?", "R.", ["Of the evaluation."])
    return ANSWER


def sourceless(question):
    retriever(["Deep down."]).retrieve(question)
    return "Austen."


def falling_back(question):
    try:
        return str(engine(ConnectionError("down"), texts=["Not read."]).query(question))
    except ConnectionError:
        return str(engine().query(question))


class Racing(CustomQueryEngine):
    """Answers with the engine that is ready first."""

    def custom_query(self, query_str):
        return asyncio.run(self.acustom_query(query_str))

    async def acustom_query(self, query_str):
        slow = asyncio.create_task(engine(texts=["Not read."], pause=0.3).aquery(query_str))
        await asyncio.sleep(0.05)
        answer = await engine().aquery(query_str)
        slow.cancel()
        return str(answer)


def merging(question):
    """Says what two engines say that answer alike, the second with a page that repeats question and answer."""
    found = [engine("Yes.", texts=[text]).query(question).source_nodes for text in FAQ]
    return Response(ANSWER, source_nodes=[*found[0], *found[1]])


def gated(question):
    assert str(engine("Yes.", texts=["A list of topics."]).query(question)) == "Yes."
    return str(engine(texts=FAQ[:1]).query(question))


FAQ = ("Who? Yes. Jane Austen.", "Yes.")
NAMED = ("Emma is a novel.", "Its author is Jane Austen.")
PARTS = (engine("Austen.", texts=TEXTS[:1]), engine("Herbert.", texts=TEXTS[1:]))
QUERIES = {
    "plain": (engine, DONE),
    "rewritten nodes": (
        lambda: engine(node_postprocessors=[Second()]),
        ("Who?", (f"reranked: {TEXTS[1]}",), ANSWER),
    ),
    "router": (router, ("Who?", TEXTS[1:], "two")),
    "HyDE": (lambda: TransformQueryEngine(engine(), HyDEQueryTransform(llm=Speaking("Made up."))), DONE),
    "a source of each sub-question": (lambda: asking_subs(tool(PARTS[0], "a"), tool(PARTS[1], "b")), DONE),
    "sub-questions side by side": (lambda: asking_subs(tool(PARTS[0], "a"), tool(PARTS[1], "b"), use_async=True), DONE),
    "a sub-question without an answer": (
        lambda: asking_subs(tool(engine(ValueError("down")), "a"), tool(engine(), "b")),
        DONE,
    ),
    "sub-questions to a text": (
        lambda: asking_subs(tool(Answering(answer=sourceless), "a")),
        ("Who?", ("Deep down.",), ANSWER),
    ),
    "steps": (steps, DONE),
    "recursive": (recursive, DONE),
    "an index node's object": (by_object, DONE),
    "a graph": (graph, DONE),
    "one by one": (lambda: Answering(answer=one_by_one), ("Who?", TEXTS, "So. So.")),
    "reranked by hand": (lambda: Answering(answer=reranked), ("Who?", ("Not reranked.", TEXTS[1]), ANSWER)),
    "a part of what was retrieved": (lambda: Answering(answer=prompted), ("Who?", CHOSEN[::2], ANSWER)),
    "a part of it, for a draft": (lambda: Answering(answer=drafted), ("Who?", CHOSEN[::2], ANSWER)),
    "named": (lambda: Answering(answer=naming), ("Who?", NAMED, ANSWER)),
    "with an evaluation within": (lambda: Answering(answer=checked), DONE),
    "what failed before": (lambda: Answering(answer=falling_back), DONE),
    "the slower of two": (Racing, DONE),
    "two engines with one answer": (lambda: Answering(answer=merging), ("Who?", FAQ, ANSWER)),
    "an engine that is asked before": (lambda: Answering(answer=gated), ("Who?", FAQ[:1], ANSWER)),
    "retried": (lambda: RetryQueryEngine(engine(), RelevancyEvaluator(llm=Speaking("YES"))), DONE),
    "citing": (
        lambda: CitationQueryEngine.from_args(index(), llm=Speaking(), similarity_top_k=2),
        ("Who?", tuple(f"{text}\n" for text in TEXTS), ANSWER),
    ),
    "nothing found": (
        lambda: RetrieverQueryEngine(Found(), response_synthesizer=synthesizer()),
        ("Who?", (), ""),
    ),
    "texts twice, and none": (
        lambda: RetrieverQueryEngine.from_args(
            Found(ImageNode(image="x"), *(TextNode(text=each) for each in (TEXTS[0], TEXTS[0], " "))), llm=Speaking()
        ),
        ("Who?", TEXTS[:1], ANSWER),
    ),
}


def test_a_stream_s_contexts_are_what_its_call_read(notes):
    assert "".join(Answering(answer=pieces).query("Who?").response_gen) == ANSWER
    assert notes.told == [("Who?", CHOSEN[::2], ANSWER)]


@pytest.mark.parametrize("answer", [prompted, pieces])
def test_an_evaluation_reads_what_the_answering_call_read(answer):
    metric = ContextRelevancy(llm=FakeLLM({"ids": [1]}))
    report = evaluate_query_engine(Answering(answer=answer), ["Who?"], metric, progress=False)
    sample = report.sample(next(iter(report.results())))
    assert (sample.retrieved_contexts, sample.response) == (CHOSEN[::2], ANSWER)


ONCE = ("retried", "with an evaluation within")  # their async halves are none, or run apart in LlamaIndex 0.14.0


# What a response alone does not say: what lay on the way to a text, and which nodes are an inner engine's answers.
ONLY_WITH_ITS_RUN = (
    *(
        "one by one",
        "reranked by hand",
        "named",
        "with an evaluation within",
        "what failed before",
        "the slower of two",
    ),
    *("an engine that is asked before", "an index node's object", "a graph", "recursive", "sub-questions to a text"),
    *("a part of what was retrieved", "a part of it, for a draft"),
)


def offline_of(app):
    report = evaluate_query_engine(app, ["Who?"], "context_relevancy", FakeLLM(truth), progress=False)
    sample = report.sample(report[0])
    return sample.user_input, tuple(sample.retrieved_contexts), sample.response


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_read_alike_live_offline_and_by_its_response(notes, name):
    make, sample = QUERIES[name]
    app = make()
    response = app.query("Who?")
    assert str(response) in (sample[2], "Empty Response")
    if name not in ONCE:
        asyncio.run(app.aquery(QueryBundle("Who?")))
    assert notes.told == [sample] * len(notes.told)
    assert len({one.id for one in notes.samples}) == len(notes.told) == (1 if name in ONCE else 2)
    assert notes.skipped == {}
    assert notes.samples[0].metadata["name"] in (f"{type(app).__name__}.query", "query")
    assert offline_of(make()) == sample
    alone = MetricEvaluator("context_relevancy", FakeLLM(truth)).evaluate_response("Who?", response)
    if name not in ONLY_WITH_ITS_RUN:
        assert (alone.query, tuple(alone.contexts), alone.response) == sample


# -------------------------------------------------------------------------------- retrieve, then synthesize


def by_parts():
    synthesizer().synthesize("Who?", retriever().retrieve("Who?"))


def by_stream():
    list(synthesizer(streaming=True).synthesize("Who?", retriever().retrieve("Who?")).response_gen)


def by_async():
    async def main():
        await synthesizer().asynthesize("Who?", await retriever().aretrieve("Who?"))

    asyncio.run(main())


def rewritten():
    retriever().retrieve("Who?")
    synthesizer().synthesize("Who?", [NodeWithScore(node=TextNode(text=text)) for text in TEXTS])


def texts_alone(mode):
    synthesizer(response_mode=mode).get_response("Who?", list(TEXTS))


def alone():
    retriever().retrieve("Search alone?")
    retriever().retrieve("Who?")


def models_alone():
    model = Speaking()
    model.complete("x")
    model.chat([ChatMessage("x")])
    assert list(model.stream_chat([ChatMessage("x")]))
    assert "".join(engine(streaming=True).query("Who?").response_gen) == ANSWER  # its model is called while it is read


def built():
    DocumentSummaryIndex.from_documents([Document(text=TEXTS[0])], llm=Speaking(), embed_model=embedding())


PARTLY = {
    **{each.__name__: (each, [DONE], {}) for each in (by_parts, by_stream, by_async, rewritten)},
    **{
        mode: (lambda mode=mode: texts_alone(mode), [DONE], {})
        for mode in ("compact", "tree_summarize", "simple_summarize")
    },
    "retrievers alone": (alone, [], {"only_retrieval": 2}),
    "models alone": (models_alone, [DONE], {"only_model": 3}),
    "an index that is built": (built, [], {"indexing": 1}),
}


@pytest.mark.parametrize("name", PARTLY)
def test_parts_of_an_engine(notes, name):
    act, told, skipped = PARTLY[name]
    act()
    assert (notes.told, notes.skipped) == (told, skipped)


# -------------------------------------------------------------------------------- evaluations


def batch():
    runner = BatchEvalRunner({"relevancy": MetricEvaluator("context_relevancy", FakeLLM(truth))})
    asyncio.run(runner.aevaluate_queries(engine(), queries=["Who?"]))


def ours(**options):
    metrics = (["context_relevancy"], FakeLLM(truth))
    evaluate_query_engine(engine(**options), ["Who?"], *metrics, progress=False)
    asyncio.run(aevaluate_query_engine(engine(**options), ["Who?"], *metrics, progress=False))


def dataset():
    nodes, model = [TextNode(text=TEXTS[0])], Speaking("1. Who?")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the class, in favour of one in another package
        DatasetGenerator(nodes, llm=model, num_questions_per_chunk=1).generate_dataset_from_nodes()


EVALUATIONS = {
    "relevancy": (lambda: RelevancyEvaluator(llm=Speaking("YES")).evaluate("Who?", ANSWER, TEXTS), 1),
    "batch": (batch, 1),
    "ours": (ours, 2),
    "ours, streaming": (lambda: ours(streaming=True), 2),
    "dataset": (dataset, 2),
}


@pytest.mark.parametrize("name", EVALUATIONS)
def test_an_evaluation_is_no_traffic(notes, name):
    evaluation, runs = EVALUATIONS[name]
    evaluation()
    assert (notes.told, notes.skipped) == ([], {"own_run": runs})


def test_generated_answers_are_no_contexts_offline(notes):
    for app in (asking_subs(tool(engine("Austen."), "a")), steps()):
        offline = MetricEvaluator("context_relevancy", FakeLLM(truth)).evaluate_response("Who?", app.query("Who?"))
        assert tuple(offline.contexts) == TEXTS
        report = evaluate_query_engine(app, ["Who?"], ["context_relevancy"], FakeLLM(truth), progress=False)
        assert [report.sample(each).retrieved_contexts for each in report.results()] == [TEXTS]


# -------------------------------------------------------------------------------- agents

CALL = ("books", {"input": "author of Emma"})
BEFORE = [ChatMessage("Before?"), ChatMessage("Yes.", role="assistant")]
EARLIER = [("user", "Who?"), ("assistant", ANSWER)]
GIVEN = [("user", "Before?"), ("assistant", "Yes.")]


def history(sample):
    return [(turn.role, turn.content) for turn in sample.history]


def agent(*turns, answer="From the tool.", name="Agent", streaming=False, can_handoff_to=None, **options):
    tools = [tool(engine(answer, **options), "books")]
    fields = {"name": name, "description": name, "streaming": streaming, "can_handoff_to": can_handoff_to}
    return FunctionAgent(tools=tools, llm=Calling(*turns), **fields)


@pytest.mark.parametrize("streaming", [False, True])
def test_agents_that_work_together(notes, streaming):
    handoff = ("handoff", {"to_agent": "b", "reason": "so"})
    one = agent(CALL, handoff, name="a", can_handoff_to=["b"], streaming=streaming)
    two = agent(CALL, ANSWER, name="b", streaming=streaming, node_postprocessors=[Second()])
    app = AgentWorkflow(agents=[one, two], root_agent="a")
    assert str(run(app, user_msg="Who wrote Emma?", memory=memory())) == ANSWER
    assert notes.told == [("Who wrote Emma?", (*TEXTS, f"reranked: {TEXTS[1]}"), ANSWER)]
    assert notes.samples[0].metadata["name"] == "AgentWorkflow.run"


def test_an_agents_question_and_the_turns_before_it(notes):
    kept = memory()
    app = agent(ANSWER)
    for question in (ChatMessage("Who?"), "And when?"):
        run(app, user_msg=question, memory=kept)
    run(app, user_msg="Now?", chat_history=BEFORE, memory=memory())
    run(app, chat_history=[*BEFORE, ChatMessage("Now?"), ChatMessage("Be brief.", role="system")], memory=memory())
    run(app, chat_history=BEFORE[1:], memory=memory())
    assert [one.user_input for one in notes.samples] == ["Who?", "And when?", "Now?", "Now?"]
    assert [history(one) for one in notes.samples] == [[], EARLIER, GIVEN, GIVEN]
    assert notes.skipped == {"no_question": 1}


def test_an_agent_that_thinks_aloud_is_remembered_by_its_answers(notes):
    turns = iter([f"Thought: I know.\nAnswer: {ANSWER}"] * 2)
    app, kept = ReActAgent(tools=[], llm=Speaking(lambda _: next(turns)), streaming=False), memory()
    for question in ("Who?", "And when?"):
        run(app, user_msg=question, memory=kept)
    assert history(notes.samples[1]) == EARLIER


def test_a_tool_that_fails_is_the_agents_business_and_a_model_that_fails_is_an_error(notes):
    run(agent(CALL, ANSWER, answer=ConnectionError("down")), user_msg="Who?", memory=memory())
    assert isinstance(run(agent(CALL, ConnectionError("down")), user_msg="Who?", memory=memory()), Exception)
    assert notes.told == [("Who?", (), ANSWER), ("Who?", TEXTS, None)]
    assert [one.metadata.get("error") for one in notes.samples] == [None, "ConnectionError: down"]


def test_descriptions_of_tools_are_no_contexts(notes):
    index = ObjectIndex.from_objects([tool(engine(), "books")], index_cls=VectorStoreIndex, embed_model=embedding())
    fields = {"tool_retriever": index.as_retriever(), "streaming": False}
    for turns in ((CALL, ANSWER), (ANSWER,)):
        run(FunctionAgent(llm=Calling(*turns), **fields), user_msg="Who?", memory=memory())
    assert notes.told == [DONE, ("Who?", (), ANSWER)]


def asked(function):
    name = function.__name__
    app = FunctionAgent(tools=[function], llm=Calling((name, {"query": "holidays"}), ANSWER), streaming=False)
    return run(app, user_msg="How many?", memory=memory())


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


class Flow(Workflow):
    """Ends with what it is told to."""

    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        gives = ev.gives() if callable(ev.gives) else ev.gives
        if asyncio.iscoroutine(gives):
            gives = await gives
        if isinstance(gives, Exception):
            raise gives
        return StopEvent(result=gives)


async def within():
    return str(await agent(CALL, ANSWER).run(user_msg="Within?", memory=memory()))


def after_naming():
    contexts([TextNode(text=text) for text in NAMED])
    return engine().query("Within?")


FLOWS = {
    "an engine's answer": (lambda: {"response": engine().query("Within"), "seen": 1}, [DONE]),
    "named contexts": (after_naming, [("Who?", NAMED, ANSWER)]),
    "an agent within": (within, [DONE]),
    "an error": (ValueError("broken"), [("Who?", (), None)]),
    "another name beside an engine": (lambda: {"told": str(engine().query("Within?"))}, []),
}


@pytest.mark.parametrize("name", FLOWS)
def test_a_workflow_of_the_users_own(notes, name):
    gives, told = FLOWS[name]
    run(Flow(), query="Who?", gives=gives)
    assert notes.told == told
    assert (notes.skipped, notes.names) == (({}, []) if told else ({"no_answer": 1}, [("told",)]))
    if told:
        metadata = dict(notes.samples[0].metadata)
        assert metadata.pop("run_id").startswith("Flow.run-")
        error = {"error": "ValueError: broken"} if isinstance(gives, Exception) else {}
        assert metadata == {"name": "Flow.run", "tags": {}, **error}


class Once:
    """Has a step tried once more."""

    def next(self, elapsed_time, attempts, error, **options):
        return 0.01 if attempts < 2 else None


def test_a_step_that_is_tried_again_has_the_contexts_of_its_last_try(notes):
    class Trying(Workflow):
        @step(retry_policy=Once())
        async def answer(self, ev: StartEvent) -> StopEvent:
            found = await retriever([TEXTS[len(tries)]]).aretrieve("Who?")
            tries.append(found)
            if len(tries) == 1:
                raise ConnectionError("down")
            return StopEvent(result=ANSWER)

    tries = []
    run(Trying(), query="Who?")
    assert notes.told == [("Who?", TEXTS[1:], ANSWER)]


async def test_a_run_that_is_cancelled(notes):
    handler = Flow().run(query="Who?", gives=lambda: asyncio.sleep(60))
    await asyncio.sleep(0.05)
    await handler.cancel_run()
    await asyncio.gather(handler, return_exceptions=True)
    await settled()
    assert (notes.told, notes.skipped) == ([], {"cancelled": 1})


async def test_runs_at_the_same_time_of_one_task_are_runs_of_their_own(notes):
    apps = [agent(CALL, f"Answer {i}.") for i in range(4)]
    handlers = [app.run(user_msg=f"Question {i}?", memory=memory()) for i, app in enumerate(apps)]
    assert str(await engine().aquery("Beside?")) == ANSWER
    assert [str(await handler) for handler in handlers] == [f"Answer {i}." for i in range(4)]
    await settled()
    expected = [(f"Question {i}?", TEXTS, f"Answer {i}.") for i in range(4)]
    assert sorted(notes.told) == [("Beside?", TEXTS, ANSWER), *expected]


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
    run(Flow(), query="Now?", gives=ANSWER, chat_history=[{"role": "user", "content": "Before?"}])
    run(Flow(), gives=ANSWER, messages=[{"role": "user", "content": text} for text in ("Before?", "Now?")])
    assert [history(one) for one in notes.samples] == [[], EARLIER, *[[("user", "Before?")]] * 2]


def test_few_shot_examples_of_an_engine_are_no_history(notes):
    class Shown(CustomQueryEngine):
        def custom_query(self, query_str):
            shown = [ChatMessage("Example?"), ChatMessage("So.", role="assistant"), ChatMessage(query_str)]
            return str(Chatty().chat(shown).message.content)

    Shown().query("Who?")
    report = evaluate_query_engine(Shown(), ["Who?"], ["context_relevancy"], FakeLLM(truth), progress=False)
    offline = [report.sample(each) for each in report.results()]
    assert [history(one) for one in (*notes.samples, *offline)] == [[], []]


# -------------------------------------------------------------------------------- chats


class Chatty(Speaking):
    @property
    def metadata(self):
        return LLMMetadata(model_name="chatty", num_output=64, is_chat_model=True)


def speaking(**options):
    return Speaking(lambda prompt: "condensed?" if "standalone question" in prompt.lower() else ANSWER, **options)


CHATS = {
    ContextChatEngine: lambda llm: ContextChatEngine.from_defaults(retriever(), llm=llm, memory=memory()),
    CondensePlusContextChatEngine: lambda llm: CondensePlusContextChatEngine.from_defaults(
        retriever(), llm=llm, memory=memory()
    ),
    CondenseQuestionChatEngine: lambda llm: CondenseQuestionChatEngine.from_defaults(
        engine(llm.answer, pause=llm.pause), llm=llm, memory=memory()
    ),
    SimpleChatEngine: lambda llm: SimpleChatEngine.from_defaults(llm=llm, memory=memory()),
}
TWO_CHATS = pytest.mark.parametrize("kind", [ContextChatEngine, CondenseQuestionChatEngine])


async def astream(app, *turn):
    response = await app.astream_chat(*turn)
    said = "".join([word async for word in response.async_response_gen()])
    if response.awrite_response_to_history_task is not None:
        await response.awrite_response_to_history_task
    return said


def stream(app, *turn):
    said = "".join(app.stream_chat(*turn).response_gen)
    soon(lambda: app.chat_history[-1].role == "assistant")  # a thread writes it
    return said


@pytest.mark.parametrize("kind", CHATS)
async def test_turns_of_every_kind_with_what_was_said_before(notes, kind):
    app = CHATS[kind](speaking())
    assert str(app.chat("Who?")) == ANSWER
    assert str(await app.achat("And when?")) == ANSWER
    assert stream(app, "And where?") == ANSWER
    assert await astream(app, "Now?", list(BEFORE)) == ANSWER
    notes.wait(4)
    found = () if kind is SimpleChatEngine else TEXTS
    asked = ("Who?", "And when?", "And where?", "Now?")
    assert notes.told == [(question, found, ANSWER) for question in asked]
    middle = [*EARLIER, ("user", "And when?"), ("assistant", ANSWER)]
    assert [history(one) for one in notes.samples] == [[], EARLIER, middle, GIVEN]
    names = [one.metadata["name"] for one in notes.samples]
    assert names == [f"{kind.__name__}.{name}" for name in ("chat", "achat", "stream_chat", "astream_chat")]


@TWO_CHATS
def test_a_streamed_turn_that_the_app_leaves(notes, kind):
    response = CHATS[kind](speaking()).stream_chat("Who?", list(BEFORE))
    left = response.response_gen
    assert next(left)
    left.close()
    writing = response.is_writing_to_memory
    del left, response
    notes.wait(1)
    assert (notes.told, notes.skipped) == (([DONE], {}) if writing else ([], {"abandoned": 1}))


@TWO_CHATS
def test_a_streamed_turn_that_breaks(notes, kind):
    response = CHATS[kind](Speaking("Jane BREAK")).stream_chat("Who?")
    with pytest.raises(ConnectionError):
        list(response.response_gen)
    notes.wait(1)
    assert notes.told == [("Who?", TEXTS, None)]
    assert notes.samples[0].metadata["error"] == "ConnectionError: the line broke"


@TWO_CHATS
async def test_an_async_streamed_turn_that_is_cancelled(notes, kind):
    response = await CHATS[kind](speaking(pause=0.05)).astream_chat("Who?", list(BEFORE))
    if response.awrite_response_to_history_task is not None:
        await asyncio.sleep(0.02)
        response.awrite_response_to_history_task.cancel()
        await asyncio.wait([response.awrite_response_to_history_task])
    else:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(response.aprint_response_stream(), 0.07)
    assert (notes.told, notes.skipped) == ([], {"cancelled": 1})


def test_the_history_of_a_chat_whose_model_sees_a_prompt_around_the_question(notes):
    newer = pytest.importorskip("llama_index.core.chat_engine.multi_modal_context")
    app = newer.MultiModalContextChatEngine(
        retriever=retriever(), multi_modal_llm=Chatty(), memory=memory(), system_prompt="Be brief."
    )
    for question in ("Who?", "And when?"):
        app.chat(question)
    assert [history(one) for one in notes.samples] == [[], EARLIER]
