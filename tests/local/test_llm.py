"""LocalLLM against a stand-in for xllamacpp that speaks llama.cpp's streamed chunks."""

import asyncio
import gc
import json
import math
import os
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragstone.judge import LLMRequest
from ragstone.local import LocalLLM

REQUEST = LLMRequest(task="t", system="the system", user="the user", schema={"type": "object"})


def tokens(**probabilities):
    scored = [{"token": t, "logprob": math.log(p)} for t, p in probabilities.items()]
    return {"choices": [{"delta": {"content": "x"}, "logprobs": {"content": [{"top_logprobs": scored}]}}]}


def text(*pieces):
    return [{"choices": [{"delta": {"content": piece}, "logprobs": None}]} for piece in pieces]


PROGRESS = {"choices": [{"delta": {"role": "assistant", "content": None}}], "prompt_progress": {"processed": 0}}
USAGE = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}


class Params(types.SimpleNamespace):
    def __init__(self):
        super().__init__(hostnames=["127.0.0.1"])
        self.model, self.cpuparams, self.cpuparams_batch = (types.SimpleNamespace() for _ in range(3))


class FakeLlama(types.ModuleType):
    """`reply(body)` returns the chunks of one answer."""

    CommonParams = Params

    def __init__(self, reply):
        super().__init__("xllamacpp")
        self.bodies, self.params, self.sent = [], [], 0
        self.alive = 0
        outer = self

        class Server:
            def __init__(self, params):
                if Path(params.model.path).read_bytes() == b"broken":
                    raise RuntimeError("Failed to init server")
                outer.params.append(params)
                outer.alive += 1

            def __del__(self):
                outer.alive -= 1

            def handle_chat_completions(self, body, callback):
                outer.bodies.append(json.loads(json.dumps(body)))
                for chunk in reply(body):
                    outer.sent += 1
                    if callback(chunk):
                        return

        self.Server = Server


@pytest.fixture
def fake(monkeypatch, tmp_path):
    made = []

    def make(reply, **settings):
        llama = FakeLlama(reply if callable(reply) else lambda body: reply)
        monkeypatch.setitem(sys.modules, "xllamacpp", llama)
        path = tmp_path / "some-model.gguf"
        path.write_bytes(b"GGUF")
        made.append(LocalLLM(path, **settings))
        return made[-1], llama

    yield make
    for llm in made:
        llm.close()


def test_ordinary_request(fake):
    llm, llama = fake([PROGRESS, *text('{"a"', ": 1}"), USAGE])
    request = LLMRequest("t", "the system", "the user", {"type": "object"}, temperature=0.5, sample_index=3)
    reply = llm.generate(request)
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.probabilities) == ('{"a": 1}', 10, 2, None)
    (body,) = llama.bodies
    assert body["messages"] == [
        {"role": "system", "content": "the system"},
        {"role": "user", "content": "the user"},
    ]
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert (body["temperature"], body["seed"], body["max_tokens"], body["cache_prompt"]) == (0.5, 3, 1024, True)


def test_choices(fake):
    llm, llama = fake([tokens(Yes=0.5, yes=0.1, No=0.2), USAGE])
    reply = llm.generate(LLMRequest("t", "s", "u", {}, temperature=0.7, choices=("yes", "no")))
    assert reply.text == "yes"
    assert reply.probabilities == pytest.approx({"yes": 0.75, "no": 0.25})
    (body,) = llama.bodies
    assert (body["max_tokens"], body["temperature"], body["logprobs"]) == (1, 0.0, True)


def test_choices_that_the_model_would_not_say(fake):
    llm, _ = fake(lambda body: [*text("no"), USAGE] if "grammar" in body else [tokens(Hm=1.0), USAGE])
    reply = llm.generate(LLMRequest("t", "s", "u", {}, choices=("yes", "no")))
    assert (reply.text, reply.probabilities) == ("no", None)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("<|im_start|>system", "< |im_start|>system"),
        ("<\uff5cUser\uff5c>", "< \uff5cUser\uff5c>"),
        ("half \ud800 pair", "half ? pair"),
    ],
)
def test_data_cannot_end_their_message(fake, given, sent):
    llm, llama = fake([*text("{}"), USAGE])
    llm.generate(LLMRequest("t", given, given, {}))
    assert [message["content"] for message in llama.bodies[0]["messages"]] == [sent, sent]


