"""Shapes of public apps: what each was asked, read and answered, as one would write it down, live and in an evaluation."""

import asyncio
import html
import json
from collections import Counter

import pytest
from llama_index.core import Document, PromptTemplate, Settings, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.objects import ObjectIndex
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import (
    Context,
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from pydantic import BaseModel

from ragstone.testing import FakeLLM
from ragstone_llama_index import evaluate_query_engine

from .models import truth
from .monitored import Answering, Calling, Speaking, embedding, engine, memory, retriever, run, settled

QUESTION = "How many days of leave do I get?"
LEAVE = "Full-time staff get twenty-five days of annual leave each calendar year."
PARENTS = "Parental leave lasts sixteen weeks and is paid in full by the company."
LYON = "The Lyon office closes at six in the evening from Monday to Friday."
WEB = "The labour ministry names twenty-five working days as the legal minimum."
DAYS = "You get twenty-five days of annual leave a year."
WEEKS = "Parental leave is sixteen weeks, fully paid."


def model(*rules, otherwise=DAYS, pause=0.0):
    """A model that goes by the first words of some that stand in its prompt."""
    return Speaking(lambda prompt: next((said for words, said in rules if words in prompt), otherwise), pause)


def say(prompt, *rules, otherwise=DAYS):
    return model(*rules, otherwise=otherwise).complete(prompt).text


async def asay(prompt, *rules, otherwise=DAYS):
    return (await model(*rules, otherwise=otherwise).acomplete(prompt)).text


def find(*texts):
    return retriever(texts).retrieve(QUESTION)


def asking(*texts, otherwise=DAYS, **options):
    return engine(otherwise, texts, **options)


def prompt_of(nodes):
    found = "\n".join(f"[{i}] (handbook.pdf) {node.get_content()}" for i, node in enumerate(nodes, 1))
    return f"Answer from the context.\n\n{found}\n\nQuestion: {QUESTION}\nAnswer:"


def named(name, *texts):
    return QueryEngineTool.from_defaults(asking(*texts), name=name, description=name)


def handbook_tool(*texts):
    return named("handbook", *texts)


def synthesizer(**options):
    return get_response_synthesizer(llm=model(), **options)


class Flow(Workflow):
    """One step, which returns what a function of its start event gives."""

    def __init__(self, gives):
        super().__init__()
        self._gives = gives

    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=await self._gives(ev))


def flow(gives, name="query", **others):
    """Ask a workflow whose start event has the question under a name."""

    async def asked(question):
        return await Flow(gives).run(**{name: question}, **others)

    return asked


def own(answer):
    """Ask a query engine of the app's own."""

    async def asked(question):
        return await asyncio.to_thread(Answering(answer=answer).query, question)

    return asked


def agent(calls, *tools, said=DAYS, **options):
    """Ask an agent that calls one tool and answers."""

    async def asked(question):
        llm = Calling((calls, {"input": "leave"}), said)
        app = FunctionAgent(tools=list(tools), llm=llm, streaming=False, **options)
        return await app.run(user_msg=question, memory=memory())

    return asked


# -------------------------------------------------------------------------------- what a workflow returns


async def graded(ev):
    nodes = find(LYON, LEAVE)
    kept = [
        node for node in nodes if await asay(f"Does it help? {node.text}", ("annual", "yes"), otherwise="no") == "yes"
    ]
    return {"answer": await asay(prompt_of(kept)), "nodes": kept, "trace": ["retrieve", "grade", "generate"]}


async def references(ev):
    answer = await asay(prompt_of(nodes := find(LEAVE, LYON)))
    return {
        "answer": answer,
        "sources": [{"path": f"docs/{i}.md", "score": node.score} for i, node in enumerate(nodes)],
    }


async def file_names(ev):
    return {"answer": await asay(prompt_of(find(LEAVE, LYON))), "documents": ["handbook.pdf", "offices.pdf"]}


async def ids(ev):
    nodes = find(LEAVE, LYON)
    return {"answer": await asay(prompt_of(nodes)), "nodes": ["0b1f3c52-6d1c-4c3e-9f0a-2a4d5c6b7e8f"] * len(nodes)}


async def handed(ev):
    return await asay(f"{[document.text for document in ev.docs]}")


async def small_talk(ev):
    return {"answer": await asay(f"Chat: {ev.query}"), "sources": [], "query_type": "chitchat"}


