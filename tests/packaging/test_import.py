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
    "sqlite3",
    "psycopg",
]
LATER += ["opentelemetry"]
OWN_LATER = [f"ragstone.{name}" for name in ("batch", "cli", "clients", "live", "local", "report", "testing")]

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


def test_little_is_loaded_and_nothing_is_started(imported) -> None:
    assert [name for name in LATER + OWN_LATER if name in imported["modules"]] == []
    assert imported["threads"] == 1


def test_only_modules_are_read_and_nothing_is_written(imported) -> None:
    # Python looks for a .zip of its library; pydantic asks every installed distribution whether it is a plugin.
    modules = (".py", ".pyc", ".so", ".pyd", ".zip", "entry_points.txt")
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    opened = [(path, flags) for event, path, flags in imported["events"] if event == "open"]
    assert [path for path, _ in opened if not path.endswith(modules)] == []
    # Python's own cache of compiled modules
    assert [path for path, flags in opened if flags & writing and "__pycache__" not in path] == []
    assert list(imported["home"].iterdir()) == []


def test_nothing_is_sent_and_nothing_is_run(imported) -> None:
    harmless = ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename")  # the import system and its __pycache__
    assert [event for event, *_ in imported["events"] if event not in harmless] == []
