"""Core imports no framework, no integration and no wing; each gate is shown to fail on modules that are planted."""

import ast
import graphlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone

CORE = Path(ragstone.__file__).parent
PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"

FORBIDDEN = re.compile("ragstone|lang(chain|graph|smith)|llama_index")
INTEGRATIONS = ("ragstone_compat", "ragstone_langchain", "ragstone_llama_index")

PLANTED = {
    "core/ragstone/at_the_top.py": "import langchain_core\n",
    "core/ragstone/in_a_function.py": "def lazily():\n    from ragstone_langchain import RagEvaluator\n",
    "core/ragstone/text/upward.py": "def lazily():\n    import ragstone.cli\n",
    "core/ragstone/batch/to_a_wing.py": "def lazily():\n    import ragstone.live\n",
    "core/ragstone/local/to_a_wing.py": "import ragstone.live\n",
    "installed/ragstone_langchain/across.py": "def lazily():\n    import ragstone_llama_index\n",
}


def run(*command: str, cwd: Path, path: str) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}
    environ["PYTHONPATH"] = path
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of core under the project's own configuration, with frameworks as if installed."""
    shutil.copytree(CORE, tmp_path / "core" / "ragstone", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PYPROJECT, tmp_path)
    for name in ("langchain_core", "ragstone_compat", "ragstone_langchain", "ragstone_llama_index"):
        package = tmp_path / "installed" / name
        package.mkdir(parents=True)
        for module in ("__init__", "classic", "evaluator", "query_engine", "run_evaluator"):
            (package / f"{module}.py").write_text("RagEvaluator = None\n")
    return tmp_path


def test_the_gates_name_what_is_planted(copied: Path) -> None:
    pytest.importorskip("importlinter")
    path = os.pathsep.join([str(copied / "core"), str(copied / "installed")])
    for name, text in PLANTED.items():
        (copied / name).write_text(text)
    done = run("-c", LINT_IMPORTS, "--no-cache", cwd=copied, path=path)
    assert done.returncode == 1
    for name in PLANTED:
        module = name.partition("/")[2].removesuffix(".py").replace("/", ".")
        assert f"{module} ->" in done.stdout
    if importlib.util.find_spec("ruff") is not None:
        done = run("-m", "ruff", "check", "--no-cache", "--select=TID251", "core", cwd=copied, path=path)
        assert all(f"{name}.py" in done.stdout for name in ("at_the_top", "in_a_function"))


def test_nothing_forbidden_is_imported_by_name() -> None:
    found = []
    for file in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
                found += [text for text in map(ast.unparse, node.args) if FORBIDDEN.search(text)]
    assert found == []


def test_no_circle_of_files() -> None:
    grimp = pytest.importorskip("grimp")
    packages = ["ragstone", *(name for name in INTEGRATIONS if importlib.util.find_spec(name))]
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=False, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    for package in imported.keys() - {"ragstone"}:  # what a package's __init__ re-exports
        imported[package] = {each for each in imported[package] if not each.startswith(f"{package}.")}
    graphlib.TopologicalSorter(imported).prepare()  # raises where there is a circle


def test_the_gates_forbid_the_same() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    settings = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]
    contract, *_ = settings["importlinter"]["contracts"]
    banned = settings["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(contract["forbidden_modules"]) == set(banned)
    assert all(map(FORBIDDEN.search, banned))