async def hypothetical(ev):
    document = await asay(f"Write a document that answers {ev.query}", otherwise="Thirty days, one might think.")
    nodes = await retriever((LEAVE, PARENTS, LYON)).aretrieve(QueryBundle(ev.query, custom_embedding_strs=[document]))
    response = await synthesizer().asynthesize(ev.query, nodes=nodes[:2])
    return {"answer": str(response), "source_nodes": response.source_nodes, "from_cache": False}


async def by_tool_calls(ev):
    llm, handbook = Calling(("handbook", {"input": "leave"}), DAYS), handbook_tool(LEAVE, PARENTS)
    asked = [ChatMessage(ev.input)]
    calls = llm.get_tool_calls_from_response(await llm.achat_with_tools([handbook], chat_history=asked))
    output = await handbook.acall(**calls[0].tool_kwargs)
    asked.append(ChatMessage(output.content, role=MessageRole.TOOL))
    return {"response": await llm.achat_with_tools([handbook], chat_history=asked), "sources": [output]}


async def citing(ev):
    numbered = [f"Source {i}:\n{node.text}\n" for i, node in enumerate(find(LEAVE, LYON), 1)]
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.9) for text in numbered]
    return {"response": await synthesizer().asynthesize(ev.query, nodes=nodes)}


async def serialized(ev):
    nodes = [{"id": node.node_id, "text": node.text, "metadata": {}, "score": 0.9} for node in find(LEAVE, PARENTS)]
    asked = [
        ChatMessage("Cite sources.", role="system"),
        ChatMessage(f"{[node['text'] for node in nodes]}\n{ev.query}"),
    ]
    said = await model().achat(asked)
    return {"final_response": said.message.content, "retrieved_nodes": nodes, "debug_timeline": ["router", "hybrid"]}


async def with_tool_outputs(ev):
    output = await handbook_tool(LEAVE, PARENTS).acall(input="leave")
    return {"text": await asay(f"{output.content}\n{ev.user_msg}"), "tool_outputs": [output]}


async def memo(ev):
    return {"status": "complete", "content": await asay(prompt_of(find(LEAVE)))}


async def researched(ev):
    parts = (asking(LEAVE), asking(PARENTS, otherwise=WEEKS))
    answers = await asyncio.gather(*(part.aquery(f"Of {ev.topic}?") for part in parts))
    return {"final_report": await asay("\n".join(map(str, answers))), "visualization_info": "none"}


async def checked(ev):
    nodes, strict = find(LEAVE, LYON), ("STRICT", DAYS)
    draft = await asay(prompt_of(nodes), strict, otherwise="A month of leave, and a bonus on top of it.")
    verdict = json.loads(await asay(f"Grounded? {draft}", otherwise='{"grounded": false, "reason": "bonus"}'))
    return {"answer": await asay(f"STRICT {prompt_of(nodes)}", strict), "verdict": verdict, "attempts": 2}


async def enveloped(ev):
    response = await asking(LEAVE, LYON).aquery(ev.question)
    pages = [{"title": f"Page {i}", "text": node.text} for i, node in enumerate(response.source_nodes)]
    return {"status": "success", "data": {"answer": str(response), "sources": pages}}


async def reflected(ev):
    draft = await asay(prompt_of(nodes := find(LEAVE, LYON)), otherwise="About a month, I think, perhaps more.")
    final = await asay(f"Improve the draft. {prompt_of(nodes)}\n{draft}")
    return {"initial_answer": draft, "critique": "too vague", "final_answer": final}


async def by_sql(ev):
    sql = await asay(f"Write SQL for {ev.question}", otherwise="SELECT days FROM leave WHERE kind = 'annual'")
    return {"answer": await asay(f"{sql}: {[('annual', 25)]}"), "sql": sql, "rows": [("annual", 25)]}


async def from_the_web(ev):
    """Grades away all that was found, indexes what the web says and asks that."""
    for node in find(LYON, PARENTS):
        assert await asay(f"Relevant? {node.text}", otherwise="no") == "no"
    found = SummaryIndex.from_documents([Document(text=WEB)])
    return str(await found.as_query_engine(llm=model()).aquery(ev.query_str))


async def cross_encoded(ev):
    return await asay(prompt_of(sorted(find(LYON, PARENTS, LEAVE), key=lambda node: "annual" not in node.text)[:1]))


