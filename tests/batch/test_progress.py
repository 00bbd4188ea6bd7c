"""The bar: where it is shown and what it says."""

import asyncio
import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios

import pytest

from ragstone import ContextRelevancy, LLMReply
from ragstone.batch.evaluate import aevaluate, evaluate
from ragstone.testing import FakeLLM

from ..support.judges import Slow  # noqa: TID252
from .clock import run_on_a_clock

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
    [(False, "auto", False), (True, False, False), (True, True, True), (False, True, False)],
)
def test_on_a_terminal_unless_told(monkeypatch, terminal, asked, there):
    assert bool(shown(monkeypatch, terminal, progress=asked)) == there


def test_done_total_calls_tokens_and_failures(monkeypatch):
    last = shown(monkeypatch, terminal=True, progress="auto").replace("\n", "\r").split("\r")[-2]
    assert "5/5" in last
    assert "5/5 samples [" in last
    assert last.endswith(", 0 in flight, 6 judge calls done, 7,404 tokens, 1 unscored]")


@pytest.mark.parametrize(("terminal", "most"), [(True, 90), (False, 90)])
def test_what_is_waited_for_is_named(monkeypatch, terminal, most):
    """Drawn each second on a terminal; elsewhere a line each 30 seconds."""
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    slow = Slow(lambda request: asyncio.sleep(96 if "Q3" in request.user else 0), {"ids": [1]})
    run_on_a_clock(aevaluate(ROWS, [ContextRelevancy(llm=FakeLLM(slow))], progress=True))
    said = screen.getvalue()
    assert f", 1 in flight, oldest {most} s, 4 judge calls done, 0 unscored" in said
    assert not re.search(r"<[^\r]* oldest", said)
    lines = [line for line in said.split("\n") if "samples, " in line]
    assert [line.split(" samples, ")[0] for line in lines] == ([] if terminal else ["4/5"] * 3)


def test_a_narrow_terminal_keeps_what_matters(monkeypatch):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        slow = Slow(lambda request: asyncio.sleep(25 if "Q3" in request.user else 0), {"ids": [1]})
        run_on_a_clock(aevaluate(ROWS, [ContextRelevancy(llm=FakeLLM(slow))], progress=True))
        said = ""
        while "5/5" not in said:
            said += os.read(ours, 10_000).decode()
    os.close(ours)
    assert "\r4/5, 1 in flight, oldest 24 s" in said


def test_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert len(list(evaluate(ROWS, [ContextRelevancy(llm=FakeLLM({"ids": [1]}))]).results())) == 5
