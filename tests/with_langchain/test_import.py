"""`import ragstone_langchain` needs langchain-core alone, says so where it is missing, and loads little."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone
import ragstone_langchain

# What is loaded when it is used, not before: slow, or of another package than langchain-core.
LATER = (
    "langsmith",
    "langchain",
    "langchain_classic",
    "langgraph",
    "numpy",
    "langchain_core.language_models",
    "langchain_core.runnables",
    "langchain_core.tracers",
)

HIDE = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""


def run(program: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join({str(Path(package.__file__).parents[1]) for package in (ragstone, ragstone_langchain)})
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, env=kept | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = run("import ragstone_langchain, json, sys, threading; print(json.dumps(list(sys.modules)))")
    assert (done.stderr, done.returncode) == ("", 0)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", LATER)
def test_what_is_loaded_later(loaded: set[str], name: str) -> None:
    assert name not in loaded


def test_without_langchain_core_it_says_what_to_install() -> None:
    done = run(HIDE.format(hidden=["langchain_core"]) + "import ragstone_langchain")
    assert done.stderr.splitlines()[-1] == (
        'ImportError: ragstone_langchain needs langchain-core: pip install "ragstone[langchain]"'
    )


def test_without_langchain_classic_its_form_says_what_to_install() -> None:
    done = run(HIDE.format(hidden=["langchain_classic"]) + "import ragstone_langchain.classic")
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
    assert "pip install langchain-classic" in done.stderr.splitlines()[-1]


def test_core_needs_none_of_it() -> None:
    hidden = ["langchain_core", "langsmith", "langchain", "langgraph"]
    program = "import ragstone; from ragstone import ResponseRelevancy; print(ragstone.__version__)"
    assert run(HIDE.format(hidden=hidden) + program).returncode == 0


def test_it_does_all_with_langchain_core_alone() -> None:
    program = """
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from ragstone import ContextRelevancy
from ragstone_langchain import LangChainLLM, RagEvaluator

evaluator = RagEvaluator(ContextRelevancy(llm=LangChainLLM(FakeListChatModel(responses=['{"ids": [1]}']))))
print(evaluator(inputs="Which?", outputs="This.", context=[Document("This. Not that.")])["score"])
print(evaluator.as_runnable().invoke({"question": "Which?", "answer": "", "context": "This."})["score"])
"""
    done = run(HIDE.format(hidden=["langchain", "langchain_classic", "langgraph"]) + program)
    assert (done.stdout.split(), done.stderr) == (["0.5", "1.0"], "")
