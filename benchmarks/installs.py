"""What a fresh install of ragstone and of its peers takes, and what the first use of one costs then.

    python benchmarks/installs.py FOLDER

It makes an environment for each in FOLDER with uv, installs the newest release (ragstone from this checkout) and prints
a table: distributions, megabytes without compiled Python files, and the least CPU seconds of six first uses: the
imports that a script needs to score something.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "ragstone": "from ragstone import Faithfulness, Sample, evaluate",
    "autoevals": "from autoevals.ragas import Faithfulness",
    "deepeval": "from deepeval import evaluate; from deepeval.metrics import FaithfulnessMetric",
    "openevals": "from openevals.llm import create_llm_as_judge",
    "pydantic-evals": "from pydantic_evals import Case, Dataset; from pydantic_evals.evaluators import LLMJudge",
    "ragas": "from ragas import evaluate; from ragas.metrics import faithfulness",
}
"""The first use of each."""
_FACTS = """
import importlib.metadata as m, pathlib, sys
of = list(m.distributions())
files = {f.locate().resolve() for d in of for f in d.files or ()}
size = sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc")
print(len(of), round(size / 1e6), m.version(sys.argv[1]))
"""
_FIRST_USE = "{0}; import os; print(sum(os.times()[:2]))"


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, *arguments], capture_output=True, text=True, check=False, cwd=python.parent)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    print("| package | version | distributions | MB | first use, CPU seconds |\n|---|---|--:|--:|---|")
    for name, first_use in PACKAGES.items():
        python = folder / name / "bin" / "python"
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, folder / name], check=True)
        source = str(ROOT) if name == "ragstone" else name
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, source], check=True)
        distributions, size, version = run(python, "-c", _FACTS, name).stdout.split()
        tries = [run(python, "-c", _FIRST_USE.format(first_use)) for _ in range(6)]
        failed = next((each.stderr.strip().splitlines()[-1] for each in tries if each.returncode), None)
        took = failed or f"{min(float(each.stdout.split()[-1]) for each in tries):.2f}"
        print(f"| {name} | {version} | {distributions} | {size} | {took} |", flush=True)


if __name__ == "__main__":
    main()
