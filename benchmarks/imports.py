"""What a base install weighs and what `import ragstone` costs, beside `import numpy`.

    python benchmarks/imports.py [--json]

Installs the checkout with its base dependencies into a new environment, in a temporary folder. Figures:

distributions    installed, ragstone among them, without pip and setuptools
MB               of site-packages (10^6 bytes, compiled modules included), without pip and setuptools
CPU seconds      user + system, of a whole process that does nothing else; median of 7, taken in turn
threads          running after the import
files            written by the import: into an empty home and working folder, and into the environment
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
ROUNDS = 7
PROGRAMS = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    "import ragstone": "import ragstone",
}


def main() -> None:
    """Measure in a new environment and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory(prefix="ragstone-") as name:
        figures = measure(Path(name))
    if as_json:
        print(json.dumps(figures))
        return
    for key, value in figures.items():
        print(f"{key:32} {value}")


def measure(folder: Path) -> dict[str, float]:
    """Install the checkout's base into `folder` and return the figures."""
    environment = folder / "environment"
    python = str(environment / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", ROOT], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    home = folder / "home"
    home.mkdir()
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    before = {path: path.stat().st_mtime_ns for path in environment.rglob("*")}
    shown = "import ragstone, threading; print(threading.active_count())"
    done = subprocess.run([python, "-c", shown], cwd=home, env=environ, check=True, capture_output=True, text=True)
    after = {path: path.stat().st_mtime_ns for path in environment.rglob("*")}
    figures = {
        "distributions": float(len(list(own(packages, "*.dist-info")))),
        "MB": round(sum(size(path) for path in own(packages, "*")) / 1e6, 1),
        "threads after import ragstone": float(done.stdout),
        "files written by import ragstone": float(
            len(dict(after.items() - before.items())) + len(list(home.iterdir()))
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, program in PROGRAMS.items():
            start = cpu_seconds_of_children()
            subprocess.run([python, "-c", program], cwd=home, env=environ, check=True)
            seconds[name].append(cpu_seconds_of_children() - start)
    figures |= {f"CPU seconds, {name}": round(statistics.median(taken), 3) for name, taken in seconds.items()}
    ratio = statistics.median(seconds["import ragstone"]) / statistics.median(seconds["import numpy"])
    return figures | {"import ragstone / import numpy": round(ratio, 2)}


def own(packages: Path, pattern: str) -> Iterator[Path]:
    """Yield what lies in site-packages but did not come with the environment itself."""
    for path in packages.glob(pattern):
        if path.name.partition("-")[0].partition(".")[0] not in TOOLS and path.name != "distutils-precedence.pth":
            yield path


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else iter([path])
    return sum(file.stat().st_size for file in files if file.is_file())


def cpu_seconds_of_children() -> float:
    """Return the user and system time of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
