"""A server that answers late, wrongly, half or not at all; sync and async alike."""

import asyncio
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import openai
import pytest

from ragstone import LLMRequest
from ragstone.clients import AnswerError, OpenAICompatible

from ..support.openai_server import (  # noqa: TID252 - under importlib mode tests are no package
    CLOSE,
    HANG,
    Answer,
    chat,
    embeddings,
    error,
)

PLAIN = LLMRequest("demo.ask", "sys", "user", {"type": "object", "properties": {}})
CHOICE = LLMRequest("demo.ask", "sys", "user", {}, choices=("yes", "no"))


@pytest.fixture(params=["sync", "async"])
def ask(request):
    """Asks by one of the two paths and closes."""

    def sync(llm, what=PLAIN):
        with llm:
            return llm.generate(what)

    async def asynchronous(llm, what):
        async with llm:
            return await llm.agenerate(what)

    return sync if request.param == "sync" else lambda llm, what=PLAIN: asyncio.run(asynchronous(llm, what))


@pytest.fixture
def scripted(openai_server):
    """A server that gives the given answers one after the other, then the last for ever; and a client."""

    def start(*answers, **settings):
        left = list(answers)
        server = openai_server(lambda _: left.pop(0) if len(left) > 1 else left[0])
        settings = {"max_retries": 2, "timeout": 5.0, "base_url": server.url, **settings}
        return server, OpenAICompatible("m", **settings)

    return start


def test_late(scripted, ask):
    _, llm = scripted(Answer(chat("late"), delay=0.3))
    assert ask(llm).text == "late"


@pytest.mark.parametrize(
    "bad",
    [
        Answer({"error": {"message": "slow down"}}, status=429, headers={"Retry-After-Ms": "20"}),
        Answer(b"oops", status=500, headers={"Retry-After-Ms": "20"}),
        Answer(b"", status=503, headers={"Retry-After-Ms": "20"}),
        Answer(chat("half"), missing=100),
        CLOSE,
    ],
    ids=["429", "500", "503", "truncated", "closes"],
)
def test_retried(scripted, ask, bad):
    server, llm = scripted(bad, "good")
    assert ask(llm).text == "good"
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("header", "least"),
    [
        ({"Retry-After": "1"}, 1.0),
        ({"Retry-After": lambda: formatdate(time.time() + 2, usegmt=True)}, 0.9),  # whole seconds, cut
        ({}, 0.37),  # the package's own 0.5 s, less up to a quarter
    ],
    ids=["seconds", "date", "none"],
)
def test_waits_at_least_as_told(openai_server, header, least):
    times = []

    def reply(_):
        times.append(time.monotonic())
        values = {name: value() if callable(value) else value for name, value in header.items()}
        return Answer({}, status=429, headers=values) if len(times) == 1 else "good"

    with OpenAICompatible("m", base_url=openai_server(reply).url) as llm:
        assert llm.generate(PLAIN).text == "good"
    assert times[1] - times[0] >= least


@pytest.mark.skipif(int(openai.__version__.split(".")[0]) < 3, reason="older releases come back too early")
def test_a_longer_wait_than_two_minutes_is_an_error_at_once(scripted, ask):
    server, llm = scripted(
        Answer({"error": {"message": "come back tomorrow"}}, status=429, headers={"Retry-After": "86400"})
    )
    with pytest.raises(openai.RateLimitError, match="come back tomorrow"):
        ask(llm)
    assert len(server.seen) == 1


def test_errors_after_the_retries(scripted, ask):
    server, llm = scripted(Answer(b"", status=500, headers={"Retry-After-Ms": "10"}))
    with pytest.raises(openai.InternalServerError):
        ask(llm)
    assert len(server.seen) == 3


def test_hangs(scripted, ask):
    server, llm = scripted(HANG, timeout=0.2, max_retries=1)
    with pytest.raises(openai.APITimeoutError, match=r"no answer from http://127.0.0.1:\d+/v1 within 0.2 s"):
        ask(llm)
    assert len(server.seen) == 2


def test_closes_every_time(scripted, ask):
    server, llm = scripted(CLOSE, max_retries=1)
    with pytest.raises(openai.APIConnectionError, match=r"no answer from http://127.0.0.1:\d+/v1 \(.+\): is the"):
        ask(llm)
    assert len(server.seen) == 2


def test_nobody_there(ask):
    with socket.socket() as taken:  # bound, not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        llm = OpenAICompatible("m", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
        with pytest.raises(openai.APIConnectionError, match=f"127.0.0.1:{port}/v1 .*is the server running"):
            ask(llm)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (json.dumps(chat("caf\xe9"), ensure_ascii=False).encode("latin-1"), "not UTF-8"),
        (b"<html>welcome</html>", "not JSON"),
        (b'{"choices": [{"mess', "not JSON"),
        ({"error": {"message": "no credit"}}, "no credit"),
    ],
    ids=["latin-1", "html", "cut", "error with 200"],
)
def test_answers_that_are_none(scripted, ask, body, message):
    server, llm = scripted(Answer(body))
    with pytest.raises(AnswerError, match=message):
        ask(llm)
    assert len(server.seen) == 1


