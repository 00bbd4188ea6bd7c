"""What `OpenAICompatible` does when all is well: both protocols, connections, concurrency, keys."""

import asyncio
import gc
import multiprocessing
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from openai import OpenAIError

from ragstone import LLMRequest
from ragstone.clients import AnswerError, OpenAICompatible
from ragstone.testing.contracts import EmbedderContract, LLMContract

from ..support.openai_server import (  # noqa: TID252 - under importlib mode tests are no package
    HANG,
    SURE,
    Answer,
    chat,
    embeddings,
    error,
)
from ..support.waiting import soon  # noqa: TID252

PLAIN = LLMRequest("demo.ask", "sys", "user", {})
NOWHERE = "http://127.0.0.1:9/v1"  # for what makes no request


def answer(request):
    return SURE if request.get("logprobs") else '{"answer": "yes"}'


def by_length(request):
    return embeddings([[float(len(text)), 1.0] for text in request["input"]])


class TestLLM(LLMContract):
    @pytest.fixture(autouse=True)
    def _server(self, openai_server):
        self._url = openai_server(answer).url

    def llm(self):
        return OpenAICompatible("m", base_url=self._url)


class TestEmbedder(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _server(self, openai_server):
        self._url = openai_server(by_length).url

    def embedder(self):
        return OpenAICompatible("m", base_url=self._url)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"asking": "slowly"}, "asking: 'slowly' should be 'together' or 'one_by_one'"),
        ({"gives_probabilities": "yes"}, "gives_probabilities: 'yes' should be a valid boolean"),
        ({"timeout": float("nan")}, "timeout: nan"),
        ({"max_retries": -1}, "max_retries: -1"),
        ({"max_concurrency": 0}, "max_concurrency: 0"),
        ({"batch_size": 2.5}, "batch_size: 2.5"),
        ({"model": ""}, "model: '' is blank"),
    ],
)
def test_settings_are_checked(bad, message):
    with pytest.raises(ValueError, match=message):
        OpenAICompatible(**{"model": "m", "base_url": NOWHERE, **bad})


def test_many_texts_go_out_in_pieces_and_come_back_in_order_and_no_text_is_no_call(openai_server):
    server = openai_server(by_length)
    with OpenAICompatible("m", base_url=server.url) as embedder:
        rows = embedder.embed(["x" * i for i in range(70)])
        assert embedder.embed([]).shape == (0, 0)
        assert asyncio.run(embedder.aembed([])).dtype == "float32"
    assert rows.tolist() == [[float(i), 1.0] for i in range(70)]
    assert [(len(body["input"]), body["encoding_format"]) for body in server.bodies] == [
        (32, "float"), (32, "float"), (6, "float"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (embeddings([[1.0, 1.0]]), "answered with 1 embeddings for 2 texts"),
        (embeddings([[1.0, 1.0, 1.0]] * 2), "embeddings that are not lists of numbers of one length"),
        (embeddings([[1.0], [1.0, 2.0]]), "not lists of numbers"),
        (embeddings([[1.0, float("nan")]] * 2), "not lists of numbers"),
        (error(500, "out of memory"), "out of memory"),
    ],
)
def test_a_piece_that_fails_fails_the_call(openai_server, second, problem):
    server = openai_server(lambda request: second if "c" in request["input"] else by_length(request))
    embedder = OpenAICompatible("m", base_url=server.url, batch_size=2, max_retries=0)
    with pytest.raises((AnswerError, OpenAIError), match=problem):
        embedder.embed(list("abcdef"))


def test_extra_body_goes_along_and_is_not_kept_by_reference(openai_server):
    server = openai_server(lambda request: by_length(request) if "input" in request else "x")
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    with OpenAICompatible("m", base_url=server.url, extra_body=extra) as client:
        extra["chat_template_kwargs"]["enable_thinking"] = True
        client.generate(PLAIN)
        client.embed(["a"])
    assert [body["chat_template_kwargs"] for body in server.bodies] == [{"enable_thinking": False}] * 2


