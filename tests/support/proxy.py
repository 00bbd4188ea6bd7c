"""A proxy on loopback in front of a server on loopback: it counts connections, and can go silent without an end."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Use it in a `with` block.

    Attributes:
        port: Where it listens.
        connections: How many were made so far.
        closed: How many a client has closed.
        swallowed: Bytes that came on a silent one.
    """

    def __init__(self, to: int) -> None:
        self._to = to
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._silent: set[socket.socket] = set()
        self.connections = self.closed = self.swallowed = 0

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listening, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def go_silent(self) -> None:
        """From now on swallow, and acknowledge, all that comes on connections that are there; new ones work."""
        self._silent.update(self._sockets)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += [client, server]
                self.connections += 1
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                if one in self._silent:
                    self.swallowed += len(data)
                else:
                    other.sendall(data)
        self.closed += one in self._sockets[::2]
        if one not in self._silent:
            with suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)
