"""The loopback server for all tests: `server = openai_server(lambda request: "yes")`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from .support.openai_server import OpenAIServer


@pytest.fixture
def openai_server() -> Iterator[Callable[..., OpenAIServer]]:
    """Starts an `OpenAIServer` with the given reply function; stops it after the test."""
    with ExitStack() as stack:
        yield lambda reply, **settings: stack.enter_context(OpenAIServer(reply, **settings))
