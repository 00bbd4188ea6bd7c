"""The embedded judge and embedder behind an OpenAI-compatible address, so that every peer asks the same models.

    python benchmarks/agreement/peers/serve.py --port 8399 --threads 1

Run where ragstone is installed with its extra `local` and the models pulled. They are loaded as `ragstone.local`
loads them; requests go to llama.cpp's own handler of chat completions (chat template, `response_format`, sampling),
one at a time. Only on 127.0.0.1; any key is taken. A request whose client has gone is stopped, not finished.

    POST /v1/chat/completions    no tools, no streaming: no peer sends them; `n` is that many runs
    POST /v1/embeddings          texts only, not tokens
    GET  /v1/models
    GET  /v1/usage               what the key that asks has used so far: calls and tokens
"""

import argparse
import json
import select
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from ragstone.local import LocalEmbedder
from ragstone.local.engine import _start  # the same parameters, or it would not be the same judge
from ragstone.local.files import LLM_FILE, installed

MODEL = f"local:{LLM_FILE.path.stem}"

Json = dict[str, Any]


class RefusedError(Exception):
    """The request cannot be answered; the message says why."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class GoneError(Exception):
    """Nobody waits for the answer any more."""


class Server(Protocol):
    def handle_chat_completions(self, body: Json, callback: Callable[[Json], bool], /) -> None: ...


class Embedder(Protocol):
    model: str

    def embed(self, texts: list[str], /) -> Any: ...  # noqa: ANN401 - an array, or anything that has its tolist


class Models:
    """Both models, and what each key has used of them."""

    def __init__(self, server: Server, embedder: Embedder, reply_tokens: int) -> None:
        self._server = server
        self._embedder = embedder
        self._reply_tokens = reply_tokens
        self._turn = threading.Lock()
        self._used: dict[str, dict[str, int]] = {}

    def used(self, key: str) -> dict[str, int]:
        return self._used.setdefault(key, {"calls": 0, "input_tokens": 0, "output_tokens": 0})

    def chat(self, key: str, body: Json, gone: Callable[[], bool]) -> Json:
        """Answer a chat completion request, after those before it."""
        for name in ("tools", "functions", "stream"):
            if body.get(name):
                raise RefusedError(f"`{name}` is not served here")
        used = self.used(key)
        request = {**body, "stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
        if not body.get("max_tokens") and not body.get("max_completion_tokens"):
            request["max_tokens"] = self._reply_tokens
        runs = int(request.pop("n", None) or 1)
        choices: list[Json] = []
        tokens = {"prompt_tokens": 0, "completion_tokens": 0}
        with self._turn:
            if gone():
                raise GoneError
            used["calls"] += 1
            for index in range(runs):
                text, finish, usage = self._run(request, gone)
                message = {"role": "assistant", "content": text}
                choices.append({"index": index, "message": message, "finish_reason": finish, "logprobs": None})
                tokens["prompt_tokens"] = usage.get("prompt_tokens", 0)  # said once, as a paid provider does
                tokens["completion_tokens"] += usage.get("completion_tokens", 0)
        used["input_tokens"] += tokens["prompt_tokens"]
        used["output_tokens"] += tokens["completion_tokens"]
        return {
            "id": "chatcmpl-local",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": choices,
            "usage": {**tokens, "total_tokens": sum(tokens.values())},
        }

    def _run(self, request: Json, gone: Callable[[], bool]) -> tuple[str, str, Mapping[str, int]]:
        pieces: list[str] = []
        said: Json = {"finish": "stop", "usage": {}, "error": None}

        def receive(chunk: Json) -> bool:
            said["error"] = chunk.get("error") or said["error"]
            said["usage"] = chunk.get("usage") or said["usage"]
            for choice in chunk.get("choices", ()):
                pieces.append(choice["delta"].get("content") or "")
                said["finish"] = choice.get("finish_reason") or said["finish"]
            return gone()

        self._server.handle_chat_completions(request, receive)
        if said["error"]:
            raise RefusedError(str(said["error"].get("message") or said["error"]))
        if gone():
            raise GoneError
        return "".join(pieces), said["finish"], said["usage"]

    def embed(self, body: Json) -> Json:
        given = body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise RefusedError("`input` must be a text or a list of texts")
        rows = self._embedder.embed(texts).tolist()
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "model": self._embedder.model, "data": data, "usage": usage}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    models: Models

    def do_GET(self) -> None:
        if self.path == "/v1/usage":
            self._answer(200, self.models.used(self._key()))
        elif self.path == "/v1/models":
            self._answer(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self._error(404, f"there is no {self.path}")

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(content)
            if not isinstance(body, dict):
                raise RefusedError("the body must be a JSON object")
            if self.path == "/v1/chat/completions":
                self._answer(200, self.models.chat(self._key(), body, self._gone))
            elif self.path == "/v1/embeddings":
                self._answer(200, self.models.embed(body))
            else:
                raise RefusedError(f"there is no {self.path}", 404)
        except GoneError:
            self.close_connection = True
        except RefusedError as error:
            self._error(error.status, str(error))
        except (ValueError, TypeError, RuntimeError) as error:  # no JSON, or nothing that llama.cpp can read
            self._error(400, str(error))

    def _key(self) -> str:
        return self.headers.get("Authorization") or ""

    def _gone(self) -> bool:
        if not select.select([self.connection], [], [], 0)[0]:
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _error(self, status: int, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": status}})

    def _answer(self, status: int, body: Json) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: a line per request is noise."""


def server_of(models: Models, port: int) -> ThreadingHTTPServer:
    """Return a server of the models on 127.0.0.1; port 0 takes a free one."""
    return ThreadingHTTPServer(("127.0.0.1", port), type("ModelsHandler", (Handler,), {"models": models}))


def main() -> None:
    parser = argparse.ArgumentParser(description="The embedded judge and embedder, OpenAI-compatible, on loopback.")
    parser.add_argument("--port", type=int, default=8399)
    parser.add_argument("--threads", type=int, default=1, help="more is faster only where the cores are idle")
    parser.add_argument("--context-tokens", type=int, default=16_384, help="longest prompt and reply together")
    parser.add_argument(
        "--reply-tokens",
        type=int,
        default=2048,
        help="longest reply to a request that sets no limit: a small model may repeat itself without end",
    )
    args = parser.parse_args()
    llm = _start(installed(LLM_FILE), args.threads, args.context_tokens)
    models = Models(llm, LocalEmbedder(), args.reply_tokens)
    with server_of(models, args.port) as server:
        print(f"{MODEL} at http://127.0.0.1:{server.server_address[1]}/v1", file=sys.stderr)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


if __name__ == "__main__":
    main()
