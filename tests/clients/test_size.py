"""A server that never ends its reply: reading stops at a size."""

import gzip
import threading
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest

from ragstone import LLMRequest
from ragstone.clients import AnswerError, OpenAICompatible

MOST = 100_000


@contextmanager
def server(head, piece):
    """Answer each request with a head, then with pieces until the client goes away; count the bytes."""
    sent = [0]

    class Handler(BaseRequestHandler):
        def handle(self):
            self.request.recv(1 << 20)
            with suppress(OSError):
                self.request.sendall(head)
                while True:
                    self.request.sendall(piece)
                    sent[0] += len(piece)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.01,)).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}/v1", sent
        listening.shutdown()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKED = b"HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
ENDLESS = {
    "chunked": (CHUNKED % b"200 OK", chunk(b" " * 65_536)),
    "an error": (CHUNKED % b"400 Bad", chunk(b" " * 65_536)),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n", b" " * 65_536),
    "gzip": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 90000\r\n\r\n",
        gzip.compress(b" " * 50_000_000),
    ),
}


@pytest.mark.parametrize(("head", "piece"), ENDLESS.values(), ids=ENDLESS)
def test_reading_stops_at_a_size(head, piece):
    asked = LLMRequest("demo.ask", "sys", "user", {})
    with (
        server(head, piece) as (url, sent),
        OpenAICompatible("m", base_url=url, max_reply_bytes=MOST, max_retries=2) as llm,
        pytest.raises(AnswerError, match=r"http://127.0.0.1:\d+/v1 answered with") as raised,
    ):
        llm.generate(asked)
    why = "only plain bytes were asked for" if b"gzip" in head else "100,000 bytes: check the address"
    assert why in str(raised.value)
    assert sent[0] < 100 * MOST  # and what the sockets' buffers hold
