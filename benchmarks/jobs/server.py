"""A server on loopback that speaks OpenAI's API and answers each schema or tool by its first good value."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LIKED = ("supported", "yes", "1")
CLAIM = "Jane Austen wrote Emma."
PLAIN = {  # what prompts without a schema ask for
    **{key: [CLAIM] for key in ("statements", "truths", "claims")},
    "verdicts": [{"verdict": "yes", "reason": "So."}],
    **dict.fromkeys(("value", "result"), "yes"),
    "reason": "So.",
}
JUDGED = PLAIN | {"statements": [{"statement": CLAIM, "reason": "So.", "verdict": 1}]}


class StubServer:
    """Answers until the block ends.

    Example:
        >>> with StubServer() as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "StubServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "input" in body and "messages" not in body and self.path.endswith("embeddings"):
            rows = [{"object": "embedding", "index": i, "embedding": [3.0, 4.0]} for i in range(len(body["input"]))]
            reply: dict[str, Any] = {"object": "list", "model": "m", "data": rows, "usage": USAGE}
        elif self.path.endswith("responses"):
            reply = response(body)
        else:
            reply = completion(body)
        sent = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "input_tokens": 11, "output_tokens": 7}


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if tools := body.get("tools"):
        function = tools[0]["function"]
        call = {"name": function["name"], "arguments": json.dumps(filled(function["parameters"]))}
        message["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
    else:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        message["content"] = json.dumps(filled(schema)) if schema else plain(json.dumps(body["messages"]))
    choice = {"index": 0, "finish_reason": "tool_calls" if tools else "stop", "message": message}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE,
    }  # fmt: skip


def response(body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer as the responses API does."""
    if tools := body.get("tools"):
        text = json.dumps(filled(tools[0]["parameters"]))
        output = {"type": "function_call", "id": "1", "call_id": "1", "name": tools[0]["name"], "arguments": text}
    else:
        schema = body.get("text", {}).get("format", {}).get("schema")
        text = json.dumps(filled(schema)) if schema else plain(json.dumps(body["input"]))
        part = {"type": "output_text", "text": text, "annotations": []}
        output = {"type": "message", "id": "1", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [output],
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "usage": USAGE,
    }  # fmt: skip


def plain(prompt: str) -> str:
    return json.dumps(JUDGED if "StatementFaithfulness" in prompt else PLAIN)


def filled(schema: Mapping[str, Any], whole: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """Return the first good value of a JSON Schema."""
    whole = whole or schema
    if "$ref" in schema:
        return filled(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if options := schema.get("anyOf") or schema.get("allOf"):
        return filled(options[0], whole)
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if choices:
        return next((word for word in LIKED if word in choices), choices[0])
    match schema.get("type", "object"):
        case "object":
            return {name: filled(inner, whole) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return [filled(schema.get("items", {"type": "string"}), whole)] * max(1, schema.get("minItems", 1))
        case "boolean":
            return True
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case _:
            return "yes"
