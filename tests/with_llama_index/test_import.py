"""What importing costs, and what is said without the extra."""

import subprocess
import sys
from pathlib import Path

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
from ragstone_llama_index import LlamaIndexLLM
"""


def test_nothing_of_llamaindex_is_loaded_before_a_name_is_used_and_without_it_the_extra_is_named():
    script = f"import sys; sys.path[:0] = {ROOTS!r}\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert (
        'ImportError: ragstone_llama_index needs llama-index-core: pip install "ragstone[llama-index]"' in done.stderr
    )
