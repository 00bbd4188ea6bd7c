"""docs/langchain.md shows what works: its Python runs, in order, with a scripted model where it names a provider's."""

import ast
import inspect
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langsmith.schemas import Example

import ragstone
import ragstone_langchain
from ragstone.monitor.counters import SKIP_REASONS
from ragstone_langchain import MonitorHandler, MonitorMiddleware

PAGE = Path(__file__).parents[2] / "docs" / "langchain.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the checkout: docs/langchain.md")


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
def test_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.chdir(tmp_path)  # the monitor's database
    question, answer = "Who wrote Emma?", "Jane Austen did."
    documents = [Document("Jane Austen wrote Emma. It rained.")]
    state = {"question": question, "answer": answer, "context": documents}
    names = {
        "MODEL": chat_model(),
        "EMBEDDINGS": DeterministicFakeEmbedding(size=8),
        "model": chat_model(),
        "retriever": RunnableLambda(lambda _: documents),
        "rag_chain": RunnablePassthrough.assign(answer=lambda _: answer, context=lambda _: documents),
        "app": RunnableLambda(lambda _: state),
        "target": lambda inputs: state,
        "examples": [Example(id=uuid.uuid4(), inputs={"question": question})],
        "vector_store": Store(),
        "Document": Document,
        "question": question,
        "answer": answer,
        "contexts": [document.page_content for document in documents],
        "state": state,
    }
    shown: list[object] = []
    for block in blocks()[1:]:
        code = re.sub(r"init_chat_model\(.*?\)\)", "MODEL)", block)
        code = re.sub(r"init_embeddings\(.*?\)\)", "EMBEDDINGS)", code)
        tree = ast.parse(code)
        last = tree.body[-1]
        exec(compile(tree, "docs/langchain.md", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(ast.unparse(last), names))
    assert names["outcome"].value is not None
    score, _, verdicts = shown[0]
    assert score == 0.5
    assert [verdict["verdict"] for verdict in verdicts] == ["relevant", "irrelevant"]
    assert [len(list(names["results"]))] == [1]


def test_the_first_snippet_runs_after_the_install_line_above_it(tmp_path: Path) -> None:
    """As it stands, in a process of its own, with no package but those that the extra brings, and no network."""
    first, page = blocks()[0], PAGE.read_text(encoding="utf-8")
    assert page.index('pip install "ragstone[langchain]"') < page.index(first)
    modules = {node.module.partition(".")[0] for node in ast.walk(ast.parse(first)) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"ragstone", "ragstone_langchain", "langchain_core"}
    blocked = (
        "import sys; sys.modules.update(dict.fromkeys(['langchain', 'langgraph', 'langchain_openai', 'openai']))\n"
    )
    (tmp_path / "first.py").write_text(blocked + first, encoding="utf-8")
    path = os.pathsep.join({str(Path(package.__file__).parents[1]) for package in (ragstone, ragstone_langchain)})
    done = subprocess.run(
        [sys.executable, "-W", "error", "first.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(r"^# (.*)$", first.rpartition("print(")[2], re.MULTILINE)
    assert done.stdout.strip() == said


def test_each_reason_and_option_is_told() -> None:
    page = PAGE.read_text(encoding="utf-8")
    told = set(
        re.findall(r"^\| `(\w+)` \| ", page.partition("### Skipped")[2].partition("### Options")[0], re.MULTILINE)
    )
    assert told == set(SKIP_REASONS) - {"own_run"}
    for called in (MonitorHandler, MonitorMiddleware):
        for option in list(inspect.signature(called).parameters)[1:]:
            assert f"`{option}" in page or f"{option}=" in page, option


class Store:
    """Stands for a vector store."""

    def similarity_search(self, query):
        return [Document("Jane Austen wrote Emma. It rained.")]


def chat_model():
    """A scripted model that answers both metrics of the page."""
    made = ", ".join(['{"question": "Who wrote Emma?", "noncommittal": false}'] * 3)

    def answer(prompt) -> AIMessage:
        asked_for_questions = "different questions" in str(prompt)
        return AIMessage('{"questions": [' + made + "]}" if asked_for_questions else '{"ids": [1]}')

    return RunnableLambda(answer)
