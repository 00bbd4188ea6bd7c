"""Every Python block of README and docs/ runs as pasted, in order, beside an app's `chain` and a file rows.jsonl.

A block behind `<!-- not run: REASON -->` asks a service that no test has. A server on loopback is the judge; the pages of
the frameworks need neither key nor server.
"""

import ast
import asyncio
import inspect
import json
import re
import warnings
from pathlib import Path

import pytest

from ragstone import Monitor

from ..support.judges import served  # noqa: TID252
from ..support.openai_server import OpenAIServer  # noqa: TID252
from .test_pages import PAGES, ROOT

AS_PASTED = [ROOT / "docs" / f"{name}.md" for name in ("langchain", "llama_index", "fields")]
STATED = re.compile(r"^.*\bp(?:rint|review)\(.*\)\n((?:# .*\n)+)", re.MULTILINE)  # what a block says that it prints
BLOCK = re.compile(r"(?:<!-- not run: ([^>]+) -->\n\n?)?^( *)```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

pytestmark = [
    pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the checkout: docs/"),
    pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta", "ignore::DeprecationWarning"),
]


@pytest.fixture
def uninstrumented():
    """Nothing of an app that is instrumented stays so."""
    # Else LlamaIndex makes an event loop that nobody closes.
    asyncio.set_event_loop(None)
    yield
    pytest.importorskip("ragstone_llama_index").uninstrument()


@pytest.fixture
def app(tmp_path, monkeypatch, uninstrumented):
    pytest.importorskip("langchain_core")
    from langchain_core.runnables import RunnableLambda

    monkeypatch.chdir(tmp_path)
    question = "Who wrote Emma?"
    row = {"id": "1", "user_input": question, "retrieved_contexts": ["Emma is by Jane Austen."], "response": "She did."}
    Path("rows.jsonl").write_text(json.dumps({**row, "metadata": {"document": "emma.txt"}}))
    with OpenAIServer(served, models=["gpt-5-mini"]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        names = {"chain": RunnableLambda(lambda question: "Jane Austen did.")}
        yield names
        for each in names.values():
            if isinstance(each, Monitor):
                each.close(5)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in AS_PASTED], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_block_runs(page, app):
    # As pasted; test_how_good.py has that one.
    if page == ROOT / "README.md" or (page.parent.name == "tutorials" and page.stem != "how-good"):
        app = {"__name__": "__main__"}
    for number, (reason, indent, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
        if reason:
            continue
        code = re.sub(f"^{indent}", "", code, flags=re.MULTILINE).replace("/var/lib/rag/", "")
        code = re.sub(r'(llm|judge) ?= ?"local"', r'\1="openai:gpt-5-mini"', code)  # that server is the test's
        try:
            compiled = compile(code, f"{page.name}, block {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                result = eval(compiled, app)
                if inspect.isawaitable(result):
                    asyncio.run(asyncio.wait_for(result, 60))
        except BaseException as error:
            raise AssertionError(f"{page.name}, block {number}: {type(error).__name__}: {error}\n{code}") from error


@pytest.mark.parametrize("page", AS_PASTED, ids=lambda page: page.stem)
def test_every_block_runs_as_pasted_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys, uninstrumented):
    for package in ("fastapi", "langchain", "langchain_classic", "llama_index.core"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "120")  # a preview is as wide as the terminal
    names = {"__name__": "__main__"}
    for number, (reason, _, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
        if reason:
            continue
        before = set(names)
        try:
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)
            printed = capsys.readouterr().out
            for test in [name for name in names if name.startswith("test_") and name not in before]:
                names[test]()  # as pytest does
            capsys.readouterr()
        except BaseException as error:
            raise AssertionError(f"{page.name}, block {number}: {type(error).__name__}: {error}\n{code}") from error
        several = STATED.findall(code)
        assert several or not printed, f"block {number} does not say that it prints:\n{printed}"
        for stated in several:
            assert re.sub("^# ", "", stated, flags=re.MULTILINE) in printed, f"block {number} prints:\n{printed}"
