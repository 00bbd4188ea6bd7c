"""Core imports no framework and no integration, and integrations not each other. Each gate is shown to fail.

Together they see every way in, none does alone (`SEEN_BY`).
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone

HERE = Path(__file__).resolve().parent
PYPROJECT = HERE.parents[1] / "pyproject.toml"
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"

AT_THE_TOP = "import langchain_core\n"
IN_A_FUNCTION = "def lazily():\n    from ragstone_langchain import RagEvaluator\n\n    return RagEvaluator\n"
BY_NAME = 'import importlib\n\nimportlib.import_module("langchain_core")\n'
CLEAN = "import json\n"

SEEN_BY = [
    (AT_THE_TOP, {"ruff", "import-linter", "process"}),
    (IN_A_FUNCTION, {"ruff", "import-linter"}),
    (BY_NAME, {"process"}),
    (CLEAN, set()),
]
VIOLATIONS = pytest.mark.parametrize(
    ("violation", "seen_by"), SEEN_BY, ids=["at_the_top", "in_a_function", "by_name", "clean"]
)


def needs(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


def run(*command: str, cwd: Path, path: str | None = None) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}
    environ |= {} if path is None else {"PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def planted(tmp_path: Path, violation: str) -> Path:
    """A copy of core with a module that holds the violation, under the project's own configuration."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(ragstone.__file__).parent, tmp_path / "core" / "ragstone", ignore=skip)
    shutil.copy(PYPROJECT, tmp_path)
    (tmp_path / "core" / "ragstone" / "planted.py").write_text(f'"""Planted."""\n\n{violation}')
    for name in ("langchain_core", "ragstone_langchain", "ragstone_llama_index"):  # as if installed
        package = tmp_path / "installed" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("RagEvaluator = None\n")
    return tmp_path


@needs("ruff")
@VIOLATIONS
def test_ruff(planted: Path, seen_by: set[str]) -> None:
    done = run("-m", "ruff", "check", "--no-cache", "--select=TID251", "core", cwd=planted)
    assert (done.returncode == 1) == ("ruff" in seen_by), done.stdout + done.stderr
    assert ("planted.py" in done.stdout) == ("ruff" in seen_by)


@needs("importlinter")
@VIOLATIONS
def test_import_linter(planted: Path, seen_by: set[str]) -> None:
    path = os.pathsep.join([str(planted / "core"), str(planted / "installed")])
    done = run("-c", LINT_IMPORTS, "--no-cache", cwd=planted, path=path)
    assert (done.returncode == 1) == ("import-linter" in seen_by), done.stdout + done.stderr
    assert ("ragstone.planted ->" in done.stdout) == ("import-linter" in seen_by)


@needs("importlinter")
@pytest.mark.parametrize("violation", [CLEAN])
def test_integrations_do_not_import_each_other(planted: Path) -> None:
    path = os.pathsep.join([str(planted / "core"), str(planted / "installed")])
    assert run("-c", LINT_IMPORTS, "--no-cache", cwd=planted, path=path).returncode == 0
    there = planted / "installed" / "ragstone_langchain" / "planted.py"
    there.write_text("def lazily():\n    import ragstone_llama_index\n")
    done = run("-c", LINT_IMPORTS, "--no-cache", cwd=planted, path=path)
    assert done.returncode == 1
    assert "ragstone_langchain.planted ->" in done.stdout


@needs("importlinter")
@pytest.mark.parametrize("violation", [CLEAN])
def test_a_room_imports_none_above_it(planted: Path) -> None:
    path = os.pathsep.join([str(planted / "core"), str(planted / "installed")])
    (planted / "core" / "ragstone" / "text" / "planted.py").write_text("def lazily():\n    import ragstone.cli\n")
    done = run("-c", LINT_IMPORTS, "--no-cache", cwd=planted, path=path)
    assert done.returncode == 1
    assert "ragstone.text.planted -> ragstone.cli" in done.stdout


@VIOLATIONS
def test_process(planted: Path, seen_by: set[str]) -> None:
    path = os.pathsep.join([str(planted / "core"), str(planted / "installed")])
    done = run(str(HERE / "load_core.py"), cwd=planted, path=path)
    assert done.returncode == 0, done.stderr
    assert bool(done.stdout.split()) == ("process" in seen_by)


def test_a_framework_that_is_not_installed_is_seen_too(tmp_path: Path) -> None:
    package = tmp_path / "ragstone"
    package.mkdir()
    (package / "__init__.py").write_text("try:\n    import llama_index\nexcept ImportError:\n    pass\n")
    assert run(str(HERE / "load_core.py"), cwd=tmp_path, path=str(tmp_path)).stdout.split() == ["llama_index"]


def test_core_as_it_is(tmp_path: Path) -> None:
    path = str(Path(ragstone.__file__).parents[1])
    done = run("-W", "error", str(HERE / "load_core.py"), cwd=tmp_path, path=path)
    assert (done.stdout.split(), done.stderr, done.returncode) == ([], "", 0)


def test_the_gates_forbid_the_same() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    settings = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]
    contract, *_ = settings["importlinter"]["contracts"]
    banned = settings["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    process = run("-c", "from load_core import FORBIDDEN; print(*FORBIDDEN)", cwd=HERE).stdout.split()
    assert set(contract["forbidden_modules"]) == set(banned) == set(process)
