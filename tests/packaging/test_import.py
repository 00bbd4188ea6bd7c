"""`import ragstone` loads little, starts nothing, reads and writes nothing, and sends nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone

# Loaded when first used, not on import: they are slow, optional, or only the command's.
LATER = [
    "numpy",
    "pydantic",
    "pysbd",
    "openai",
    "xllamacpp",
    "onnxruntime",
    "tokenizers",
    "huggingface_hub",
    "click",
    "tqdm",
]
LATER += ["sqlite3", "psycopg", "opentelemetry"]
OWN_LATER = ["ragstone.batch", "ragstone.cli", "ragstone.clients", "ragstone.local", "ragstone.testing"]
OWN_LATER += ["ragstone.live", "ragstone.report", "ragstone.live"]

WATCHED_IMPORT = """
import json, sys, threading

events = []

def watch(event, arguments):
    if event == "open":
        events.append([event, str(arguments[0]), arguments[2]])
    elif event.partition(".")[0] in ("socket", "subprocess", "os", "shutil", "tempfile", "sqlite3", "urllib"):
        events.append([event, str(arguments[0]) if arguments else "", 0])

sys.addaudithook(watch)
import ragstone
print(json.dumps({"events": events, "modules": list(sys.modules), "threads": threading.active_count()}))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory):
    """What an import does in a process of its own, with an empty folder as home and as working folder."""
    home = tmp_path_factory.mktemp("home")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_", "XDG_"))}
    environ = kept | {"HOME": str(home), "PYTHONPATH": str(Path(ragstone.__file__).parents[1])}
    command = [sys.executable, "-W", "error", "-c", WATCHED_IMPORT]
    done = subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    return json.loads(done.stdout) | {"home": home}


def test_what_is_loaded_later(imported) -> None:
    assert [name for name in LATER + OWN_LATER if name in imported["modules"]] == []


def test_no_thread_is_started(imported) -> None:
    assert imported["threads"] == 1


def test_only_modules_are_read(imported) -> None:
    # Python looks for a .zip of its library; pydantic asks every installed distribution whether it is a plugin.
    modules = (".py", ".pyc", ".so", ".pyd", ".zip", "entry_points.txt")
    read = [path for event, path, _ in imported["events"] if event == "open"]
    assert [path for path in read if not path.endswith(modules)] == []


def test_nothing_is_written(imported) -> None:
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    opened = [path for event, path, flags in imported["events"] if event == "open" and flags & writing]
    assert [path for path in opened if "__pycache__" not in path] == []  # Python's own cache of compiled modules
    assert list(imported["home"].iterdir()) == []


def test_nothing_is_sent_and_nothing_is_run(imported) -> None:
    harmless = ("os.listdir", "os.scandir", "os.mkdir", "os.rename")  # the import system and its __pycache__
    rest = [event for event, *_ in imported["events"] if event != "open"]
    assert [event for event in rest if event not in harmless] == []
