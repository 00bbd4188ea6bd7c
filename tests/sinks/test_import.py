"""Importing the sinks loads no database and no telemetry, and what is missing is named with what installs it."""

import subprocess
import sys
from pathlib import Path

import pytest

import ragstone

HEAVY = ("sqlite3", "sqlalchemy", "psycopg", "opentelemetry")


def run(script: str) -> str:
    environ = {"PYTHONPATH": str(Path(ragstone.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_what_an_import_loads() -> None:
    script = f"import sys, ragstone.sinks; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(script).strip() == "[]"


@pytest.mark.parametrize(
    ("missing", "make", "extra"),
    [
        ("psycopg", "SQLSink('postgresql://me@db.test/rag')", "ragstone[sql]"),
    ],
)
def test_a_missing_package(missing: str, make: str, extra: str) -> None:
    script = f"""
import sys
sys.modules[{missing!r}] = None
from ragstone.sinks import *
try:
    {make}
except ImportError as error:
    print(error)
"""
    assert f'pip install "{extra}"' in run(script)