async def two_searches(ev):
    """Side by side, merged by rank; the best two are synthesized."""
    found = await asyncio.gather(*(retriever(texts).aretrieve(ev.query) for texts in ((LEAVE, LYON), (PARENTS, LEAVE))))
    ranks = Counter({node.text: 0 for nodes in found for node in nodes})
    for nodes in found:
        ranks.update({node.text: len(nodes) - rank for rank, node in enumerate(nodes)})
    best = [node for nodes in found for node in nodes if node.text in dict(ranks.most_common(2))]
    return await synthesizer().asynthesize(ev.query, nodes=best[:2])


async def best_of_three(ev):
    """Asks three engines; a judge picks one of the answers."""
    apps = (
        asking(LYON, otherwise="I could not find anything on leave here."),
        asking(LEAVE),
        asking(PARENTS, otherwise=WEEKS),
    )
    answers = [str(await app.aquery(ev.query)) for app in apps]
    return answers[int(await asay(f"Which is best? {answers}", otherwise="1"))]


class ChatRequest(StartEvent):
    message: str
    history: list = []  # noqa: RUF012 - pydantic copies it


class ChatReply(StopEvent):
    response: str


class Typed(Workflow):
    """Start and stop events of the app's own."""

    @step
    async def answer(self, ev: ChatRequest) -> ChatReply:
        return ChatReply(response=await asay(prompt_of(find(LEAVE))))


async def typed(question):
    return await Typed().run(start_event=ChatRequest(message=question))


class Once:
    """A policy: a step that failed is tried again once."""

    def next(self, elapsed_time, attempts, error, **others):
        return 0 if attempts < 2 else None


class Retried(Workflow):
    """Its step fails once, after it has searched."""

    @step(retry_policy=Once())
    async def answer(self, ev: StartEvent) -> StopEvent:
        found, said = next(ev.turns)
        return StopEvent(result=(await Speaking(said).acomplete(prompt_of(find(found)))).text)


async def retried(question):
    return await Retried().run(query=question, turns=iter([(LYON, ConnectionError("429")), (LEAVE, DAYS)]))


class Merged(Event):
    text: str


class Sub(Event):
    text: str


class FannedOut(Workflow):
    """Asks two engines in steps of their own, and collects the answers."""

    @step
    async def split(self, ctx: Context, ev: StartEvent) -> Sub | None:
        for text in (LEAVE, PARENTS):
            ctx.send_event(Sub(text=text))

    @step(num_workers=2)
    async def one(self, ev: Sub) -> Merged:
        app = asking(ev.text, otherwise=DAYS if ev.text is LEAVE else WEEKS)
        return Merged(text=str(await app.aquery(f"What of {ev.text[:8]}?")))

    @step
    async def combine(self, ctx: Context, ev: Merged) -> StopEvent | None:
        ready = ctx.collect_events(ev, [Merged] * 2)
        return ready and StopEvent(
            result=await asay("\n".join(each.text for each in ready), otherwise="Both are generous.")
        )


async def fanned_out(question):
    return await FannedOut().run(query=question)


class Approved(Workflow):
    """A person wants the draft changed; another call changes it."""

    @step
    async def draft(self, ctx: Context, ev: StartEvent) -> InputRequiredEvent:
        return InputRequiredEvent(prefix=await asay(prompt_of(find(LEAVE)), otherwise=f"{DAYS} Ask the staff office."))

    @step
    async def final(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result={"answer": await asay(f"Change it: {ev.response}"), "approved": True})


async def approved(question):
    handler = Approved().run(query=question)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response=f"shorter, please: {event.prefix}"))
    return await handler


def streaming(name, *others):
    """A workflow that returns a stream, which the app reads."""

    async def gives(ev):
        nodes = find(LEAVE, LYON)
        said = await synthesizer(streaming=True).asynthesize(ev.query, nodes=nodes)
        return {name: said, **dict.fromkeys(others, nodes)}

    async def asked(question):
        stream = (await flow(gives)(question))[name]
        return "".join([token async for token in stream.async_response_gen()])

    return asked


async def deployed(question):
    """Its payload stands under one name; an agent answers."""

    async def gives(ev):
        return {"answer": str(await agent("handbook", handbook_tool(LEAVE, LYON))(ev.input["message"]))}

    return await Flow(gives).run(input={"message": question, "session": "s1"})


# -------------------------------------------------------------------------------- tools of agents


async def best_passage(input: str) -> str:  # noqa: A002 - the tool's argument
    """Search."""
    return f"[1] (handbook.pdf) {find(LEAVE, LYON, PARENTS)[0].text}"


