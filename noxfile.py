"""The gates. `nox` runs the fast ones, `nox -t full` all, `nox -l` lists them. Each makes an environment of its own."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.tags = ["fast"]
nox.options.report = ".nox/report.json"

ROOT = Path(__file__).resolve().parent
REPORT = ROOT / ".nox" / "report.json"
EXTRAS = "labels,langchain,llama-index,local,openai,otel,sql"
PARALLEL = str(min(4, os.cpu_count() or 1))
PYTEST = ("python", "-m", "pytest", "-n", PARALLEL, "--dist", "worksteal", "--tb", "short")
TYPED = ("core", "integrations", "tests/typing", "noxfile.py", "examples")
EXAMPLES = {  # each folder: its extra, and what else its scripts use
    "with_langchain": ("langchain", "langgraph"),
    "with_llama_index": ("llama-index",),
    "batch": ("openai",),
    "at_scale": ("", "dask[distributed]", "pyspark", "ray[data]"),  # pyspark: apt-get install default-jre-headless
    "live": ("langchain,llama-index", "fastapi", "starlette", "uvicorn"),
}
VENDORS = ("arize-phoenix-client", "langfuse")  # some 100 packages: for their gate alone
REPORT.unlink(missing_ok=True)


@atexit.register
def closing_line() -> None:
    """Print, below all that nox prints, how many gates passed and failed."""
    if REPORT.is_file():
        results = Counter(session["result"] for session in json.loads(REPORT.read_text())["sessions"])
        failed = results.total() - results["success"] - results["skipped"]
        print(f"\n{results['success']} passed, {failed} failed, {results['skipped']} skipped")


def install(session: nox.Session, group: str) -> None:
    """Install ragstone from the sources with its extras, and a group of tools."""
    session.install("--group", group, "--editable", f".[{EXTRAS}]")


def build_wheel(session: nox.Session) -> str:
    """Build the wheel and return its path."""
    folder = Path(session.create_tmp()).resolve() / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    session.run_install("uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), external=True)
    (wheel,) = folder.glob("*.whl")
    return str(wheel)


@nox.session(tags=["fast", "full"])
def lint(session: nox.Session) -> None:
    """Check lint rules, format, and that core imports no framework."""
    session.install("--group", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": os.pathsep.join(("core", "integrations"))})


@nox.session(tags=["fast", "full"])
def types(session: nox.Session) -> None:
    """Check types, by mypy and by pyright, both strict."""
    install(session, "types")
    session.run("mypy", "--num-workers", PARALLEL, *TYPED)
    session.run("pyright", "--threads", PARALLEL, env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})


@nox.session(tags=["fast", "full"])
def wheel(session: nox.Session) -> None:
    """Build the wheel, compare its files with the sources, install it with nothing else, and compute a first score."""
    built = build_wheel(session)
    session.install(built)
    session.run("python", "tests/packaging/wheel_files.py", built)
    session.run("python", "-I", "-W", "error", "tests/packaging/first_score.py")


@nox.session(tags=["fast"])
def tests(session: nox.Session) -> None:
    """Run the tests and doctests but the long ones and those of the embedded judge."""
    install(session, "dev")
    session.run(*PYTEST, *session.posargs)


@nox.session(tags=["full"])
def coverage(session: nox.Session) -> None:
    """Run the tests and doctests, the long ones too, with branch coverage of at least 95 %."""
    install(session, "dev")
    session.run(*PYTEST, "-m", "not model and not browser", "--cov", "--durations=10", *session.posargs)


@nox.session(tags=["full"])
def browser(session: nox.Session) -> None:
    """Run the tests of the pages in Chromium; without it they fail."""
    session.install("--group", "browser", "--editable", ".[labels]")
    session.run("python", "-m", "pytest", "-m", "browser", "--tb", "short", "tests/browser", *session.posargs)


@nox.session(tags=["full"], python=["3.10", "3.11", "3.12", "3.13"])
def pythons(session: nox.Session) -> None:
    """Install the wheel on each Python that is there, compute a first score, and run the core's tests on it."""
    built = build_wheel(session)
    session.install(built)
    session.run("python", "-I", "-W", "error", "tests/packaging/first_score.py")
    session.install(f"{built}[{EXTRAS}]", "--group", "test")
    tested = ("tests/core", "tests/adapters", "tests/packaging", "tests/cli")
    session.run(*PYTEST, "-o", "pythonpath=", *tested, env={"RAGSTONE_TESTED_FROM": "wheel"})


@nox.session(tags=["full"], python="3.10")
@nox.parametrize("release", ["langchain-1.0.0", "llama-index-0.14.0"])
def releases(session: nox.Session, release: str) -> None:
    """Run an integration's tests on an older release of its framework, on the oldest Python."""
    framework = release.rpartition("-")[0]
    session.install("--group", "test", "--group", release, "--editable", f".[{framework},openai]")
    # What these releases are warned of by later ones of other packages is not ours.
    session.run(*PYTEST, "-o", "filterwarnings=default", f"tests/with_{framework.replace('-', '_')}")


