"""What importing costs, and what is said without the extra."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone
import ragstone_llama_index

ROOTS = [str(Path(module.__file__).parents[1]) for module in (ragstone, ragstone_llama_index)]


def run(script):
    """Run a script in a process of its own, in which ragstone is found where it is here."""
    script = f"import sys; sys.path[:0] = {ROOTS!r}\n{script}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def loaded(script):
    done = run(f"{script}\nimport json; print(json.dumps(list(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ragstone_does_not_load_llamaindex():
    assert [name for name in loaded("import ragstone") if name.startswith("llama_index")] == []


def test_nothing_of_llamaindex_is_loaded_before_a_name_is_used():
    modules = loaded("import ragstone_llama_index; dir(ragstone_llama_index)")
    assert "llama_index.core" not in modules
    assert "llama_index.core" in loaded("from ragstone_llama_index import LlamaIndexLLM")


def test_no_thread_on_import():
    done = run("from ragstone_llama_index import *; import threading; print(threading.active_count())")
    assert (done.stdout.strip(), done.returncode) == ("1", 0), done.stderr


@pytest.mark.parametrize("missing", ["llama_index", "llama_index.core"])
@pytest.mark.parametrize("wanted", ["import ragstone_llama_index", "import ragstone_llama_index.llm"])
def test_without_the_extra_it_says_what_to_install(missing, wanted):
    script = f"""
import importlib.abc
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
{wanted}
"""
    done = run(script)
    assert done.returncode != 0
    assert (
        'ImportError: ragstone_llama_index needs llama-index-core: pip install "ragstone[llama-index]"' in done.stderr
    )


def test_public_names():
    assert set(ragstone_llama_index.__all__) <= set(dir(ragstone_llama_index))
    for name in ragstone_llama_index.__all__:
        assert getattr(ragstone_llama_index, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'Monitor'"):
        ragstone_llama_index.Monitor  # noqa: B018
