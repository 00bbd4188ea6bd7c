"""A base install stays small. The figures are those of benchmarks/imports.py, which says what each counts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def figures():
    """The benchmark's figures, of a new environment with nothing but the base dependencies."""
    benchmark = ROOT / "benchmarks" / "imports.py"
    if not benchmark.is_file():
        pytest.skip("needs the checkout: benchmarks/imports.py")
    done = subprocess.run([sys.executable, str(benchmark), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_base_install(figures, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():  # the seconds are for people to read: no test here depends on time
        print("\n" + "\n".join(f"    {name}: {value:g}" for name, value in figures.items()))
    assert figures["distributions"] <= 15
    assert figures["MB"] <= 90
    assert figures["threads after import ragstone"] == 1
    assert figures["files written by import ragstone"] == 0
