"""docs/langchain.md: its first snippet runs as it stands, and it names every reason and option."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone
import ragstone_langchain
from ragstone.live.counters import SKIP_REASONS
from ragstone_langchain import MonitorHandler, MonitorMiddleware

PAGE = Path(__file__).parents[2] / "docs" / "langchain.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the checkout: docs/langchain.md")


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_first_snippet_runs_after_the_install_line_above_it(tmp_path: Path) -> None:
    """As it stands, in a process of its own, with no package but those that the extra brings, and no network."""
    first, page = blocks()[0], PAGE.read_text(encoding="utf-8")
    assert page.index('pip install ".[langchain]"') < page.index(first)
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
