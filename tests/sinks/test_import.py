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


def test_public_names() -> None:
    import ragstone.sinks as sinks

    classes = [getattr(sinks, name) for name in sinks.__all__]
    assert sinks.__all__ == [one.__name__ for one in classes]
    assert len(classes) == 8


@pytest.mark.parametrize(
    ("missing", "make", "extra"),
    [
        ("sqlalchemy", "SQLSink('sqlite:///x.db')", "ragstone[sql]"),
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


@pytest.mark.parametrize("version", [None, "1.36.0"])
def test_no_opentelemetry_or_an_old_one(version: str | None) -> None:
    script = f"""
import importlib.metadata
version = {version!r}

def found(name):
    if version is None:
        raise importlib.metadata.PackageNotFoundError(name)
    return version

importlib.metadata.version = found
from ragstone.sinks import OpenTelemetrySink
try:
    OpenTelemetrySink()
except ImportError as error:
    print(error)
"""
    out = run(script)
    assert 'pip install "ragstone[otel]"' in out
    assert str(version or "none") in out