@nox.session(tags=["full"])
def vendors(session: nox.Session) -> None:
    """Run the tests of what goes to other products, with their own packages: none of them may be missing."""
    session.install("--group", "test", "--editable", ".[langchain,openai,otel]", *VENDORS)
    tested = ("tests/examples/test_tracing_products.py", "tests/examples/test_langsmith_feedback.py")
    session.run("python", "-m", "pytest", "--tb", "short", *tested)


@nox.session(tags=["full"])
def recipes(session: nox.Session) -> None:
    """Run the programs of examples/recipes with the tools' own packages; promptfoo where npm has installed it."""
    session.install("--group", "test", "--group", "recipes", "--editable", ".[openai]")
    session.run("python", "-m", "pytest", "--tb", "short", "-rs", "tests/recipes", *session.posargs)


PEERS = {
    "deepeval": ["deepeval"],
    "ragas-0.4.3": ["ragas==0.4.3", "langchain-community==0.4.1"],
    "ragas-0.2.15": [
        "ragas==0.2.15", "langchain<0.4", "langchain-core<0.4", "langchain-community<0.4", "langchain-openai<0.4",
    ],
    "ragas-0.1.10": [
        "ragas==0.1.10", "langchain<0.3", "langchain-core<0.3", "langchain-community<0.3", "langchain-openai<0.2",
        "datasets<4", "pyarrow<17", "setuptools<80",
    ],
}  # fmt: skip
"""What each of them needs that pip does not choose by itself today."""


@nox.session(tags=["full"])
@nox.parametrize("peer", list(PEERS))
def parity(session: nox.Session, peer: str) -> None:
    """Compare the scores of `ragstone_compat` with those of the original, on the same samples and the same answers."""
    try:
        session.install(*PEERS[peer], "--editable", ".[openai]")
    except CommandFailed:
        session.skip(f"{peer} cannot be installed")
    session.run("python", f"benchmarks/parity/beside_{peer.partition('-')[0]}.py")


@nox.session(tags=["full"])
@nox.parametrize("folder", list(EXAMPLES))
def examples(session: nox.Session, folder: str) -> None:
    """Run a folder's examples from the built wheel, installed with nothing but what their README names."""
    extra, *others = EXAMPLES[folder]
    session.install(f"{build_wheel(session)}[{extra}]", *others)
    with session.chdir("examples"):
        for script in sorted(Path(folder).glob("*.py")):
            if "__main__" in script.read_text(encoding="utf-8"):  # Ray: nox's own path is too long
                session.run("python", "-m", f"{folder}.{script.stem}", env={"RAY_TMPDIR": tempfile.gettempdir()})


@nox.session(tags=["full"])
def notebook(session: nox.Session) -> None:
    """Run the notebook from the built wheel; the file stays as it is."""
    session.install("--group", "notebook", build_wheel(session))
    session.run("jupyter", "execute", "examples/notebook.ipynb")


@nox.session(tags=["full"])
def docs(session: nox.Session) -> None:
    """Build the site of the pages in docs/ and of the docstrings; a warning is an error."""
    session.install("--group", "docs")
    folder = Path(session.create_tmp()).resolve() / "site"
    session.run("mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder), env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session(tags=["full"])
def release(session: nox.Session) -> None:
    """Build wheel and source distribution, check what an index would show, install each alone and compute a score."""
    folder = Path(session.create_tmp()).resolve() / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    session.run_install("uv", "build", "--quiet", "--out-dir", str(folder), external=True)
    session.install("twine")
    packages = sorted(folder.glob("ragstone-*"))
    session.run("twine", "check", "--strict", *map(str, packages))
    for built in packages:
        session.run_install("uv", "venv", "--quiet", "--clear", str(folder / "env"), external=True)
        python = str(folder / "env" / "bin" / "python")
        session.run_install("uv", "pip", "install", "--quiet", "--python", python, str(built), external=True)
        session.run(python, "-I", "-W", "error", "tests/packaging/first_score.py", external=True)


@nox.session(tags=["full"], venv_backend="none")
def readme(session: nox.Session) -> None:
    """Run README's blocks in order, as pasted, in a clone of the last commit; the scores are as it shows them."""
    clone = Path(session.create_tmp()).resolve() / "clone"
    shutil.rmtree(clone, ignore_errors=True)
    session.run("git", "clone", "--quiet", str(ROOT), str(clone))
    with session.chdir(clone):
        text = (clone / "README.md").read_text(encoding="utf-8")
        pasted = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
        forms = {"bash": "{}", "python": "python - <<'END'\n{}END\n"}
        blocks = [forms[form].replace("{}", block) for form, block in pasted.findall(text)]
        # The last one runs the gates.
        script = "\n".join(blocks[:-1])
        printed = session.run("bash", "-euo", "pipefail", "-c", script, silent=True, env={"PIP_QUIET": "1"})
        (clone / "printed.txt").write_text(str(printed), encoding="utf-8")
        session.run("python3", "tests/docs/readme_scores.py", "README.md", "printed.txt")


@nox.session(tags=["full"])
def judge(session: nox.Session) -> None:
    """Run the tests that ask the embedded judge; `ragstone pull` fetches it."""
    install(session, "test")
    session.run("ragstone", "pull")
    session.run("python", "-m", "pytest", "-m", "model", "--tb", "short", "--durations=5")
