"""What importing costs, and what is said without the extra."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone
import ragstone_llama_index

ROOTS = [str(Path(module.__file__).parents[1]) for module in (ragstone, ragstone_llama_index)]
SCRIPT = """
import importlib.abc, threading
import ragstone, ragstone_llama_index
dir(ragstone_llama_index)
assert "llama_index.core" not in sys.modules
from ragstone_llama_index import *
assert "llama_index.core" in sys.modules
assert threading.active_count() == 1

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "llama_index":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [name for name in sys.modules if name.startswith(("llama_index", "ragstone_llama_index"))]:
    del sys.modules[name]
sys.meta_path.insert(0, Missing())
import ragstone_llama_index
"""


def test_nothing_of_llamaindex_is_loaded_before_a_name_is_used_and_without_it_the_extra_is_named():
    script = f"import sys; sys.path[:0] = {ROOTS!r}\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert (
        'ImportError: ragstone_llama_index needs llama-index-core: pip install "ragstone[llama-index]"' in done.stderr
    )


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
