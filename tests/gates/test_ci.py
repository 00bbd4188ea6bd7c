"""CI runs what newcomers are told to run, and what is named once more elsewhere is the same there."""

import importlib.metadata
import re
from pathlib import Path


def told(repository: Path, name: str) -> str:
    return (repository / name).read_text(encoding="utf-8")


def test_ci_runs_the_command_of_readme_and_contributing(repository: Path) -> None:
    script = told(repository, ".ci/run").splitlines()
    assert "set -euo pipefail" in script
    for page in ("README.md", "CONTRIBUTING.md"):
        assert f"```bash\n{script[-1]}\n```" in told(repository, page)


def test_the_gates_install_every_extra(repository: Path) -> None:
    installed = re.search(r'^EXTRAS = "(.*?)"', told(repository, "noxfile.py"), re.MULTILINE)
    extras = importlib.metadata.metadata("ragstone").get_all("Provides-Extra") or []
    assert sorted(installed[1].split(",")) == sorted(extras)


def test_each_python_of_the_classifiers_is_tested_and_no_other(repository: Path) -> None:
    pythons = re.findall(r"Python :: (3\.\d+)", told(repository, "pyproject.toml"))
    (by_ci,) = re.findall(r"python: \[(.*)\]", told(repository, ".github/workflows/gates.yml"))
    (by_nox,) = re.findall(r"python=\[(.*)\]", told(repository, "noxfile.py"))
    assert by_ci == by_nox == ", ".join(f'"{each}"' for each in pythons)


def test_each_gate_that_is_named_is_there(repository: Path) -> None:
    sessions = re.findall(r"^@nox\.session.*\n(?:@.*\n)*def (\w+)", told(repository, "noxfile.py"), re.MULTILINE)
    files = ("README.md", "CONTRIBUTING.md", "AGENTS.md", ".github/workflows/publish.yml")
    named = [
        name
        for file in files
        for found in re.findall(r"nox -s ([\w .-]+)", told(repository, file))
        for name in found.split()
    ]
    assert {"lint", "release"} <= set(named)
    assert {name.partition("-")[0] for name in named} <= set(sessions)
