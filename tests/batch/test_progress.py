"""The bar: where it is shown and what it says."""

import asyncio
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
from ragstone.batch.pace.gate import Gate
from ragstone.batch.progress import Progress
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
    [(True, "auto", True), (False, "auto", False), (True, False, False), (False, True, True)],
)
def test_on_a_terminal_unless_told(monkeypatch, terminal, asked, there):
    assert bool(shown(monkeypatch, terminal, progress=asked)) == there


def test_done_total_calls_tokens_and_failures(monkeypatch):
    last = shown(monkeypatch, terminal=True, progress="auto").replace("\n", "\r").split("\r")[-2]
    assert "5/5" in last
    assert "samples/s" in last
    assert last.endswith("0 in flight, 7.4k tokens, 1 unscored]")


def test_no_total_where_none_is_known(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen(terminal=True))
    evaluate(iter(ROWS), [ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))])
    assert "%" not in screen.getvalue()
    assert "tokens" not in screen.getvalue().rpartition("\r")[2]  # this judge does not say


def test_calls_in_flight_are_shown_while_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen(terminal=True))

    async def main():
        gate = Gate()
        gate._judges.in_flight = 7
        with Progress(gate, 10):
            while "7 in flight" not in screen.getvalue():
                gate._judges.in_flight = 7
                await asyncio.sleep(0.01)
            gate._judges.in_flight = 8
            while "8 in flight" not in screen.getvalue():  # noqa: ASYNC110 - a screen has no event
                await asyncio.sleep(0.01)
        return asyncio.get_running_loop()

    asyncio.run(main())


@pytest.mark.parametrize("kernel", [True, False])
def test_a_notebook(monkeypatch, kernel):
    shell = types.SimpleNamespace(kernel=object()) if kernel else types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert progress.in_notebook() == kernel


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_no_standard_error(monkeypatch, stderr):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", None if stderr is None else closed)
    assert len(list(evaluate(ROWS, [ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))]).results())) == 5


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999, "999"), (1000, "1k"), (12_345, "12.3k"), (999_999, "1M"), (5_400_000, "5.4M")]
)
def test_tokens_are_short(count, text):
    assert progress._short(count) == text


def test_importing_the_runner_loads_no_tqdm():
    code = "import sys, ragstone.batch.evaluate; print('tqdm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


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
