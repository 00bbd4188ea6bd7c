"""The bar: where it is shown and what it says."""

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import types

import pytest

from ragstone import ContextRelevancy, LLMReply
from ragstone.batch import progress
from ragstone.batch.evaluate import evaluate
from ragstone.testing import FakeLLM

ROWS = [{"question": f"Q{i}?", "contexts": ["One. Two."]} for i in range(5)]


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def shown(monkeypatch, terminal, **settings):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    fails = FakeLLM(lambda request: LLMReply('{"ids": [1]}' if "Q3" not in request.user else "no", 1000, 234))
    evaluate(ROWS, [ContextRelevancy(llm=fails)], **settings)
    return screen.getvalue()


@pytest.mark.parametrize(
    ("terminal", "asked", "there"),
    [(False, "auto", False), (True, False, False), (False, True, True)],
)
def test_on_a_terminal_unless_told(monkeypatch, terminal, asked, there):
    assert bool(shown(monkeypatch, terminal, progress=asked)) == there


def test_done_total_calls_tokens_and_failures(monkeypatch):
    last = shown(monkeypatch, terminal=True, progress="auto").replace("\n", "\r").split("\r")[-2]
    assert "5/5" in last
    assert "samples/s" in last
    assert last.endswith("0 in flight, 7.4k tokens, 1 unscored]")


def test_a_notebook(monkeypatch):
    for shell in (types.SimpleNamespace(kernel=object()), types.SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert progress.in_notebook() == hasattr(shell, "kernel")


def test_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert len(list(evaluate(ROWS, [ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))]).results())) == 5


def test_on_a_real_terminal():
    code = (
        "from ragstone import ContextRelevancy\nfrom ragstone.batch.evaluate import evaluate\n"
        "from ragstone.testing import FakeLLM\n"
        f"evaluate({ROWS!r}, [ContextRelevancy(llm=FakeLLM(lambda request: {{'ids': [1]}}))])"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs)
    os.close(theirs)
    bar = b""
    try:
        while block := os.read(ours, 4096):
            bar += block
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    assert b"5/5" in bar
