"""The judge is invisible: whatever the app listens with, it hears its own runs and none of the judge's."""

import asyncio
import os
import subprocess
import sys
import threading
from contextvars import ContextVar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import (
    RunnableBranch,
    RunnableConfig,
    RunnableLambda,
    RunnableParallel,
)
from langchain_core.tracers.context import collect_runs, register_configure_hook
from langgraph.graph import START, StateGraph

import ragstone
import ragstone_langchain
from ragstone import LLMRequest
from ragstone.judging.reply import listing, record, whole
from ragstone_langchain import LangChainLLM
from ragstone_langchain.models import JudgePrompt

from .scripted import WRAPPERS, PlainChat, Script, message

WORD = LLMRequest("demo.ask", "", "JUDGE: is it?", {}, choices=("yes", "no"))
IDS = LLMRequest("demo.ids", "", "JUDGE: which?", record(ids=listing(whole(1, 2))))


class Listener(BaseCallbackHandler):
    """Notes each run that starts, and each token."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_chain_start(self, serialized, inputs, **kwargs):
        self.heard.append(f"chain {kwargs.get('name')} {kwargs.get('tags')}")

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.heard.append(f"model {messages[0][-1].content} {kwargs.get('tags')}")

    def on_llm_start(self, serialized, prompts, **kwargs):
        self.heard.append(f"model {prompts[0]} {kwargs.get('tags')}")

    def on_llm_new_token(self, token, **kwargs):
        self.heard.append(f"token {token}")

    @property
    def of_the_judge(self) -> list[str]:
        return [said for said in self.heard if "JUDGE" in said or "ragstone" in said or "token" in said]

    @property
    def models(self) -> int:
        return sum(said.startswith("model ") for said in self.heard)


def judge_of(kind, **options):
    script = Script(lambda user: "yes" if WORD.user in user else {"ids": [1]})
    return LangChainLLM(WRAPPERS[kind](script), **options)


def ask(judge) -> None:
    assert judge.generate(WORD).text == "yes"
    assert judge.generate(IDS).text == '{"ids": [1]}'


async def aask(judge) -> None:
    assert (await judge.agenerate(WORD)).text == "yes"
    assert (await judge.agenerate(IDS)).text == '{"ids": [1]}'


def node(judge):
    """A step of the app's: its own model answers, and a judge is asked on the way."""
    app = FakeListChatModel(responses=["the app's own answer"])

    def step(_):
        ask(judge)
        return app.invoke("hello").content

    async def astep(_, config: RunnableConfig):  # before Python 3.11 an async step has to pass it on itself
        await aask(judge)
        return (await app.ainvoke("hello", config)).content

    return RunnableLambda(step, afunc=astep, name="app")


@pytest.mark.parametrize("kind", WRAPPERS)
def test_inside_a_chain_its_events_and_the_app_s_collectors(kind) -> None:
    judge, listener = judge_of(kind), Listener()
    config = {"callbacks": [listener], "tags": ["app-tag"]}
    with collect_runs() as collected, get_usage_metadata_callback() as usage:
        node(judge).invoke("x", config)
    asyncio.run(node(judge).ainvoke("x", config))
    assert listener.of_the_judge == []
    assert listener.models == 2, "the app's own model is heard"
    (run,) = collected.traced_runs
    assert (run.name, [child.name for child in run.child_runs]) == ("app", ["FakeListChatModel"])
    assert usage.usage_metadata == {}

    async def events():
        return [event async for event in node(judge).astream_events("x", version="v2")]

    heard = asyncio.run(events())
    assert [event for event in heard if "JUDGE" in str(event) or "ragstone" in str(event)] == []
    assert any(event["event"] == "on_chat_model_start" for event in heard)


@pytest.mark.parametrize(
    ("kind", "trace"), [("streaming chat", False), ("async only", False), ("streaming chat", True)]
)
def test_inside_langgraph_with_messages_streamed(kind, trace) -> None:
    step = node(judge_of(kind, trace=trace)) | (lambda said: {"x": said})
    graph = StateGraph(dict).add_sequence([("app", step)]).add_edge(START, "app").compile()

    async def astream():
        return [piece async for piece in graph.astream({"x": "hi"}, stream_mode="messages")]

    for streamed in (graph.stream({"x": "hi"}, stream_mode="messages"), asyncio.run(astream())):
        assert "".join(str(piece.content) for piece, _ in streamed) == "the app's own answer"