def test_odd_content_types_and_characters(scripted, ask):
    body = json.dumps(chat("\0 \ud800 é"), ensure_ascii=True).encode()
    _, llm = scripted(Answer(body, headers={"Content-Type": "text/plain; charset=latin-1"}))
    assert ask(llm).text == "\0 \ud800 é"


def test_no_usage_and_no_content(scripted, ask):
    _, llm = scripted(chat(None, usage=None))
    reply = ask(llm)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("", None, None)


def test_fenced(scripted, ask):
    _, llm = scripted('```json\n{"a": 1}\n```')
    assert ask(llm).text == '{"a": 1}'


def test_log_probabilities(scripted, ask):
    top = [{"token": " yes", "logprob": -0.105}, {"token": "No", "logprob": -2.303}]
    _, llm = scripted(chat("Yes.", logprobs={"content": [{"token": " yes", "logprob": -0.105, "top_logprobs": top}]}))
    reply = ask(llm, CHOICE)
    assert reply.text == "yes"
    assert reply.probabilities == pytest.approx({"yes": 0.9, "no": 0.1}, abs=1e-3)


REFUSALS = {
    "response_format": error(400, "'response_format' of type 'json_schema' is not supported"),
    "temperature": error(400, "Unsupported value", param="temperature"),
    "seed": error(422, "unknown parameter: seed"),
    "logprobs": error(403, "You are not allowed to request logprobs from this model"),
}


@pytest.mark.parametrize("refused", [["response_format"], ["temperature"], ["seed"], ["logprobs"], list(REFUSALS)])
def test_a_refused_parameter_costs_one_request_once(openai_server, ask, caplog, refused):
    def picky(request):
        return next((REFUSALS[name] for name in refused if name in request), "yes")

    server = openai_server(picky)
    llm = OpenAICompatible("m", base_url=server.url, max_retries=0)
    drawn = LLMRequest("demo.ask", "sys", "user", {"type": "object"}, temperature=0.5, sample_index=2)
    for _ in range(2):
        assert ask(llm, drawn).text == "yes"
        assert ask(llm, CHOICE).text == "yes"
    assert len(server.seen) == 4 + len(refused)
    assert not any(name in server.bodies[-1] or name in server.bodies[-2] for name in refused)
    assert [record.levelname for record in caplog.records if record.name.startswith("ragstone")] == ["WARNING"] * len(
        refused
    )
    in_prompt = '{"type": "object"}' in server.bodies[-2]["messages"][1]["content"]
    assert in_prompt == ("response_format" in refused)


def test_calls_in_flight_at_the_first_refusal_all_go_on(openai_server, caplog):
    together = threading.Barrier(3)

    def picky(request):
        if "temperature" not in request:
            return "yes"
        together.wait(5)
        return REFUSALS["temperature"]

    server = openai_server(picky)
    with OpenAICompatible("m", base_url=server.url, max_retries=0) as llm, ThreadPoolExecutor(3) as pool:
        assert [reply.text for reply in pool.map(llm.generate, [PLAIN] * 3)] == ["yes"] * 3
    assert len(server.seen) == 6
    assert len([record for record in caplog.records if record.name.startswith("ragstone")]) == 1


def test_what_is_no_refusal_is_an_error(scripted, ask):
    server, llm = scripted(error(404, "The model `m` does not exist"))
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        ask(llm)
    assert len(server.seen) == 1


def test_no_message_has_the_key(scripted, ask, caplog):
    key = "sk-very-secret"
    answers = [
        error(401, f"Incorrect API key provided: {key}"),
        error(400, f"{key} may not set the temperature"),
        {"error": {"message": f"bad key {key}"}},
    ]
    server, llm = scripted(*answers, api_key=key)
    caplog.set_level("DEBUG")
    with pytest.raises(openai.AuthenticationError, match=r"provided: \[hidden\]") as first:
        ask(llm)
    with pytest.raises(AnswerError, match=r"bad key \[hidden\]") as second:
        ask(llm)
    assert server.seen[0].headers["authorization"] == f"Bearer {key}"
    assert "temperature" not in server.bodies[-1]
    said = [str(first.value), repr(first.value), first.value.message, str(second.value), repr(llm)]
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("ragstone")]
    assert key not in "".join(said + ours)
    assert ours


def test_embedding_errors(openai_server):
    replies = [embeddings([[1.0]]), Answer({}, status=500, headers={"Retry-After-Ms": "10"}), embeddings([[1.0]] * 2)]
    server = openai_server(lambda _: replies.pop(0))
    with OpenAICompatible("m", base_url=server.url) as embedder:
        with pytest.raises(AnswerError, match="1 embeddings for 2 texts"):
            embedder.embed(["a", "b"])
        assert embedder.embed(["a", "b"]).shape == (2, 1)
