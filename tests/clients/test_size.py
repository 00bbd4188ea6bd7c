"""A server that never ends its reply: reading stops at a size and at a time."""

import gzip
import socket
import threading
from contextlib import contextmanager

import pytest

from ragstone import LLMRequest
from ragstone.clients import AnswerError, OpenAICompatible

ASKED = LLMRequest("demo.ask", "sys", "user", {})
MOST = 100_000


@contextmanager
def server(head, piece, wait=0.0):
    """Answer each request with a head, then with pieces until the client goes away; count the bytes."""
    over, sent = threading.Event(), [0]
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(connection):
        with connection:
            connection.recv(1 << 20)
            try:
                connection.sendall(head)
                while not over.wait(wait):
                    connection.sendall(piece)
                    sent[0] += len(piece)
            except OSError:
                pass

    def accept():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", sent
    finally:
        over.set()
        listening.close()


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
    with server(head, piece) as (url, sent):
        llm = OpenAICompatible("m", base_url=url, max_reply_bytes=MOST, max_retries=2)
        with pytest.raises(AnswerError, match=r"http://127.0.0.1:\d+/v1 answered with") as raised:
            llm.generate(ASKED)
    assert ("100,000 bytes" in str(raised.value) and "max_reply_bytes" in str(raised.value)) or head == ENDLESS["gzip"][
        0
    ]
    assert sent[0] < 100 * MOST  # and what the sockets' buffers hold
