"""A server that answers late, wrongly, half or not at all."""

import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest

from ragstone import LLMRequest
from ragstone.clients import AnswerError, OpenAICompatible

from ..support.openai_server import (  # noqa: TID252 - under importlib mode tests are no package
    CLOSE,
    HANG,
    Answer,
    chat,
    error,
)

SELF_SIGNED = str(Path(__file__).parents[1] / "support" / "self_signed.pem")
PLAIN = LLMRequest("demo.ask", "sys", "user", {"type": "object", "properties": {}})
CHOICE = LLMRequest("demo.ask", "sys", "user", {}, choices=("yes", "no"))


def ask(llm, what=PLAIN):
    with llm:
        return llm.generate(what)


@pytest.fixture
def scripted(openai_server):
    """A server that gives the given answers one after the other, then the last for ever; and a client."""

    def start(*answers, **settings):
        left = list(answers)
        server = openai_server(lambda _: left.pop(0) if len(left) > 1 else left[0])
        settings = {"max_retries": 2, "timeout": 5.0, "base_url": server.url, **settings}
        return server, OpenAICompatible("m", **settings)

    return start


@pytest.mark.parametrize(
    "bad",
    [
        Answer({"error": {"message": "slow down"}}, status=429, headers={"Retry-After-Ms": "20"}),
        Answer(b"", status=503, headers={"Retry-After-Ms": "20"}),
        Answer(chat("half"), missing=100),
        CLOSE,
    ],
    ids=["429", "503", "truncated", "closes"],
)
def test_retried(scripted, bad):
    server, llm = scripted(bad, "good")
    assert ask(llm).text == "good"
    assert len(server.seen) == 2


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached"])
def test_a_quota_that_is_used_up_is_not_tried_again(scripted, code):
    server, llm = scripted(Answer({"error": {"message": "You exceeded your quota", "code": code}}, status=429))
    with pytest.raises(openai.RateLimitError, match="You exceeded your quota"):
        ask(llm)
    assert len(server.seen) == 1


def test_hangs(scripted):
    server, llm = scripted(HANG, timeout=0.2, max_retries=1)  # sent, and never answered
    with pytest.raises(openai.APITimeoutError, match=r"no answer from http://127.0.0.1:\d+/v1 within 0.2 s: raise"):
        ask(llm)
    assert len(server.seen) == 1  # its time is for all tries


def test_nobody_there():
    with socket.socket() as taken:  # bound, not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        llm = OpenAICompatible("m", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
        with pytest.raises(openai.APIConnectionError, match=f"127.0.0.1:{port}/v1 .*is the server running"):
            ask(llm)


def test_a_certificate_that_is_not_trusted_is_no_server_that_does_not_run(openai_server, monkeypatch):
    server = openai_server(lambda _: "yes", certificate=SELF_SIGNED)
    llm = OpenAICompatible("m", base_url=server.url, max_retries=0)
    with pytest.raises(openai.APIConnectionError, match=r"certificate.* certificate in SSL_CERT_FILE\?$"):
        ask(llm)
    monkeypatch.setenv("SSL_CERT_FILE", SELF_SIGNED)
    assert ask(llm).text == "yes"


REFUSALS = {
    "response_format": error(400, "'response_format' of type 'json_schema' is not supported"),
    "temperature": error(400, "Unsupported value", param="temperature"),
    "seed": error(422, "unknown parameter: seed"),
    "logprobs": error(403, "You are not allowed to request logprobs from this model"),
}


@pytest.mark.parametrize("refused", [["response_format"], list(REFUSALS)], ids=["one", "all"])
def test_a_refused_parameter_costs_one_request_once(openai_server, caplog, refused):
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


FEWER = {
    "openai": (error(400, "Invalid value", param="top_logprobs"), 5),
    "xai": (error(400, "top_logprobs must be between 0 and 8"), 8),
    "vllm": (error(400, "Requested sample logprobs of 20, which is greater than max allowed: 5"), 5),
}


@pytest.mark.parametrize(("answer", "number"), FEWER.values(), ids=FEWER)
def test_fewer_log_probabilities_are_asked_for_before_none_are(openai_server, answer, number):
    server = openai_server(lambda body: answer if body.get("top_logprobs", 0) > number else "yes")
    llm = OpenAICompatible("m", base_url=server.url, max_retries=0)
    for _ in range(2):
        assert ask(llm, CHOICE).text == "yes"
    assert [body["top_logprobs"] for body in server.bodies] == [20, number, number]
    assert not llm.left_out


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


def test_no_message_has_the_key(scripted, caplog):
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


def test_the_package_brings_all_that_is_asked_for(openai_server):
    pytest.importorskip("httpx2")  # older ones bring httpx, which recent ones do without
    server = openai_server(lambda _: "good")
    program = f"""
import sys
sys.modules["httpx"] = None
from ragstone import LLMRequest
from ragstone.clients import OpenAICompatible
print(OpenAICompatible("m", base_url={server.url!r}).generate(LLMRequest("demo.ask", "sys", "user", {{}})).text)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("good\n", "")
