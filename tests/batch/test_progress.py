"""The bar: where it is shown and what it says."""

import io
import sys

import pytest

from ragstone import ContextRelevancy, LLMReply
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
    assert "5/5 samples [" in last
    assert last.endswith("0 in flight, 7,404 tokens, 1 unscored]")


def test_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert len(list(evaluate(ROWS, [ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))]).results())) == 5