def test_what_the_user_sets_for_replies_goes_with_chats_alone_and_makes_another_judge(openai_server):
    server = openai_server(lambda request: by_length(request) if "input" in request else "x")
    set_ = {"temperature": 0.7, "seed": 3, "reasoning_effort": "low"}
    with (
        OpenAICompatible("m", base_url=server.url, **set_) as client,
        OpenAICompatible("m", base_url=server.url) as bare,
    ):
        client.generate(PLAIN)
        client.embed(["a"])
        assert client.identity != bare.identity
    chatted, embedded = server.bodies
    assert {name: chatted[name] for name in set_} == set_
    assert set_.keys().isdisjoint(embedded)


def test_at_most_so_many_calls_in_flight_in_threads_and_in_tasks(openai_server):
    server = openai_server(lambda _: Answer(chat("x"), delay=0.03))

    async def many():
        return await asyncio.gather(*(llm.agenerate(PLAIN) for _ in range(9)))

    with OpenAICompatible("m", base_url=server.url, max_concurrency=3) as llm, ThreadPoolExecutor(9) as pool:
        assert len(list(pool.map(llm.generate, [PLAIN] * 9))) == 9
        assert server.max_in_flight == 3
        assert len(asyncio.run(many())) == 9
    assert server.max_in_flight == 3


def test_threads_and_event_loops_share_connections(openai_server):
    server = openai_server(answer)
    llm = OpenAICompatible("m", base_url=server.url, max_retries=0)  # a stale connection would be an error

    async def outer():
        await llm.agenerate(PLAIN)
        await asyncio.to_thread(lambda: asyncio.run(llm.agenerate(PLAIN)))
        llm.generate(PLAIN)

    for _ in range(2):
        asyncio.run(outer())
    assert len({seen.connection for seen in server.seen}) == 1
    assert len(server.seen) == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_connections_of_its_own(openai_server):
    server = openai_server(answer)
    llm = OpenAICompatible("m", base_url=server.url)
    llm.generate(PLAIN)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=llm.generate, args=(PLAIN,))
    child.start()
    child.join(30)
    llm.generate(PLAIN)
    assert child.exitcode == 0
    a, b, c = [seen.connection for seen in server.seen]
    assert a == c != b


def test_a_cancelled_call_gives_its_slot_back(openai_server):
    hang = threading.Event()
    server = openai_server(lambda _: "x" if hang.is_set() else HANG)
    llm = OpenAICompatible("m", base_url=server.url, max_concurrency=1)

    async def cancel():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(llm.agenerate(PLAIN), 0.2)
        hang.set()
        return await asyncio.wait_for(llm.agenerate(PLAIN), 5)

    assert asyncio.run(cancel()).text == "x"


@pytest.fixture
def unclosed():
    """What Python finds unclosed, or never awaited, from the test's start on; `gc.collect` finds what is in cycles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # of earlier tests
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


def test_an_object_that_is_dropped_or_closed_leaves_no_connection_open(openai_server, unclosed):
    """Once the server sees no connection, no socket of ours is left for Python to find unclosed."""
    server = openai_server(lambda _: Answer(chat("fine"), delay=0.02))

    async def dropped(steps):
        await asyncio.gather(*(OpenAICompatible("m", base_url=server.url).agenerate(PLAIN) for _ in range(4)))
        for _ in range(steps):
            await asyncio.sleep(0)

    for steps in (0, 2, 30):
        asyncio.run(dropped(steps))
        soon(lambda: server.open_connections == 0, within=5)
    gc.collect()
    assert [str(each.message) for each in unclosed] == []
    llm = OpenAICompatible("m", base_url=server.url)
    llm.close()  # nothing yet
    for _ in range(2):  # and opened again
        assert llm.generate(PLAIN).text == "fine"
        llm.close()
        llm.close()
        soon(lambda: server.open_connections == 0, within=5)


def test_closing_while_calls_connect_ends_them_and_leaves_nothing_behind(openai_server, unclosed):
    """A connection's closing is cancelled once: a second time would end the closing itself."""
    server = openai_server(lambda _: Answer(chat("fine"), delay=0.01))

    async def closed(after):
        llm = OpenAICompatible("m", base_url=server.url)
        calls = [asyncio.ensure_future(llm.agenerate(PLAIN)) for _ in range(20)]
        await asyncio.sleep(after)
        calls[0].cancel()
        llm.close()
        return await asyncio.gather(*calls, return_exceptions=True)

    for i in range(12):
        for reply in asyncio.run(closed(i / 400)):
            assert isinstance(reply, asyncio.CancelledError) or reply.text == "fine"
        soon(lambda: server.open_connections == 0, within=5)
    gc.collect()
    assert [str(each.message) for each in unclosed] == []


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)  # as Python spells "cannot be imported"
    with pytest.raises(ImportError, match=r'pip install "ragstone\[openai\]"'):
        OpenAICompatible("m", base_url=NOWHERE)


