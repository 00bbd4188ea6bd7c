"""A real HTTP server on loopback that notes each request and answers as a function says."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    method: str
    path: str  # with the query
    headers: dict[str, str]  # names in lower case
    body: bytes


class HTTPServer:
    """Use it in a `with` block. `answer` takes a request and gives a status and a body."""

    def __init__(self, answer: Callable[[Request], tuple[int, bytes]]) -> None:
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(answer))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> "HTTPServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(server, answer: Any) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                server.requests.append(request)
                status, said = answer(request)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PATCH = _any  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        return Handler