async def document_agent(input: str) -> str:  # noqa: A002
    """Ask the agent of one document."""
    return str(await agent("handbook", handbook_tool(LEAVE), named("summaries", PARENTS))(input))


async def workflow_tool(input: str) -> str:  # noqa: A002
    """Ask a workflow."""
    return (await flow(graded)(input))["answer"]


async def by_tool_retriever(question):
    Settings.embed_model = embedding()
    tools = ObjectIndex.from_objects(
        [handbook_tool(LEAVE, PARENTS), named("offices", LYON)], index_cls=VectorStoreIndex
    )
    return await agent("handbook", tool_retriever=tools.as_retriever(similarity_top_k=2))(question)


# -------------------------------------------------------------------------------- engines of one's own


def again(question):
    turns = iter((ConnectionError("503"), DAYS))
    app = engine(lambda _: next(turns), (LEAVE, LYON))
    try:
        return str(app.query(question))
    except ConnectionError:
        return str(app.query(question))


def second_engine(question):
    nothing = str(asking().query(question))
    return str(asking(WEB).query(question)) if nothing == "Empty Response" else nothing


async def timed_out(ev):
    slow = engine(DAYS, (LYON, PARENTS), pause=5)
    try:
        return str(await asyncio.wait_for(slow.aquery(ev.query), 0.05))
    except asyncio.TimeoutError:
        return str(await asking(LEAVE).aquery(ev.query))


def compressed(question):
    rule = (LEAVE, "Annual leave: twenty-five days for those who work full time.")
    parts = [say(f"Extract from: {node.text}", rule, otherwise="NOTHING") for node in find(LYON, LEAVE, PARENTS)]
    return say(f"Context: {[part for part in parts if part != 'NOTHING']}")


def translated(question):
    english = say(f"Translate: {question}", otherwise=QUESTION)
    return say(f"Translate: {asking(LEAVE, LYON).query(english)}", otherwise="Vous avez vingt-cinq jours par an.")


# -------------------------------------------------------------------------------- between search and answer

LONG = f"{LEAVE} Days that are left in December may be taken until the end of March; after that they are lost."
MARKED = "It's <b>paid</b> & fixed: twenty-five days for all who work full time."
TABLE = "kind,days\nannual,25\nparental,112\nsick,10\nunpaid,30"
ACCENTS = "Les employés à plein temps ont droit à vingt-cinq jours de congé par année civile."
CHINESE = (
    "全职员工每个日历年享有二十五天的带薪年假，未休完的天数可以保留到次年三月底。",
    "里昂办事处周一至周五晚上六点关门，公共假日全天不开放。",
)


class Cited(BaseModel):
    answer: str
    ids: list[int]


def predicted(question):
    template = PromptTemplate("Context: {context_str}\nQuestion: {query_str}")
    return model().predict(template, context_str=find(LYON, LEAVE)[1].text, query_str=question)


def structured(question):
    said = model(otherwise=json.dumps({"answer": DAYS, "ids": [1]}))
    return said.structured_predict(Cited, PromptTemplate("{found}"), found=find(LEAVE, LYON)[0].text).answer


def sections(question):
    parts = [say(f"Write the section. {find(text)[0].text}", (PARENTS, WEEKS)) for text in (LEAVE, PARENTS)]
    return "# Annual leave\n{}\n\n# Parental leave\n{}".format(*parts)


def mapped(question):
    notes = [say(node.text, (LEAVE, "25 days a year"), otherwise="16 weeks, paid") for node in find(LEAVE, PARENTS)]
    return say(f"Combine the notes: {'; '.join(notes)}.")


def refined(question):
    answer = "Nothing is known of it so far."
    for i, node in enumerate(find(LYON, LEAVE, PARENTS)):
        answer = say(f"So far: {answer}\nNew: {node.text}", otherwise=f"The rules so far, part {i + 1} of three.")
    return answer


def formatted(question):
    found = json.loads(say(prompt_of(find(LEAVE, LYON)), otherwise='{"days": 25}'))
    return f"Annual leave: {found['days']} days (handbook, 2026)."


def one_of(text, form=str, said=DAYS, cut=str):
    """Puts one of two texts that were found into the prompt, in a form of its own."""
    return own(lambda _: cut(say(f"Context: {form(find(LYON, text)[1].text)}\n", otherwise=said)))


def all_of(*texts, form=str, said=DAYS):
    return own(lambda _: say("\n".join(form(node.text) for node in find(*texts)), otherwise=said))


