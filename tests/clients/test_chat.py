"""Requests as bodies and bodies as replies, on tables."""

import json

import pytest

from ragstone import LLMRequest
from ragstone.clients.access import Access
from ragstone.clients.answer import AnswerError
from ragstone.clients.chat import chat_call, is_closed, read_chat, refused
from ragstone.clients.vectors import read_models, read_vectors

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


def test_draws_are_told_apart_by_their_seed():
    body = chat_call("m", EVERYTHING).body
    assert (body["temperature"], body["seed"]) == (0.7, 3)
    assert "seed" not in chat_call("m", PLAIN).body


def test_a_choice_asks_for_log_probabilities_and_for_no_form():
    body = chat_call("m", CHOICE).body
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert "response_format" not in body
    assert chat_call("m", CHOICE, {"response_format"}).body["messages"][1]["content"] == "user"


def test_no_schema_is_no_form():
    free = LLMRequest("", "sys", "user", {})
    assert chat_call("m", free).optional == {"temperature"}
    assert chat_call("m", free, {"response_format"}).body["messages"][1]["content"] == "user"


def test_what_was_dropped_is_not_sent_and_the_schema_is_in_the_prompt():
    body = chat_call("m", EVERYTHING, {"response_format", "seed", "temperature"}).body
    assert set(body) == {"model", "messages"}
    assert body["messages"][1]["content"].startswith("user\n\nReply with bare JSON")
    assert json.dumps(CLOSED) in body["messages"][1]["content"]


@pytest.mark.parametrize(("task", "name"), [("a.b c/d", "a_b_c_d"), ("", "reply"), ("x" * 99, "x" * 64), ("é", "_")])
def test_names_that_servers_take(task, name):
    form = chat_call("m", LLMRequest(task, "", "", CLOSED)).body["response_format"]
    assert form["json_schema"]["name"] == name


@pytest.mark.parametrize(
    ("schema", "closed"),
    [
        (CLOSED, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({"type": "object"}, False),
        ({"type": "array", "items": CLOSED}, True),
        ({"anyOf": [CLOSED, {"type": "object"}]}, False),
        ({"$defs": {"x": {"type": "object"}}, "type": "string"}, False),
        ({}, True),
    ],
)
def test_is_closed(schema, closed):
    assert is_closed(schema) is closed


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        # as OpenAI, vLLM (pydantic), llama.cpp, Ollama and gateways say it
        (400, {"message": "Unsupported value: 'temperature' ...", "param": "temperature"}, "temperature"),
        (400, {"message": "no", "param": "response_format.json_schema"}, "response_format"),
        (400, {"error": {"message": "seed and temperature are unknown", "param": None}}, "seed"),
        (403, {"message": "You are not allowed to request logprobs from this model."}, "logprobs"),
        (422, {"detail": [{"loc": ["body", "top_logprobs"], "msg": "too large", "input": {"seed": 1}}]}, "logprobs"),
        (422, {"detail": [{"loc": ["body", "n"], "msg": "bad", "input": {"seed": 1, "s": "schema"}}]}, None),
        (400, "Failed to parse grammar", "response_format"),
        (500, {"message": "JSON schema conversion failed"}, "response_format"),
        (501, {"message": "structured output is not implemented"}, "response_format"),
        (404, {"message": "The model `schema-seed-9` does not exist"}, None),
        (400, {"message": "maximum context length is 4096 tokens", "param": "messages"}, None),
        (400, {"message": "unexpected keyword seed; known: temperature, response_format"}, "seed"),
        (401, {"message": "temperature"}, None),
        (429, {"message": "temperature"}, None),
        (400, None, None),
        (400, {"message": 17}, None),
    ],
)
def test_what_a_server_refuses(status, body, name):
    request = LLMRequest("a.b", "", "", CLOSED, temperature=0.5)
    optional = chat_call("schema-seed-9", request).optional | chat_call("m", CHOICE).optional
    call = type(chat_call("m", request))({"model": "schema-seed-9"}, optional)
    assert refused(status, body, call) == name


