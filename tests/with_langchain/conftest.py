"""What the tests of evaluators share: a check that nothing leaves the machine."""

import socket

import pytest


@pytest.fixture
def offline(monkeypatch):
    """Fails the test if anything, on any thread, looks up a host that is not this one; LangSmith would only log it."""
    asked = []
    look_up = socket.getaddrinfo

    def getaddrinfo(host, *args, **kwargs):
        if host not in ("localhost", "127.0.0.1", "::1", None):
            asked.append(host)
            raise OSError(f"a test looked up {host}")
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    yield
    assert not asked, f"the test looked up {asked}"
