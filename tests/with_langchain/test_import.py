"""ragstone_langchain needs langchain-core alone, says so where it is missing, and loads little."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone
import ragstone_langchain

# What is loaded when it is used, not before: slow, or of another package than langchain-core.
LATER = {
    *("langsmith", "langchain", "langchain_classic", "langgraph", "numpy"),
    *("langchain_core.language_models", "langchain_core.runnables", "langchain_core.tracers"),
}
HIDE = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""
SCORES = """
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from ragstone import ContextRelevancy
from ragstone_langchain import LangChainLLM, RagEvaluator

evaluator = RagEvaluator(ContextRelevancy(llm=LangChainLLM(FakeListChatModel(responses=['{"ids": [1]}']))))
print(evaluator(inputs="Which?", outputs="This.", context=[Document("This. Not that.")])["score"])
print(evaluator.as_runnable().invoke({"question": "Which?", "answer": "", "context": "This."})["score"])
"""


def run(program: str, *hidden: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join({str(Path(package.__file__).parents[1]) for package in (ragstone, ragstone_langchain)})
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}
    command = [sys.executable, "-W", "error", "-c", (HIDE.format(hidden=hidden) if hidden else "") + program]
    return subprocess.run(command, env=kept | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120)


CLAUDE = "from ragstone.judge_names import make_llm; make_llm('langchain:anthropic:claude-1')"
CLAUDE_NEEDS = "langchain:anthropic:claude-1 needs langchain and its provider's package: pip install langchain"


def test_what_is_loaded_later() -> None:
    program = "from ragstone_langchain import MonitorHandler, RagEvaluator; import json, sys, threading\n"
    done = run(program + "print(json.dumps(list(sys.modules)))")
    assert (done.stderr, done.returncode) == ("", 0)
    assert LATER & set(json.loads(done.stdout)) == set()


@pytest.mark.parametrize(
    ("hidden", "program", "said"),
    [
        (
            "langchain_core",
            "from ragstone_langchain import LangChainLLM",
            'ragstone_langchain needs langchain-core: pip install "ragstone[langch',
        ),
        (
            "langchain_classic",
            "import ragstone_langchain.classic",
            "ragstone_langchain.classic needs langchain-classic: pip ",
        ),
        ("langchain langchain_core langchain_anthropic", CLAUDE, CLAUDE_NEEDS),
        ("langchain_anthropic", CLAUDE, "langchain-anthropic"),
    ],
)
def test_where_something_is_missing_it_says_what_to_install(hidden: str, program: str, said: str) -> None:
    raised = run(program, *hidden.split()).stderr.splitlines()[-1]
    assert raised.partition(": ")[0] in ("ImportError", "ModuleNotFoundError")
    assert said in raised.replace("langchain_anthropic", "langchain-anthropic")  # as LangChain 1.0 says it


def test_langchain_core_is_enough() -> None:
    done = run(SCORES, "langchain", "langchain_classic", "langgraph")
    assert (done.stdout.split(), done.stderr) == (["0.5", "1.0"], "")
