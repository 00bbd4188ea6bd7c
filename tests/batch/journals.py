"""What tests of the journal share: outcomes, and programs that run in processes of their own."""

import subprocess
import textwrap
from pathlib import Path

from ragstone import Score, Unscored

from ..support import programs  # noqa: TID252 - under importlib mode tests are no package
from ..support.programs import READY, finish  # noqa: TID252

COMMON = """
import os, sys, threading, time
from ragstone import LLMReply, Score, Unscored
from ragstone.batch.journal import Journal
from ragstone.errors import JournalError

path, number = sys.argv[1], int(sys.argv[2])

def score(text):
    return Score(metric="demo", value=0.5, reason=text, version="1")
"""


def score(text="x", value=0.5):
    return Score(metric="demo", value=value, reason=text, version="1")


def unscored(reason="timeout", detail="after 30 s"):
    return Unscored(metric="demo", reason=reason, detail=detail, version="1")


def start(script: str, path: Path, number: int = 0) -> subprocess.Popen:
    """Start a script with the journal's path as `path` and its number as `number`."""
    return programs.start(COMMON + READY + textwrap.dedent(script), str(path), str(number))


def run_alone(script: str, path: Path) -> str:
    """Run a script to its end and return what it printed."""
    return finish(start(script, path))
