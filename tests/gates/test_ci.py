"""CI runs what README tells a newcomer to run, and the gates cover what pyproject.toml has."""

import importlib.metadata
import re
import zipfile
from pathlib import Path

import pytest

from ..docs.readme_scores import differences  # noqa: TID252
from ..packaging.wheel_files import problems  # noqa: TID252


def test_ci_runs_readmes_test_command(repository: Path) -> None:
    blocks = re.findall(
        r"^```bash\n(.*?)^```$", (repository / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 3, "README.md needs three ```bash blocks: the demo, the embedded judge, then the tests"
    script = (repository / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert script[-1] == blocks[-1].strip()
    assert script[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script


def test_the_gates_install_every_extra(repository: Path) -> None:
    installed = re.search(r'^EXTRAS = "(.*?)"', (repository / "noxfile.py").read_text("utf-8"), re.MULTILINE)
    extras = importlib.metadata.metadata("ragstone").get_all("Provides-Extra") or []
    assert sorted(installed[1].split(",")) == sorted(extras)


def test_every_dependency_is_explained(repository: Path) -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    settings = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [settings["project"]["dependencies"], *settings["project"]["optional-dependencies"].values()]
    groups += [settings["build-system"]["requires"], *(settings["dependency-groups"][name] for name in ("test", "dev"))]
    groups += [settings["dependency-groups"][name] for name in ("browser", "lint", "notebook", "types")]
    names = {re.match(r"[\w-]+", entry)[0] for group in groups for entry in group if isinstance(entry, str)}
    explained = re.findall(r"^\| \[?`([\w-]+)", (repository / "docs/dependencies.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(names - set(explained)) == []


@pytest.mark.parametrize(
    ("row", "difference"),
    [
        ("first_one  0.510     2/2", ""),
        ("first_one  0.700     2/2", "README.md shows first_one 0.7 2/2, the command printed (0.5, '2/2')"),
        ("first_one  0.500     3/3", "README.md shows first_one 0.5 3/3"),
        ("another    0.500     2/2", "README.md shows another 0.5 2/2, the command printed None"),
    ],
)
def test_the_scores_that_readme_shows_are_compared(row: str, difference: str) -> None:
    printed = "+ ragstone\n\nmetric      mean  95 % interval  scored\nfirst_one  0.500  0.1 – 0.9     2/2\nother      -0.100  –   1/2\n"
    result = differences(f"# x\nmetric     mean   scored\n{row}\n", printed)
    assert [text[: len(difference)] for text in result] == ([difference] if difference else [])
    assert differences(printed, "metric      mean  scored\nfirst_one  -     0/2\n") == [
        "the command printed no table of scores"
    ]


class TestWheelFiles:
    """What is in the wheel is compared with what is in the source roots."""

    GOOD = ("ragstone/__init__.py", "ragstone/py.typed", "ragstone-1.dist-info/licenses/LICENSE")

    @pytest.fixture
    def compared(self, tmp_path: Path):
        def compared(*names: str) -> list[str]:
            package = tmp_path / "core" / "ragstone"
            package.mkdir(parents=True)
            for name in ("__init__.py", "py.typed"):
                (package / name).touch()
            with zipfile.ZipFile(tmp_path / "ragstone-1.whl", "w") as archive:
                for name in names:
                    archive.writestr(name, "")
            return problems(tmp_path / "ragstone-1.whl", tmp_path)

        return compared

    @pytest.mark.parametrize("left_out", [None, *GOOD])
    def test_what_is_missing_is_named(self, compared, left_out: str | None) -> None:
        result = compared(*(name for name in self.GOOD if name != left_out))
        assert [problem.partition(":")[0] for problem in result] == ["missing"] * len(result)
        assert bool(result) == (left_out is not None)

    @pytest.mark.parametrize("extra", ["README.md", "ragstone/notes.txt", "tests/a.py"])
    def test_what_is_astray_is_named(self, compared, extra: str) -> None:
        assert compared(*self.GOOD, extra) == [f"astray: {extra}"]