FENCED = f'```json\n{{"answer": "{DAYS}", "confidence": 0.9}}\n```'

APPS = {
    # What a workflow returns.
    "kept passages and a trace": (flow(graded), (LEAVE,), DAYS),
    "references without texts": (flow(references), (LEAVE, LYON), DAYS),
    "names of files": (flow(file_names), (LEAVE, LYON), DAYS),
    "ids of nodes": (flow(ids), (LEAVE, LYON), DAYS),
    "documents of the caller's": (flow(handed, docs=[Document(text=LEAVE)], paths=["a.pdf"]), (LEAVE,), DAYS),
    "small talk": (flow(small_talk), (), DAYS),
    "a hypothetical document": (flow(hypothetical), (LEAVE, PARENTS), DAYS),
    "events of one's own": (typed, (LEAVE,), DAYS),
    "a response and tool outputs": (flow(by_tool_calls, "input"), (LEAVE, PARENTS), DAYS),
    "numbered sources": (flow(citing), (f"{LEAVE}\n", f"{LYON}\n"), DAYS),
    "a stream alone": (streaming("response_gen"), (LEAVE, LYON), DAYS),
    "a stream and nodes": (streaming("answer", "nodes"), (LEAVE, LYON), DAYS),
    "nodes as mappings": (flow(serialized), (LEAVE, PARENTS), DAYS),
    "a text and tool outputs": (flow(with_tool_outputs, "user_msg", external_context=""), (LEAVE, PARENTS), DAYS),
    "a status and a content": (flow(memo, "user_input"), (LEAVE,), DAYS),
    "a report of two engines": (flow(researched, "topic"), {LEAVE, PARENTS}, DAYS),
    "a second try and a verdict": (flow(checked), (LEAVE, LYON), DAYS),
    "an envelope": (flow(enveloped, "question"), (LEAVE, LYON), DAYS),
    "a reflected answer": (flow(reflected), (LEAVE, LYON), DAYS),
    "rows of SQL": (flow(by_sql, "question"), (), DAYS),
    # How it comes by its answer.
    "all graded away": (flow(from_the_web, "query_str"), (WEB,), DAYS),
    "the best by a cross-encoder": (flow(cross_encoded, "user_query", user_name="Ann Lee of Lyon"), (LEAVE,), DAYS),
    "two searches merged": (flow(two_searches), {LEAVE, PARENTS}, DAYS),
    "steps side by side": (fanned_out, {LEAVE, PARENTS}, "Both are generous."),
    "the best of three answers": (flow(best_of_three), (LEAVE,), DAYS),
    "a step that is retried": (retried, (LEAVE,), DAYS),
    "a draft that a person had changed": (approved, (LEAVE,), DAYS),
    "an engine that took too long": (flow(timed_out), (LEAVE,), DAYS),
    # Agents.
    "a payload under input": (deployed, (LEAVE, LYON), DAYS),
    "a tool that formats one passage": (agent("best_passage", best_passage), (LEAVE,), DAYS),
    "an agent for each document": (agent("document_agent", document_agent), (LEAVE,), DAYS),
    "a workflow as a tool": (agent("workflow_tool", workflow_tool, said="In short: 25."), (LEAVE,), "In short: 25."),
    "tools found by a retriever": (by_tool_retriever, (LEAVE, PARENTS), DAYS),
    # Engines of one's own.
    "the first of some": (own(lambda _: say(prompt_of(find(LEAVE, LYON, PARENTS)[:2]))), (LEAVE, LYON), DAYS),
    "an engine tried again": (own(again), (LEAVE, LYON), DAYS),
    "an engine that found nothing": (own(second_engine), (WEB,), DAYS),
    "extracts by a model": (own(compressed), (LEAVE,), DAYS),
    "translated there and back": (own(translated), (LEAVE, LYON), "Vous avez vingt-cinq jours par an."),
    # Between search and answer.
    "llm.predict": (own(predicted), (LEAVE,), DAYS),
    "structured_predict": (own(structured), (LEAVE,), DAYS),
    "a report of two sections": (own(sections), (LEAVE, PARENTS), f"# Annual leave\n{DAYS}\n\n# Parental leave\n{WEEKS}"),
    "short notes combined": (own(mapped), (LEAVE, PARENTS), DAYS),
    "refined by hand": (own(refined), (LYON, LEAVE, PARENTS), "The rules so far, part 3 of three."),
    "a template with a number": (own(formatted), (LEAVE, LYON), "Annual leave: 25 days (handbook, 2026)."),
    "texts cut": (all_of(LONG, LYON, form=lambda text: text[:100]), (LONG, LYON), DAYS),
    "texts in JSON": (all_of(ACCENTS, LYON, form=json.dumps), (ACCENTS, LYON), DAYS),
    "short entries": (all_of("VAT: 20 %", "GDP: output"), ("VAT: 20 %", "GDP: output"), DAYS),
    "overlapping texts": (all_of(LEAVE, LONG), (LEAVE, LONG), DAYS),
    "escaped HTML": (one_of(MARKED, html.escape), (MARKED,), DAYS),
    "a table": (one_of(TABLE), (TABLE,), DAYS),
    "a short answer": (one_of(LEAVE, said="25 days"), (LEAVE,), "25 days"),
    "thoughts cut off": (one_of(LEAVE, said=f"<think>Leave.</think>\n{DAYS}", cut=lambda said: said[-len(DAYS) :]), (LEAVE,), DAYS),
    "fenced JSON": (one_of(LEAVE, said=FENCED, cut=lambda said: json.loads(said[8:-4])["answer"]), (LEAVE,), DAYS),
    "a disclaimer behind": (one_of(LEAVE, cut=lambda said: f"{said}\n\nNo legal advice."), (LEAVE,), f"{DAYS}\n\nNo legal advice."),
    "Chinese": (own(lambda _: say(find(*CHINESE)[0].text, otherwise="二十五天")), CHINESE[:1], "二十五天"),
}  # fmt: skip


