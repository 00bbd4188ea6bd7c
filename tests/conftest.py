"""What tests of all folders share: the loopback server (`server = openai_server(lambda request: "yes")`), PostgreSQL."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import hypothesis
import pytest

from .support.openai_server import OpenAIServer
from .support.postgres import MISSING, PostgresServer, find_binaries, install

# How long an example takes depends on the machine; no test asserts a time.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background job; processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def openai_server() -> Iterator[Callable[..., OpenAIServer]]:
    """Starts an `OpenAIServer` with the given reply function; stops it after the test."""
    with ExitStack() as stack:
        yield lambda reply, **settings: stack.enter_context(OpenAIServer(reply, **settings))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server; tests skip where PostgreSQL is not installed."""
    pytest.importorskip("psycopg")
    if find_binaries() is None:
        install()
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(MISSING)
    server = PostgresServer(binaries)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def untraced() -> Iterator[None]:
    """For tests with a signal handler: coverage's lock is not re-entrant, so a handler that it traces may never end."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(trace)
