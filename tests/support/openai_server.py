"""A real HTTP server on loopback that speaks OpenAI's API as a test tells it to, well or badly.

    with OpenAIServer(lambda request: "yes") as server:
        OpenAICompatible("any", base_url=server.url)

The given function gets each POST's JSON and says what is answered:

- a str: a chat completion with that text (token counts 11 and 7); a dict: that JSON; bytes: that body;
- an `Answer`, for a status, headers, a delay, or a body that ends early;
- `HANG`: nothing, until the server stops; `CLOSE`: the connection is closed without an answer.

As a script it answers every chat completion with its argument: python openai_server.py '{"a": 1}'
"""

import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = "<hang>"
CLOSE = "<close>"


@dataclass(frozen=True)
class Answer:
    body: Any = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds before the first byte
    missing: int = 0  # bytes that Content-Length promises and that never come


@dataclass(frozen=True)
class Seen:
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: dict[str, Any]
    connection: tuple[str, int]  # the client's end: equal for requests on one connection


def chat(text: str | None, *, usage: Any = (11, 7), logprobs: Any = None, **message: Any) -> dict[str, Any]:
    """A chat completion; `usage` is a pair of token counts or None."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    if logprobs is not None:
        choice["logprobs"] = logprobs
    body: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return body


_TOP = [{"token": "yes", "logprob": -0.2}, {"token": "no", "logprob": -2.0}]
SURE = chat("yes", logprobs={"content": [{**_TOP[0], "top_logprobs": _TOP}]})
"""Yes, with probabilities."""


def embeddings(vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": i, "embedding": list(v)} for i, v in enumerate(vectors)]
    return {"object": "list", "model": "m", "data": rows, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def error(status: int, message: str, **more: Any) -> Answer:
    """An error in OpenAI's form."""
    return Answer({"error": {"message": message, "type": "invalid_request_error", **more}}, status=status)


NO_SYSTEM = [
    (400, {"object": "error", "message": "System role not supported", "type": "BadRequestError", "param": None}),
    (400, {"error": {"message": "Conversation roles must alternate user/assistant/user/assistant/...", "code": 400}}),
    (400, {"error": {"message": "Only user and assistant roles are supported!", "code": 400}}),
    (400, {"error": {"message": "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                     "type": "invalid_request_error", "param": "messages[0].role", "code": "unsupported_value"}}),
    (400, {"error": {"message": "Developer instruction is not enabled for models/gemma-3-27b-it", "code": 400}}),
    (400, {"message": "This model doesn't support system messages. Try again without a system message."}),
    (500, {"error": {"message": "Error: Jinja Exception: System role not supported", "type": "server_error"}}),
]  # fmt: skip
"""How servers refuse a system message: vLLM with Gemma 2 and with Mistral, o1-mini, Gemini, Bedrock, llama.cpp."""


class OpenAIServer:
    def __init__(
        self, reply: Callable[[dict[str, Any]], Any], models: Sequence[str] = ("test-model",), certificate: str = ""
    ) -> None:
        self.reply = reply
        self.models: Any = {"object": "list", "data": [{"id": name, "object": "model"} for name in models]}
        self.seen: list[Seen] = []
        self.max_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._scheme = "https" if certificate else "http"
        if certificate:  # a PEM file, with its key
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [seen.body for seen in self.seen]

    @property
    def open_connections(self) -> int:
        return self._server.count()

    def __enter__(self) -> "OpenAIServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: "_Handler", body: dict[str, Any]) -> Any:
        with self._lock:
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.seen.append(Seen(handler.path, headers, body, handler.client_address))
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            answer = self.models if handler.path.endswith("/models") else self.reply(body)
            if isinstance(answer, Answer) and answer.delay:
                self._over.wait(answer.delay)
            if answer is HANG:
                self._over.wait()
                return CLOSE
            return answer
        finally:
            with self._lock:
                self._in_flight -= 1


class _Server(ThreadingHTTPServer):
    owner: OpenAIServer
    daemon_threads = False  # so that server_close waits for the handlers
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:
        self._open: set[Any] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def count(self) -> int:
        return len(self._open)

    def close_connections(self) -> None:
        for request in list(self._open):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a client that went away is part of the game
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as by real servers
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet per answer
    server: _Server

    def do_GET(self) -> None:
        self._answer(self.server.owner.answer(self, {}))

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        content = self.rfile.read(length)
        if len(content) < length:  # the client was killed while it sent
            self.close_connection = True
            return
        self._answer(self.server.owner.answer(self, json.loads(content)))

    def _answer(self, answer: Any) -> None:
        if answer is CLOSE:
            self.close_connection = True
            return
        if isinstance(answer, str):
            answer = chat(answer)
        if not isinstance(answer, Answer):
            answer = Answer(answer)
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content) + answer.missing)}
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        self.close_connection = self.close_connection or answer.missing > 0

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


if __name__ == "__main__":
    with OpenAIServer(lambda _: sys.argv[1]) as running:
        print(running.url, flush=True)
        while True:
            time.sleep(3600)