@pytest.mark.parametrize(
    "make",
    [
        lambda own, bare: own,
        lambda own, bare: bare.with_config(callbacks=own.callbacks, tags=["mine"]),
        lambda own, bare: bare.with_fallbacks([own]),
        lambda own, bare: bare.with_listeners(on_start=lambda run: own.callbacks[0].heard.append("JUDGE")),
        lambda own, bare: RunnableBranch((lambda _: True, own), bare),
        lambda own, bare: RunnableParallel(callbacks=own) | RunnableLambda(lambda steps: steps["callbacks"]),
    ],
    ids=["model", "config", "fallbacks", "listeners", "branch", "side by side"],
)
def test_callbacks_on_a_model_and_on_one_inside_of_something(make) -> None:
    listener, script = Listener(), Script("yes")
    own = PlainChat(script=script, callbacks=[listener], verbose=True)
    judge = LangChainLLM(make(own, PlainChat(script=script)))
    assert judge.generate(WORD).text == asyncio.run(judge.agenerate(WORD)).text == "yes"
    assert listener.heard == []
    assert (own.callbacks, own.verbose) == ([listener], True), "the app's object is as it was"
    own.invoke(JudgePrompt(system=WORD.system, user=WORD.user))
    assert listener.heard, "the app's own calls are heard"
    later = PlainChat(script=script)
    judge = LangChainLLM(later)
    judge.generate(WORD)
    later.callbacks = [Listener()]
    judge.generate(WORD)
    assert later.callbacks[0].heard == []


def test_the_app_s_context_is_as_it_was() -> None:
    variable: ContextVar[str] = ContextVar("app", default="default")
    seen = []

    class Looks(PlainChat):
        def say(self, messages, kwargs):
            seen.append(variable.get())
            variable.set("changed by the model")
            return message("yes")

    judge = LangChainLLM(Looks())

    async def inside():
        variable.set("the app's")
        judge.generate(WORD)
        await judge.agenerate(WORD)
        return variable.get()

    assert asyncio.run(inside()) == "the app's"
    assert seen == ["default", "default"]


@pytest.mark.parametrize(("by", "kind"), [("its value", "async only"), ("its class", "chat with tools")])
def test_a_configure_hook_that_the_app_has_set(kind, by) -> None:
    judge, listener = judge_of(kind), Listener()
    variable: ContextVar[Listener | None] = ContextVar("app", default=None)
    register_configure_hook(variable, inheritable=True, handle_class=Listener if by == "its class" else None)
    token = variable.set(listener)
    try:
        ask(judge)
        asyncio.run(aask(judge))
        assert listener.heard == []
        FakeListChatModel(responses=["own"]).invoke("hello")
        assert listener.models == 1, "the app's own model is heard"
    finally:
        variable.reset(token)


def test_trace_shows_it_to_those_who_want_it() -> None:
    listener = Listener()
    node(judge_of("text model", trace=True)).invoke("x", {"callbacks": [listener]})
    assert [said for said in listener.heard if "JUDGE" in said and "ragstone:judge" in said], "its prompts and its tag"
    own = Listener()
    LangChainLLM(PlainChat(script=Script("yes"), callbacks=[own]), trace=True).generate(WORD)
    assert own.models == 1


class Counting(BaseHTTPRequestHandler):
    """Takes every request, and notes it at the server."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the base class's names

    def log_message(self, *args):
        pass


@pytest.mark.parametrize(("modes", "sends"), [("judge evaluate aevaluate", False), ("traced", True)])
def test_nothing_is_sent_to_langsmith(modes: str, sends: bool) -> None:
    path = os.pathsep.join({str(Path(package.__file__).parents[1]) for package in (ragstone, ragstone_langchain)})
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH", "LANGCHAIN", "COV"))}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    server.requests = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    settings = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": url, "LANGSMITH_API_KEY": "k", "PYTHONPATH": path}
    command = [sys.executable, str(Path(__file__).with_name("traced_app.py")), *modes.split()]
    try:
        done = subprocess.run(command, env=kept | settings, capture_output=True, text=True, timeout=120)
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert bool(server.requests) == sends, server.requests