def test_what_was_not_sent_is_not_refused():
    assert refused(400, {"message": "seed"}, chat_call("m", PLAIN)) is None


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chat("{}"), "{}"),
        (chat('```json\n{"a": 1}\n```'), '{"a": 1}'),
        (chat('<think>\nhm, {"a"\n</think>\n\n{"a": 1}'), '{"a": 1}'),
        (chat("<think>endless"), "<think>endless"),
        (chat("\0\ud800 \u2028"), "\0\ud800 \u2028"),
        (chat(None), ""),
        (chat(None, refusal="I cannot."), "I cannot."),
        (chat(None, tool_calls=[{"id": "1"}]), ""),
        (chat(None, tool_calls=[{"function": {"name": "reply", "arguments": '{"a": 1}'}}]), '{"a": 1}'),
        (chat("", function_call={"name": "reply", "arguments": '{"a": 1}'}), '{"a": 1}'),
        (chat(None, reasoning_content='{"a": 1}'), '{"a": 1}'),
        (chat("", reasoning='{"a": 1}'), '{"a": 1}'),
        (chat(None, reasoning_content='So {"a": 1}'), ""),
        ({"choices": [{"message": {"reasoning": '{"a": 1}'}, "finish_reason": "length"}]}, ""),
        (chat([{"type": "text", "text": "{"}, {"type": "text", "text": "}"}, {"type": "image"}, 1]), "{}"),
        (chat(17), ""),
        ({"choices": [{"finish_reason": "content_filter"}]}, ""),
        ({"choices": [{"message": None, "finish_reason": "length"}]}, ""),
    ],
)
def test_any_chat_completion_is_a_reply(body, text):
    assert read(body).text == text


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, (5, 2)),
        ({"prompt_tokens": 0, "completion_tokens": None}, (0, None)),
        ({"prompt_tokens": -1, "completion_tokens": True}, (None, None)),
        ({"prompt_tokens": "5", "completion_tokens": 2.5}, (None, None)),
        (None, (None, None)),
        ([], (None, None)),
    ],
)
def test_usage(usage, counts):
    reply = read({**chat("x"), "usage": usage})
    assert (reply.input_tokens, reply.output_tokens) == counts


def test_a_choice_has_probabilities_unless_the_model_thought_first():
    logprobs = {"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": []}]}
    reply = read(chat("Yes.", logprobs=logprobs), CHOICE)
    assert (reply.text, reply.probabilities) == ("yes", {"yes": 1.0, "no": 0.0})
    assert read(chat("<think>Yes?</think>no", logprobs=logprobs), CHOICE).probabilities is None
    assert read(chat("Yes.", logprobs=logprobs), PLAIN).probabilities is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no such key: sk-secret"}}, r"without 'choices': no such key: \[hidden\]$"),
        ({"error": "overloaded"}, "without 'choices': overloaded"),
        ({"message": "m"}, "without 'choices': m"),
        ({"detail": ["d"]}, "without 'choices': .'d'"),
        ({"id": 1, "choices": []}, r"without 'choices' \(it has id, choices\)"),
        ({"choices": ["x"]}, r"without 'choices' \(it has choices\)"),
        ({}, r"without 'choices' \(it has nothing\)"),
        ([], "JSON that is no object"),
        (b"<html>not sk-secret", r"not JSON \('<html>not \[hidden\]'\).*/v1"),
        (b'{"choices": [', "not JSON"),
        (b" ", r"not JSON \(empty\)"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": "caf\xe9"}', "not UTF-8"),
    ],
)
def test_what_is_not_a_chat_completion_is_an_error(body, message):
    with pytest.raises(AnswerError, match=message) as caught:
        read(body)
    assert "http://judge.test/v1" in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def rows(*pairs):
    return json.dumps({"data": [{"index": i, "embedding": v} for i, v in pairs]}).encode()


def test_vectors_are_in_the_texts_order():
    vectors = read_vectors(rows((2, [3]), (0, [1]), (1, [2])), 3, SERVER)
    assert vectors.dtype == "float32"
    assert vectors.tolist() == [[1.0], [2.0], [3.0]]
    unnumbered = b'{"data": [{"embedding": [4]}, {"embedding": [5]}]}'
    assert read_vectors(unnumbered, 2, SERVER).tolist() == [[4.0], [5.0]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (json.dumps(embeddings([[1.0]])).encode(), "1 embeddings for 2 texts"),
        (json.dumps(embeddings([[1.0]] * 3)).encode(), "3 embeddings for 2 texts"),
        (rows((0, [1.0]), (0, [2.0])), "not numbered 0 to 1"),
        (rows((1, [1.0]), (2, [2.0])), "not numbered 0 to 1"),
        (rows((0, [1.0]), (1, [1.0, 2.0])), "not lists of numbers of one length"),
        (rows((0, [1.0]), (1, None)), "not lists of numbers"),
        (rows((0, "AAAA"), (1, "AAAA")), "not lists of numbers"),
        (rows((0, []), (1, [])), "not lists of numbers"),
        (rows((0, [float("nan")]), (1, [1.0])), "not lists of numbers"),
        (rows((0, [10**400]), (1, [1])), "not lists of numbers"),
        (b'{"data": null}', "without 'data'"),
        (b'{"error": {"message": "no embeddings here"}}', "without 'data': no embeddings here"),
    ],
)
def test_vectors_that_are_not(body, message):
    with pytest.raises(AnswerError, match=message):
        read_vectors(body, 2, SERVER)


def test_models():
    assert read_models(b'{"data": [{"id": "a"}, {"id": ""}, {}, 1, {"id": "b"}]}', SERVER) == ("a", "b")
    with pytest.raises(AnswerError, match="without 'data'"):
        read_models(b'{"models": []}', SERVER)
