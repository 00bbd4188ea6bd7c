"""Programs that tests run in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import ragstone

READY = """
def ready():
    print("ready", flush=True)
    sys.stdin.readline()
"""


def start(script: str, *arguments: str) -> subprocess.Popen:
    """Start a script, whose modules are those of this test run; it may import `sys` and then say `ready()`."""
    environ = os.environ | {"PYTHONPATH": str(Path(ragstone.__file__).parents[1])}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *arguments], env=environ, text=True, **streams)


def finish(process: subprocess.Popen) -> str:
    """Wait for its end, which must be a good one, and return what it printed."""
    out, err = process.communicate("\n", timeout=120)
    assert (process.returncode, err) == (0, "")
    return out


def finish_together(processes: Sequence[subprocess.Popen]) -> list[str]:
    """Let processes go on together once all have said `ready()`, and return what each printed."""
    try:
        for process in processes:
            line = process.stdout.readline()
            assert line == "ready\n", process.communicate(timeout=60)
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        return [finish(process) for process in processes]
    finally:
        for process in processes:
            process.kill()  # where it still runs, as another failed
            process.__exit__(None, None, None)  # closes its pipes
