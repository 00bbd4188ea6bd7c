"""What `OpenAICompatible` does when all is well: both protocols, connections, concurrency, keys."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import ragstone
from ragstone import LLMRequest
from ragstone.clients import AnswerError, OpenAICompatible
from ragstone.testing.contracts import EmbedderContract, LLMContract

from ..support.openai_server import (  # noqa: TID252 - under importlib mode tests are no package
    HANG,
    Answer,
    chat,
    embeddings,
    error,
)
from ..support.waiting import soon  # noqa: TID252

PLAIN = LLMRequest("demo.ask", "sys", "user", {})
NOWHERE = "http://127.0.0.1:9/v1"  # for what makes no request


def judge(request):
    if request.get("logprobs"):
        top = [{"token": "yes", "logprob": -0.2}, {"token": "no", "logprob": -2.0}]
        return chat("yes", logprobs={"content": [{"token": "yes", "logprob": -0.2, "top_logprobs": top}]})
    return '{"answer": "yes"}'


def by_length(request):
    return embeddings([[float(len(text)), 1.0] for text in request["input"]])


class TestLLM(LLMContract):
    @pytest.fixture(autouse=True)
    def _server(self, openai_server):
        self._url = openai_server(judge).url

    def llm(self):
        return OpenAICompatible("m", base_url=self._url)


class TestEmbedder(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _server(self, openai_server):
        self._url = openai_server(by_length).url

    def embedder(self):
        return OpenAICompatible("m", base_url=self._url)


def test_both_protocols():
    client = OpenAICompatible("m", base_url=NOWHERE, asking="one_by_one", max_input_tokens=4096)
    assert isinstance(client, ragstone.LLM)
    assert isinstance(client, ragstone.Embedder)
    assert (client.model, client.asking, client.max_input_tokens) == ("m", "one_by_one", 4096)
    assert OpenAICompatible("m", base_url=NOWHERE).max_input_tokens is None


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"model": ""}, "model must be"),
        ({"asking": "slowly"}, "asking must be"),
        ({"timeout": 0}, "timeout must be"),
        ({"timeout": float("nan")}, "timeout must be"),
        ({"max_retries": -1}, "max_retries must be"),
        ({"max_concurrency": 0}, "max_concurrency must be"),
        ({"base_url": "localhost"}, "base_url must be"),
    ],
)
def test_settings_are_checked(bad, message):
    with pytest.raises(ValueError, match=message):
        OpenAICompatible(**{"model": "m", "base_url": NOWHERE, **bad})


def test_embeddings_are_one_call_in_order_and_none_for_no_text(openai_server):
    replies = []

    def backwards(request):
        replies.append(request)
        body = by_length(request)
        return {**body, "data": body["data"][::-1]}

    with OpenAICompatible("m", base_url=openai_server(backwards).url) as embedder:
        assert embedder.embed(("a", "bbb", "cc")).tolist() == [[1.0, 1.0], [3.0, 1.0], [2.0, 1.0]]
        assert embedder.embed([]).shape == (0, 0)
        assert embedder.embed([]).dtype == "float32"
        assert asyncio.run(embedder.aembed([])).shape == (0, 0)
    assert [(r["input"], r["encoding_format"]) for r in replies] == [(["a", "bbb", "cc"], "float")]


def test_extra_body_goes_along_and_is_not_kept_by_reference(openai_server):
    server = openai_server(lambda request: by_length(request) if "input" in request else "x")
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    with OpenAICompatible("m", base_url=server.url, extra_body=extra) as client:
        extra["chat_template_kwargs"]["enable_thinking"] = True
        client.generate(PLAIN)
        client.embed(["a"])
    assert [body["chat_template_kwargs"] for body in server.bodies] == [{"enable_thinking": False}] * 2


def test_at_most_so_many_threads_in_flight(openai_server):
    server = openai_server(lambda _: Answer(chat("x"), delay=0.03))
    with OpenAICompatible("m", base_url=server.url, max_concurrency=3) as llm, ThreadPoolExecutor(10) as pool:
        assert len(list(pool.map(llm.generate, [PLAIN] * 15))) == 15
    assert server.max_in_flight == 3


def test_at_most_so_many_tasks_in_flight(openai_server):
    server = openai_server(lambda _: Answer(chat("x"), delay=0.03))
    llm = OpenAICompatible("m", base_url=server.url, max_concurrency=3)

    async def many():
        return await asyncio.gather(*(llm.agenerate(PLAIN) for _ in range(15)))

    assert len(asyncio.run(many())) == 15
    assert server.max_in_flight == 3


def test_a_call_that_waits_to_be_retried_keeps_its_slot(openai_server):
    times = []

    def overloaded_once(_):
        times.append(time.monotonic())
        return Answer({}, status=429, headers={"Retry-After-Ms": "300"}) if len(times) == 1 else "x"

    llm = OpenAICompatible("m", base_url=openai_server(overloaded_once).url, max_concurrency=1)
    with llm, ThreadPoolExecutor(3) as pool:
        list(pool.map(llm.generate, [PLAIN] * 3))
    assert times[1] - times[0] > 0.25


def test_one_event_loop_after_another(openai_server):
    server = openai_server(judge)
    llm = OpenAICompatible("m", base_url=server.url, max_retries=0)  # a stale connection would be an error

    async def two():
        await llm.agenerate(PLAIN)
        await llm.agenerate(PLAIN)

    for _ in range(3):
        asyncio.run(two())
    connections = [seen.connection for seen in server.seen]
    assert [connections.count(each) for each in dict.fromkeys(connections)] == [2, 2, 2]
    assert len(llm._connection._loops) == 1  # those that are closed are forgotten


def test_two_event_loops_at_once(openai_server):
    server = openai_server(lambda _: Answer(chat("x"), delay=0.05))
    llm = OpenAICompatible("m", base_url=server.url, max_retries=0)

    async def some():
        return await asyncio.gather(*(llm.agenerate(PLAIN) for _ in range(3)))

    with ThreadPoolExecutor(2) as pool:
        assert [len(r) for r in pool.map(lambda _: asyncio.run(some()), range(2))] == [3, 3]


def test_an_event_loop_beside_another_has_connections_of_its_own(openai_server):
    server = openai_server(judge)
    llm = OpenAICompatible("m", base_url=server.url, max_retries=0)

    async def outer():
        await llm.agenerate(PLAIN)
        await asyncio.to_thread(lambda: asyncio.run(llm.agenerate(PLAIN)))
        await llm.agenerate(PLAIN)

    asyncio.run(outer())
    first, second, third = [seen.connection for seen in server.seen]
    assert first == third != second


def test_sync_inside_a_running_loop_and_both_at_once(openai_server):
    llm = OpenAICompatible("m", base_url=openai_server(judge).url)

    async def both():
        return await asyncio.gather(llm.agenerate(PLAIN), asyncio.to_thread(llm.generate, PLAIN)), llm.generate(PLAIN)

    with llm:
        (a, b), c = asyncio.run(both())
    assert a == b == c


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


def test_connections_are_closed_and_opened_again(openai_server):
    server = openai_server(judge)
    llm = OpenAICompatible("m", base_url=server.url)
    llm.close()  # nothing yet
    for _ in range(2):
        llm.generate(PLAIN)
        llm.generate(PLAIN)
        llm.close()
        llm.close()

    async def twice():
        await llm.aclose()
        for _ in range(2):
            async with llm:
                await llm.agenerate(PLAIN)
                await llm.agenerate(PLAIN)

    asyncio.run(twice())
    assert len({seen.connection for seen in server.seen}) == 4


def test_dropping_the_object_closes_its_connections(openai_server):
    server = openai_server(judge)
    llm = OpenAICompatible("m", base_url=server.url)

    async def once():
        nonlocal llm
        await llm.agenerate(PLAIN)
        llm.generate(PLAIN)
        del llm
        gc.collect()  # a ResourceWarning here is an error
        await asyncio.sleep(0.05)

    asyncio.run(once())
    soon(lambda: server.open_connections == 0, within=5)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 30])
def test_dropping_the_object_as_its_loop_ends_closes_its_connections(openai_server, steps):
    """`asyncio.run` waits for what it knows: the closing, begun by a drop, must be among that."""
    server = openai_server(lambda _: Answer(chat("fine"), delay=0.05))

    async def work():
        llm = OpenAICompatible("m", base_url=server.url)
        await asyncio.gather(*(llm.agenerate(PLAIN) for _ in range(4)))

    async def once():
        await work()
        for _ in range(steps):
            await asyncio.sleep(0)

    asyncio.run(once())
    gc.collect()  # a ResourceWarning here is an error
    soon(lambda: server.open_connections == 0, within=5)
    assert len({seen.connection for seen in server.seen}) == 4


def test_dropping_the_object_with_the_last_task_of_its_loop_closes_its_connections(openai_server):
    """Then the closing begins when `asyncio.run` no longer waits for tasks."""
    server = openai_server(lambda _: Answer(chat("fine"), delay=0.05))

    async def work(asked):
        llm = OpenAICompatible("m", base_url=server.url)
        await asyncio.gather(*(llm.agenerate(PLAIN) for _ in range(4)))
        asked.set()
        await asyncio.sleep(60)

    async def once():
        asked = asyncio.Event()
        tasks.append(asyncio.create_task(work(asked)))
        await asked.wait()

    tasks: list[asyncio.Task[None]] = []
    asyncio.run(once())
    assert tasks.pop().cancelled()
    gc.collect()  # a ResourceWarning here is an error
    soon(lambda: server.open_connections == 0, within=5)


PROGRAM = """
import asyncio, sys, threading
from ragstone import LLMRequest
from ragstone.clients import OpenAICompatible
assert "openai" not in sys.modules and "numpy" not in sys.modules, "import is not lazy"
llm = OpenAICompatible("m", base_url=sys.argv[1])
assert "openai" not in sys.modules, "making one is not lazy"
request = LLMRequest("demo.ask", "s", "u", {})

