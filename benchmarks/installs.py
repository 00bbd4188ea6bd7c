"""What a fresh install of ragstone and of its peers takes, and whether `import` works then.

    python benchmarks/installs.py FOLDER

It makes an environment for each in FOLDER with uv, installs the newest release (ragstone from this checkout) and prints
a table: distributions, megabytes without compiled Python files, and the least CPU seconds of six imports.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"ragstone": str(ROOT), "ragas": "ragas", "deepeval": "deepeval", "openevals": "openevals"}
_FACTS = """
import importlib.metadata as m, pathlib, sys
of = list(m.distributions())
files = {f.locate().resolve() for d in of for f in d.files or ()}
size = sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc")
print(len(of), round(size / 1e6), m.version(sys.argv[1]))
"""
_IMPORT = "import os, {0}; print(sum(os.times()[:2]))"


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, *arguments], capture_output=True, text=True, check=False, cwd=python.parent)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    print("| package | version | distributions | MB | import, CPU seconds |\n|---|---|--:|--:|---|")
    for name, source in PACKAGES.items():
        python = folder / name / "bin" / "python"
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, folder / name], check=True)
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, source], check=True)
        distributions, size, version = run(python, "-c", _FACTS, name).stdout.split()
        tries = [run(python, "-c", _IMPORT.format(name)) for _ in range(6)]
        failed = next((each.stderr.strip().splitlines()[-1] for each in tries if each.returncode), None)
        took = failed or f"{min(float(each.stdout.split()[-1]) for each in tries):.2f}"
        print(f"| {name} | {version} | {distributions} | {size} | {took} |", flush=True)


if __name__ == "__main__":
    main()