def test_keys_of_the_environment_stay_at_home(openai_server, monkeypatch):
    server = openai_server(answer)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-env")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-env")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-custom")

    for settings in ({"base_url": server.url}, {"base_url": server.url, "api_key": "sk-mine"}):
        with OpenAICompatible("m", **settings) as llm:
            llm.generate(PLAIN)
            asyncio.run(llm.agenerate(PLAIN))
    sent = [seen.headers for seen in server.seen]
    assert [headers["authorization"] for headers in sent] == ["Bearer none"] * 2 + ["Bearer sk-mine"] * 2
    assert not any(secret in str(sent) for secret in ("sk-env", "sk-admin", "sk-custom", "org-env", "proj-env"))
    monkeypatch.delenv("OPENAI_CUSTOM_HEADERS")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)  # the environment's own server gets what the environment has
    with OpenAICompatible("m") as llm:
        llm.generate(PLAIN)
    assert server.seen[-1].headers["authorization"] == "Bearer sk-env"
    assert server.seen[-1].headers["openai-organization"] == "org-env"


def test_a_redirect_to_another_host_does_not_take_the_key_along(openai_server):
    elsewhere = openai_server(answer)
    target = elsewhere.url.replace("127.0.0.1", "localhost") + "/chat/completions"
    server = openai_server(lambda _: Answer(b"", status=307, headers={"Location": target}))
    with OpenAICompatible("m", base_url=server.url, api_key="sk-mine") as llm:
        llm.generate(PLAIN)
    assert "authorization" not in elsewhere.seen[0].headers


FEW = {"api_key": "sk-mine", "asking": "one_by_one", "gives_probabilities": True}


def test_at_asks_the_server_for_its_first_model(openai_server):
    server = openai_server(answer, models=["first", "second"])
    with OpenAICompatible.at(server.url.removesuffix("/v1"), **FEW) as llm:
        assert repr(llm) == f"OpenAICompatible('first', base_url={server.url!r})"
        assert (llm.asking, llm.gives_probabilities) == ("one_by_one", True)
        assert llm.models() == ("first", "second")
        llm.generate(PLAIN)
    assert server.bodies[-1]["model"] == "first"
    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer sk-mine"}


def test_at_says_what_is_wrong(openai_server):
    empty = openai_server(answer, models=[])
    with pytest.raises(AnswerError, match=f"{empty.url} lists no models: load one"):
        OpenAICompatible.at(empty.url)
    empty.models = error(401, "key sk-mine is wrong")
    with pytest.raises(ConnectionError, match=r"for its models: .*key \[hidden\] is wrong.* \(start the server"):
        OpenAICompatible.at(empty.url, api_key="sk-mine")
    with pytest.raises(ConnectionError, match="cannot ask http://127"):
        OpenAICompatible.at(NOWHERE)
    assert OpenAICompatible.at(NOWHERE, "mine").model == "mine"  # asks nobody
