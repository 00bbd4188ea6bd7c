"""The server that the scripts of both libraries ask."""

from collections.abc import Callable

import pytest

from ..support.openai_server import OpenAIServer  # noqa: TID252 - under importlib mode tests are no package
from .judging import answer


@pytest.fixture
def server(openai_server: Callable[..., OpenAIServer], monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    """OpenAI's API, as the environment names it."""
    server = openai_server(answer)
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return server
