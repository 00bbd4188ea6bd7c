"""ragstone's batch runner beside those of ragas and DeepEval: CPU per sample, samples/s, share of the bound.

    python benchmarks/peers/run.py --envs DIR            # writes benchmarks/peers/results.md
    python benchmarks/peers/run.py --envs DIR -n 64 --repeats 1 --out try.md

Makes an environment for each peer in DIR, by pip and once. Runs are in fresh processes, which take turns; of CPU the
median is shown, of samples/s the best, as neighbours on the machine can only slow a run down. No judge is asked over
a network: each is a scripted one in the process, with telemetry off.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import ragstone

HERE = Path(__file__).resolve().parent
PEERS = {
    "ragas": {"ragas": "0.4.3", "langchain-community": "0.4.1"},  # with 0.4.2 ragas cannot be imported
    "deepeval": {"deepeval": "4.3.1"},
}
TITLES = {"ragstone": f"ragstone {ragstone.__version__}", "ragas": "ragas 0.4.3", "deepeval": "DeepEval 4.3.1"}
QUIET = {"RAGAS_DO_NOT_TRACK": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "1", "PYTHONPATH": str(HERE.parent)}

NOTES = """\
- **CPU**: of the process, by an instant judge, through the library's batch call; samples are made before. The other
  columns: a judge that takes {ms:.0f} ms a call and has no limit of its own.
- **Bound**: every slot busy all the time. What a slot is, the library says: ragstone's `max_concurrency` counts judge
  calls, so its bound is slots / (calls x latency); ragas' `max_workers` and DeepEval's `max_concurrent` count samples,
  which may have several calls in flight, so theirs is slots / (rounds x latency). "Most in flight" are judge calls.
- **Judges** are the fastest that each API allows. ragstone's and those of ragas' `evaluate` return JSON text, which is
  parsed; those of ragas' `collections` and DeepEval's return ready objects, with no client and no parsing. ragas'
  ResponseRelevancy gets its three questions from one call, as from a model with `n`. Embedders are instant.
- **Settings**: the defaults of each, and what costs least of what its documentation offers. DeepEval's reason takes a
  call of its own, ragstone's is composed by code and ragas has none. ragstone's journal and DeepEval's cache (on by
  default) keep results on disk as they come. DeepEval with its defaults has {few} samples, as its time grows with the
  square of their number (all of it is written again after each). `collections` metrics have no limit and no bound but
  the number of samples; the second row gives their judge's client one.
- **Samples** are the same for all: a source of 490 characters, a summary or answer of 180, no two alike. The
  metrics are not the same; the calls that each takes for a sample are in the table."""


class Figure(NamedTuple):
    """What the runs of one way come to."""

    way: dict[str, Any]
    cpu_ms: float
    rate: float
    most: float
    calls: float  # of one sample


def environment(envs: Path, name: str) -> Path:
    """Return the Python of a peer's environment, made if it is not there."""
    python = envs / name / "bin" / "python"
    if not python.exists():
        print(f"making {envs / name}", file=sys.stderr)
        venv.create(envs / name, with_pip=True)
        pins = [f"{package}=={version}" for package, version in PEERS[name].items()]
        subprocess.run([python, "-m", "pip", "install", "-q", *pins], check=True)
    for package, version in PEERS[name].items():
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        if found != version:
            raise SystemExit(f"{envs / name}: has {package} {found}, not {version}; remove the folder")
    return python


def ask(python: Path, name: str, *options: str) -> Any:  # noqa: ANN401 - it is JSON
    """Run a library's half in a process, a folder and a home of its own; return what it found."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        done = subprocess.run(
            [python, HERE / f"of_{name}.py", "--out", out, *options],
            cwd=folder,
            env={**os.environ, **QUIET, "HOME": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{name} {' '.join(options)} failed:\n{done.stderr[-2000:]}")
        return json.loads(out.read_text())


def figures(
    pythons: dict[str, Path], n: int, seconds: float, repeats: int, loads: list[float]
) -> Iterator[tuple[str, Figure]]:
    """Yield what each library's ways come to; the runs of all take turns, so that a busy minute hits all."""
    ways = [(name, i, way) for name, python in pythons.items() for i, way in enumerate(ask(python, name))]
    found: list[list[dict[str, float]]] = [[] for _ in ways]
    instant: list[list[float]] = [[] for _ in ways]
    for repeat in range(repeats):
        for place, (name, i, way) in enumerate(ways):
            print(f"{repeat + 1}/{repeats} {name}: {way['metric']}, {way['settings']}", file=sys.stderr)
            options = ("--way", str(i), "-n", str(min(n, way["most_samples"] or n)))
            instant[place].append(ask(pythons[name], name, *options)["cpu_ms"])
            found[place].append(ask(pythons[name], name, *options, "--seconds", str(seconds)))
            loads.append(os.getloadavg()[0])
    for (name, _, way), cpu, runs in zip(ways, instant, found, strict=True):
        best = max(runs, key=lambda run: run["rate"])
        yield name, Figure(way, statistics.median(cpu), best["rate"], best["most"], best["calls"] / best["n"])


def row(name: str, figure: Figure, seconds: float) -> str:
    way, slots = figure.way, figure.way["slots"]
    bound = slots / (way["turns"] * seconds) if slots else None
    cells = [
        f"{TITLES[name]} {way['metric']}",
        way["settings"],
        f"{figure.cpu_ms:.2f}",
        f"{figure.calls:g}",
        f"{figure.rate:.0f}",
        f"{bound:.0f}" if bound else "none",
        f"{figure.rate / bound:.1%}" if bound else "",
        f"{figure.most:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--envs", type=Path, required=True, help="folder for the peers' environments")
    parser.add_argument("-n", type=int, default=1024, help="samples; 1,024 fill 16 and 64 slots evenly")
    parser.add_argument("--seconds", type=float, default=0.05, help="what a call of the slow judge takes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    args = parser.parse_args()
    pythons = {"ragstone": Path(sys.executable)}
    pythons |= {name: environment(args.envs.resolve(), name) for name in PEERS}

    loads: list[float] = []
    found = list(figures(pythons, args.n, args.seconds, args.repeats, loads))
    few = max(figure.way["most_samples"] or 0 for _, figure in found)
    day = datetime.now(timezone.utc).date()
    machine = f"{platform.system()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    lines = [
        "# Batch runners beside each other",
        "",
        f"Written by `benchmarks/peers/run.py` on {day}: {machine};",
        f"{args.n:,} samples, {args.repeats} runs: the median of CPU, the best samples/s. Load average meanwhile:",
        f"{statistics.median(loads):.1f} (median), {max(loads):.1f} (most), of which 1 is our own. "
        "Trust ratios more than figures.",
        "",
        "| | settings | CPU ms per sample | calls per sample | samples/s | bound | share | most in flight |",
        "|---|---|---|---|---|---|---|---|",
        *(row(name, figure, args.seconds) for name, figure in found),
        "",
        NOTES.format(ms=args.seconds * 1000, few=few),
    ]
    args.out.write_text("\n".join(lines) + "\n")
    print(f"wrote {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
