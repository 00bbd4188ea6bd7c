"""docs/llama_index.md: each use names what is there."""

import ast
import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "llama_index.md"


def blocks():
    if not DOCS.is_file():
        pytest.skip("needs the checkout: docs/llama_index.md")
    return re.findall(r"^```python\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_each_use_imports_what_is_there():
    assert blocks()
    for block in blocks():
        for node in ast.walk(compile(block, str(DOCS), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)):
            if isinstance(node, ast.ImportFrom) and not node.module.startswith("llama_index.llms."):
                module = importlib.import_module(node.module)
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
