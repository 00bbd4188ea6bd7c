"""Ten common jobs in ragstone and in six peers: statements of a script, time to the first score, size of the install.

    python benchmarks/jobs FOLDER

It makes an environment for each library in FOLDER with uv, the newest releases (of ragas with the langchain-community
with which it can be imported; ragstone from this checkout), and runs each script there against a server on loopback.
It prints the tables of docs/ten-jobs.md; a star stands where the script failed. What is measured is not measured again.

A script is a whole program: imports and set-up count, the app that it scores (`app/`) does not. The time to the first
score is that of `one_answer.py` as a new process, the median of five.
"""

import ast
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from server import StubServer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
JOBS = {
    "one_answer": "score one answer",
    "file": "score a file",
    "data_frame": "score a DataFrame",
    "langchain_chain": "score a LangChain chain",
    "llama_index_engine": "score a LlamaIndex query engine",
    "yes_no_criterion": "a yes/no criterion of your own",
    "pytest_assertion": "an assertion in pytest",
    "compare_two_systems": "compare two systems",
    "local_judge": "a local server as the judge",
    "live_traffic": "score live traffic",
}
NEEDED = {  # what a script needs to score one answer
    "ragstone": [f"{ROOT}[openai]"],
    "ragas": ["ragas", "langchain-community==0.4.1"],
    "deepeval": ["deepeval"],
    "openevals": ["openevals", "langchain-openai"],
    "autoevals": ["autoevals", "openai"],
    "pydantic_evals": ["pydantic-evals", "pydantic-ai-slim[openai]"],
    "mlflow": ["mlflow"],
}
APP = ("data", "chain_app", "engine_app")
APPS = ["langchain-core", "llama-index-core", "pandas", "pytest"]
FACTS = """
import importlib.metadata as m, sys
of = list(m.distributions())
files = {f.locate().resolve() for d in of for f in d.files or ()}
size = sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc")
print(m.version(sys.argv[1]), len(of), round(size / 1e6))
"""


def installed(library: str, folder: Path) -> list[str]:
    """Make an environment; return the version, the number of distributions and their megabytes."""
    python = folder / library / "bin" / "python"
    subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder / library], check=True)
    install = ["uv", "pip", "install", "--quiet", "--python", python]
    subprocess.run([*install, *NEEDED[library]], check=True)
    command = [python, "-c", FACTS, library.replace("_", "-")]
    facts = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    own = [f"{ROOT}[langchain,llama-index]"] if library == "ragstone" else []
    subprocess.run([*install, *APPS, *own], check=True)
    return facts


def statements(script: Path) -> int:
    """Count a script's statements, without imports of the app that it scores."""
    nodes = [node for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.stmt)]
    return sum(
        not (isinstance(node, ast.ImportFrom) and (node.module or "").endswith(("data", "_app"))) for node in nodes
    )


def run(python: Path, script: Path, url: str, folder: Path) -> tuple[float, str]:
    """Return the seconds that a script takes, and why it failed, if it did."""
    rows = [{"user_input": "Who wrote Emma?", "retrieved_contexts": ["Jane did."], "response": "Jane."}] * 2
    (folder / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "answers.json").write_text(json.dumps(rows))
    environment = os.environ | {
        "OPENAI_BASE_URL": url, "OPENAI_API_BASE": url, "OPENAI_API_KEY": "a key", "PYTHONPATH": str(HERE / "app"),
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true", "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
    }  # fmt: skip
    command = [python, *(["-m", "pytest", "-q", "-c", os.devnull] if script.name.startswith("pytest") else []), script]
    start = time.perf_counter()
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=180, check=False
    )
    said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
    return time.perf_counter() - start, said if done.returncode else ""


def measured(library: str, folder: Path, url: str) -> tuple[dict[str, str], str]:
    """Return the statements by job, and the row of the second table; kept in the folder for the next run."""
    kept, python = folder / f"{library}.json", folder / library / "bin" / "python"
    if not kept.exists():
        version, distributions, megabytes = installed(library, folder)
        cells: dict[str, str] = {}
        for job in JOBS:
            script = HERE / library / f"{job}.py"
            if script.exists():
                _, failed = run(python, script, url, folder)
                cells[job] = f"{statements(script)}{'*' * bool(failed)}"
                if failed:
                    print(f"{library}/{job}: {failed}", file=sys.stderr)
        seconds = [run(python, HERE / library / "one_answer.py", url, folder)[0] for _ in range(5)]
        row = f"| {library} {version} | {statistics.median(seconds):.1f} | {distributions} | {megabytes} |"
        kept.write_text(json.dumps([cells, row]))
    cells, row = json.loads(kept.read_text())
    return cells, row


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with StubServer() as server:
        found = [measured(library, folder, server.url) for library in NEEDED]
    print(f"| job | {' | '.join(NEEDED)} |\n|---|{'--:|' * len(NEEDED)}")
    for job, words in JOBS.items():
        print(f"| {words} | {' | '.join(cells.get(job, 'none') for cells, _ in found)} |")
    print("\n| library | first score, seconds | packages | MB |\n|---|--:|--:|--:|")
    print("\n".join(row for _, row in found))


if __name__ == "__main__":
    main()
