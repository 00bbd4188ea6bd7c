"""Requests as bodies and bodies as replies, on tables."""

import json

import pytest

from ragstone import LLMRequest
from ragstone.clients.access import Access, AnswerError
from ragstone.clients.chat import chat_call, read_chat, refused
from ragstone.clients.compatible import read_models, read_vectors

from ..support.openai_server import chat, embeddings  # noqa: TID252 - under importlib mode tests are no package

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
SERVER = Access("http://judge.test/v1", "sk-secret", ambient=False)
PLAIN = LLMRequest("metric.step", "sys", "user", CLOSED)
CHOICE = LLMRequest("metric.step", "sys", "user", {"enum": ["yes", "no"]}, choices=("yes", "no"))
EVERYTHING = LLMRequest("a.b", "sys", "user", CLOSED, temperature=0.7, sample_index=3)


CALL = {"function": {"name": "reply", "arguments": '{"a": 1}'}}


def ended(text, reason):
    return {"choices": [{"message": {"content": text}, "finish_reason": reason}]}


def read(body, request=PLAIN):
    return read_chat(body if isinstance(body, bytes) else json.dumps(body).encode(), request, SERVER)


def test_a_request_becomes_a_body():
    assert chat_call("m", PLAIN).body == {
        "model": "m",
        "messages": [{"role": "system", "content": "sys"}, {"role": "user", "content": "user"}],
        "temperature": 0.0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "metric_step", "schema": CLOSED, "strict": True},
        },
    }


def test_a_choice_asks_for_log_probabilities_and_for_no_form():
    body = chat_call("m", CHOICE).body
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert "seed" not in body  # of one draw
    assert "response_format" not in body
    assert chat_call("m", CHOICE, {"response_format"}).body["messages"][1]["content"] == "user"


def test_what_was_dropped_is_not_sent_and_the_schema_is_in_the_prompt():
    whole = chat_call("m", EVERYTHING)
    assert (whole.body["temperature"], whole.body["seed"]) == (0.7, 3)
    assert refused(400, {"message": "logprobs"}, whole) is None  # what was not sent is not refused
    body = chat_call("m", EVERYTHING, {"response_format", "seed", "temperature"}).body
    assert set(body) == {"model", "messages"}
    assert body["messages"][1]["content"].startswith("user\n\nReply with bare JSON")
    assert json.dumps(CLOSED) in body["messages"][1]["content"]


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        # as OpenAI, vLLM (pydantic), llama.cpp, Ollama and gateways say it
        (400, {"message": "Unsupported value: 'temperature' ...", "param": "temperature"}, "temperature"),
        (400, {"error": {"message": "seed and temperature are unknown", "param": None}}, "seed"),
        (403, {"message": "You are not allowed to request logprobs from this model."}, "logprobs"),
        (422, {"detail": [{"loc": ["body", "n"], "msg": "bad", "input": {"seed": 1, "s": "schema"}}]}, None),
        (400, "Failed to parse grammar", "response_format"),
        (401, {"message": "temperature"}, None),
    ],
)
def test_what_a_server_refuses(status, body, name):
    request = LLMRequest("a.b", "", "", CLOSED, temperature=0.5)
    optional = chat_call("schema-seed-9", request).optional | chat_call("m", CHOICE).optional
    call = type(chat_call("m", request))({"model": "schema-seed-9"}, optional)
    assert refused(status, body, call) == name


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chat("<think>endless"), "<think>endless"),
        (chat("\0\ud800 \u2028"), "\0\ud800 \u2028"),
        (chat(None, refusal="{}"), ""),
        (chat("{}", refusal="I cannot."), ""),
        (ended('{"a": 1}', "content_filter"), ""),
        (ended('It says </think>{"a": 1}', "length"), ""),
        (ended('{"a": 1}', "length"), '{"a": 1}'),
        (chat("{}", tool_calls=[CALL]), ""),
        (chat(None, tool_calls=[CALL]), '{"a": 1}'),
        (chat(None, reasoning_content='{"a": 1}'), '{"a": 1}'),
        ({"choices": [{"message": {"reasoning": '{"a": 1}'}, "finish_reason": "length"}]}, ""),
        (chat([{"type": "text", "text": "{"}, {"type": "text", "text": "}"}, {"type": "image"}, 1]), "{}"),
    ],
)
def test_any_chat_completion_is_a_reply(body, text):
    assert read(body).text == text


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (ended("{", "length"), "length"),
        (ended("{}", None), ""),
        (chat(None, refusal="I cannot."), "refusal"),
        ({"choices": [{"message": {"refusal": "No."}, "finish_reason": "length"}]}, "refusal"),
    ],
)
def test_a_reply_says_why_it_ended(body, word):
    assert read(body).ended == word


def test_token_counts_are_taken_only_where_they_are_counts():
    for usage, counts in [
        ({"prompt_tokens": 0, "completion_tokens": 2}, (0, 2)),
        ({"prompt_tokens": -1, "completion_tokens": True}, (None, None)),
        ({"prompt_tokens": "5", "completion_tokens": 2.5}, (None, None)),
        ([], (None, None)),
    ]:
        reply = read({**chat("x"), "usage": usage})
        assert (reply.input_tokens, reply.output_tokens) == counts


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no such key: sk-secret"}}, r"without 'choices': no such key: \[hidden\]$"),
        ([], "JSON that is not an object"),
        (b"<html>not sk-secret", r"did not answer with JSON \('<html>not \[hidden\]'\).*/v1"),
        (b"[" * 100_000, "answer with JSON"),
        (b'{"a": "caf\xe9"}', r"answer with JSON \('\{\"a\": \"caf\\\\xe9"),
    ],
)
def test_what_is_not_a_chat_completion_is_an_error(body, message):
    with pytest.raises(AnswerError, match=message) as caught:
        read(body)
    assert "http://judge.test/v1" in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def rows(*pairs):
    return json.dumps({"data": [{"index": i, "embedding": v} for i, v in pairs]}).encode()


def test_vectors_are_in_the_texts_order_and_models_in_the_servers():
    assert read_vectors(rows((2, [3]), (0, [1]), (1, [2])), 3, SERVER) == [[1], [2], [3]]
    unnumbered = b'{"data": [{"embedding": [4]}, {"embedding": [5]}]}'
    assert read_vectors(unnumbered, 2, SERVER) == [[4], [5]]
    assert read_models(b'{"data": [{"id": "a"}, {"id": ""}, {}, 1, {"id": "b"}]}', SERVER) == ("a", "b")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (json.dumps(embeddings([[1.0]] * 3)).encode(), "3 embeddings for 2 texts"),
        (rows((0, [1.0]), (0, [2.0])), "did not number its embeddings 0 to 1"),
        (b'{"error": {"message": "no embeddings here"}}', "without 'data': no embeddings here"),
    ],
)
def test_vectors_that_are_not(body, message):
    with pytest.raises(AnswerError, match=message):
        read_vectors(body, 2, SERVER)
