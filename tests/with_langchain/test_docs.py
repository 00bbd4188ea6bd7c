"""docs/langchain.md shows what works: its Python runs, in order, with a scripted model where it names a provider's."""

import ast
import re
import uuid
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langsmith.schemas import Example

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
        "question": question,
        "answer": answer,
        "contexts": [document.page_content for document in documents],
        "state": state,
    }
    shown: list[object] = []
    for block in blocks():
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


def chat_model():
    """A scripted model that answers both metrics of the page."""
    made = ", ".join(['{"question": "Who wrote Emma?", "noncommittal": false}'] * 3)

    def answer(prompt) -> AIMessage:
        asked_for_questions = "different questions" in str(prompt)
        return AIMessage('{"questions": [' + made + "]}" if asked_for_questions else '{"ids": [1]}')

    return RunnableLambda(answer)