class Spy:
    def find_spec(self, name, *_):
        if name == "openai":
            print("imported by", "main" if threading.current_thread() is threading.main_thread() else "a thread")

sys.meta_path.insert(0, Spy())
asyncio.run(llm.agenerate(request))
print(llm.generate(request).text)
"""


def run(program, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_in_a_program_it_is_lazy_and_leaves_nothing_open(openai_server):
    done = run(PROGRAM, openai_server(lambda _: "fine").url)
    assert (done.stdout, done.stderr, done.returncode) == ("imported by a thread\nfine\n", "", 0)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)  # as Python spells "cannot be imported"
    with pytest.raises(ImportError, match=r'pip install "ragstone\[openai\]"'):
        OpenAICompatible("m", base_url=NOWHERE)


def test_keys_of_the_environment_stay_at_home(openai_server, monkeypatch):
    server = openai_server(judge)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-env")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-env")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-custom")

    async def asynchronous(llm):
        async with llm:
            await llm.agenerate(PLAIN)

    for settings in ({"base_url": server.url}, {"base_url": server.url, "api_key": "sk-mine"}):
        with OpenAICompatible("m", **settings) as llm:
            llm.generate(PLAIN)
            asyncio.run(asynchronous(llm))
    sent = [seen.headers for seen in server.seen]
    assert [headers["authorization"] for headers in sent] == ["Bearer none"] * 2 + ["Bearer sk-mine"] * 2
    everything = str(sent)
    assert not any(secret in everything for secret in ("sk-env", "sk-admin", "sk-custom", "org-env", "proj-env"))


def test_openai_base_url_gets_what_the_environment_has(openai_server, monkeypatch):
    server = openai_server(judge)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-env")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with OpenAICompatible("m") as llm:
        llm.generate(PLAIN)
    assert server.seen[0].headers["authorization"] == "Bearer sk-env"
    assert server.seen[0].headers["openai-organization"] == "org-env"


def test_a_redirect_to_another_host_does_not_take_the_key_along(openai_server):
    elsewhere = openai_server(judge)
    target = elsewhere.url.replace("127.0.0.1", "localhost") + "/chat/completions"
    server = openai_server(lambda _: Answer(b"", status=307, headers={"Location": target}))
    with OpenAICompatible("m", base_url=server.url, api_key="sk-mine") as llm:
        llm.generate(PLAIN)
    assert "authorization" not in elsewhere.seen[0].headers


def test_at_asks_the_server_for_its_first_model(openai_server):
    server = openai_server(judge, models=["first", "second"])
    with OpenAICompatible.at(server.url.removesuffix("/v1"), api_key="sk-mine", asking="one_by_one") as llm:
        assert repr(llm) == f"OpenAICompatible('first', base_url={server.url!r})"
        assert llm.asking == "one_by_one"
        assert llm.models() == ("first", "second")
        llm.generate(PLAIN)
    assert server.bodies[-1]["model"] == "first"
    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer sk-mine"}


def test_at_with_a_model_asks_nobody():
    assert OpenAICompatible.at(NOWHERE, "mine").model == "mine"


def test_at_says_what_is_wrong(openai_server):
    empty = openai_server(judge, models=[])
    with pytest.raises(AnswerError, match=f"{empty.url} has no models: load one"):
        OpenAICompatible.at(empty.url)
    empty.models = error(401, "key sk-mine is wrong")
    with pytest.raises(ConnectionError, match=r"for its models: .*key \[hidden\] is wrong.* \(start the server"):
        OpenAICompatible.at(empty.url, api_key="sk-mine")
    with pytest.raises(ConnectionError, match="cannot ask http://127"):
        OpenAICompatible.at(NOWHERE)
    with pytest.raises(ValueError, match="must be like"):
        OpenAICompatible.at("localhost:8080")