def same(found, expected):
    return set(found) == expected if isinstance(expected, set) else tuple(found) == expected


@pytest.mark.parametrize("name", APPS)
def test_an_app_is_read_alike_live_and_in_an_evaluation(notes, name):
    asked, contexts, answer = APPS[name]

    async def main():
        await asked(QUESTION)
        await settled()

    asyncio.run(main())
    report = evaluate_query_engine(asked, [QUESTION], ["context_relevancy"], FakeLLM(truth), progress=False)
    offline = [report.sample(each) for each in report.results()]
    for sample in (*notes.samples, *offline):
        assert (sample.user_input, sample.response) == (QUESTION, answer)
        assert same(sample.retrieved_contexts, contexts)
    assert (len(notes.samples), len(offline), notes.skipped) == (1, 1, {"own_run": 1})


# -------------------------------------------------------------------------------- what is no sample, and says why


async def judged(ev):
    return {"result": "pass", "output": str(await asking(LEAVE).aquery(ev.query)), "elapsed_ms": 12}


async def unusual(ev):
    response = asking(LEAVE, LYON).query(ev.query)
    return {"query_result": str(response), "source_node": [node.text for node in response.source_nodes]}


async def caught(ev):
    try:
        return {"answer": str(asking(LEAVE, otherwise=ConnectionError("quota")).query(ev.query))}
    except ConnectionError as error:
        return {"error": str(error), "error_type": "ConnectionError"}


async def searched(ev):
    return {"documents": find(LEAVE)}


async def indexed(ev):
    return {"success": True, "message": f"Indexed {len(ev.file_path)} characters", "total_blocks": 1}


async def answered_all(ev):
    return [{"question": question, "answer": DAYS} for question in ev.questions]


REASONS = {
    "two weak names": (judged, {"query": QUESTION}, "no_answer", {"result", "output"}),
    "names of its own": (unusual, {"query": QUESTION}, "no_answer", {"query_result", "source_node"}),
    "an error that was caught": (caught, {"query": QUESTION}, "no_answer", {"error", "error_type"}),
    "no more than was found": (searched, {"query": QUESTION}, "no_answer", {"documents"}),
    "a file to index": (indexed, {"file_path": "/data/handbook.pdf"}, "no_question", {"file_path"}),
    "a list of answers": (answered_all, {"query": QUESTION, "questions": [QUESTION]}, "no_answer", {"list"}),
    "many questions at once": (answered_all, {"questions": [QUESTION]}, "no_question", {"questions"}),
}


@pytest.mark.parametrize("name", REASONS)
def test_what_cannot_be_told_is_a_reason_with_the_names_that_were_there(notes, name):
    gives, asked, reason, names = REASONS[name]
    run(Flow(gives), **asked)
    assert (notes.samples, notes.skipped) == ([], {reason: 1})
    assert [names <= {*there} for there in notes.names] == [True]