TOO_LONG = {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192, "message": "m"}


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (TOO_LONG, ValueError, r"9000 tokens and the context has room for 8192.*context_tokens"),
        ({"why": "odd thing"}, RuntimeError, r"llama.cpp: .*odd thing"),
    ],
)
def test_errors_of_the_engine(fake, error, kind, message):
    llm, _ = fake([{"error": error}])
    with pytest.raises(kind, match=message):
        llm.generate(REQUEST)


def test_loaded_once_and_nobody_can_connect(fake):
    llm, llama = fake([*text("{}"), USAGE], threads=3, context_tokens=4096, cache_prompt=False)
    llm.load()
    llm.load()
    llm.generate(LLMRequest("t", "", "", {}))
    assert "response_format" not in llama.bodies[0]
    assert llama.bodies[0]["cache_prompt"] is False
    (params,) = llama.params
    assert (params.n_ctx, params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (4096, 3, 3)
    assert (params.verbosity, params.cache_ram_mib, params.n_parallel) == (-1, 0, 1)
    assert len(params.api_keys[0]) > 30
    (address,) = params.hostnames
    if sys.platform != "win32":
        assert address.endswith(".sock")
        assert not Path(address).parent.exists()


def test_what_is_missing_or_wrong_is_said(fake, monkeypatch, tmp_path):
    llm, _ = fake([])
    with pytest.raises(FileNotFoundError, match=r"no such model file: .*none.gguf"):
        LocalLLM(tmp_path / "none.gguf").load()
    (tmp_path / "broken.gguf").write_bytes(b"broken")
    with pytest.raises(RuntimeError, match=r"cannot load .*broken.gguf: not a whole GGUF file"):
        LocalLLM(tmp_path / "broken.gguf").load()
    monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"`ragstone pull`"):
        asyncio.run(LocalLLM().agenerate(REQUEST))
    for name, value in (("threads", 0), ("context_tokens", 2047)):
        with pytest.raises(ValueError, match=name):
            LocalLLM(**{name: value})
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ImportError, match=r'xllamacpp: pip install "ragstone\[local\]"'):
        llm.generate(REQUEST)


def test_calls_of_many_threads_run_one_at_a_time(fake):
    running = threading.Lock()

    def reply(body):
        assert running.acquire(blocking=False)
        threading.Event().wait(0.001)
        running.release()
        return [*text(body["messages"][1]["content"]), USAGE]

    llm, _ = fake(reply)
    with ThreadPoolExecutor(8) as pool:
        replies = pool.map(llm.generate, [LLMRequest("t", "", str(i), {}) for i in range(40)])
    assert [reply.text for reply in replies] == [str(i) for i in range(40)]


class Endless:
    """A reply that goes on until it is stopped."""

    def __init__(self):
        self.began, self.ended = threading.Event(), threading.Event()

    def __call__(self, body):
        if body["messages"][1]["content"] != "endless":
            return [*text("{}"), USAGE]
        return self._chunks()

    def _chunks(self):
        try:
            while True:
                self.began.set()
                yield from text("x")
                threading.Event().wait(0.001)
        finally:
            self.ended.set()


ENDLESS = LLMRequest("t", "s", "endless", {})


def test_cancelled_call_is_stopped(fake):
    endless = Endless()
    llm, _ = fake(endless)

    async def main():
        task = asyncio.create_task(llm.agenerate(ENDLESS))
        assert await asyncio.to_thread(endless.began.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await llm.agenerate(REQUEST)

    assert asyncio.run(main()).text == "{}"
    assert endless.ended.wait(10)


@pytest.mark.skipif(sys.platform == "win32", reason="raise_signal")
@pytest.mark.usefixtures("untraced")
def test_ctrl_c_stops_the_call(fake):
    import signal

    endless = Endless()
    llm, _ = fake(endless)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Thread(target=lambda: endless.began.wait(10) and signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        llm.generate(ENDLESS)
    timer.join()
    assert endless.ended.wait(10)


def test_close_frees_and_a_later_call_loads_again(fake):
    llm, llama = fake([*text("{}"), USAGE])
    with llm:
        llm.generate(REQUEST)
        assert llama.alive == 1
    gc.collect()
    assert llama.alive == 0
    assert llm.generate(REQUEST).text == "{}"
    assert llama.alive == 1


def test_a_forked_child_leaves_the_model_alone(fake, monkeypatch, tmp_path):
    _, llama = fake([])
    llm = LocalLLM(tmp_path / "some-model.gguf")
    llm.load()
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a child
    with pytest.raises(RuntimeError, match="made before a fork"):
        llm.generate(REQUEST)
    del llm
    gc.collect()
    assert llama.alive == 1
    monkeypatch.undo()
