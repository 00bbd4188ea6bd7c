"""Processes that are killed in the middle: nothing is lost, nothing is twice in the results."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.waiting import soon  # noqa: TID252
from .live_app import OUTBOX, RESULTS, app, calls, ran, results, rows, undelivered, waiting

# Between the judge's answer and the outbox's knowing of it lie the workers and the outbox's next transaction, which a
# busy disk may hold up: so many answers a judge gives beyond the results that a kill waits for, and then it hangs.
BEYOND = 50
WORKERS = 4
ROOT = Path(__file__).parents[2]
NEXT_START = "with live(0.002) as monitor: say(monitor.flush().done)"
pytestmark = pytest.mark.usefixtures("own_folder")


def interrupted(n, kills):
    """Start an app that has n samples in the outbox and kill it once it has some results; start again, kill again."""
    chance = random.Random(n)
    for kill in range(kills):
        more = chance.randrange(1, n // 5)
        start = f"monitor = live(0.003, answers={more + BEYOND}); "
        keep = f"monitor.pause(); kept(monitor, range({n})); monitor.resume(); " if not kill else ""
        with app(start + keep + "monitor.flush()") as process:
            before = len(results())
            soon(lambda goal=before + more: len(results()) >= goal or process.poll() is not None)
    assert len(results()) < n
    assert len(waiting()) + undelivered() > 0


def complete(n, kills):
    assert results() == list(range(n))  # none lost; the primary key would not let one be there twice
    assert (waiting(), undelivered()) == ([], 0)
    asked = calls()
    assert set(asked) == set(range(n))
    assert sum(asked.values()) - n <= kills * (BEYOND + WORKERS), "more was judged again than what was in hand"


@pytest.mark.parametrize("n", [300, pytest.param(5_000, marks=pytest.mark.slow)])
def test_the_next_start_finishes(n):
    interrupted(n, kills=2)
    assert ran(NEXT_START) == (0, "")
    complete(n, kills=2)


@pytest.mark.slow
def test_the_worker_finishes(tmp_path):
    interrupted(300, kills=1)
    (tmp_path / "my_app.py").write_text("from tests.monitor.live_app import live\nmonitor = live(0.002)\n")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ragstone.cli import main; main()"
    command = [sys.executable, "-c", code, "worker", "--outbox", OUTBOX, "--monitor", "my_app:monitor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    complete(300, kills=1)


def test_killed_between_delivered_and_forgotten():
    """The sink has the outcomes, the outbox does not know yet: they are delivered again, over the first ones."""
    code = """
from ragstone.monitor.outbox_pipeline import OutboxPipeline
OutboxPipeline.delivered = lambda self, rows: None
monitor = live()
submit(monitor, range(100))
soon(lambda: len(results()) == 100)
soon(lambda: not waiting())
say("kept")
hear()
"""
    with app(code) as process:
        process.hear()
    assert undelivered() == 100
    assert ran(NEXT_START) == (0, "")
    complete(100, kills=0)
    assert rows(RESULTS, "SELECT count(*) FROM outcomes") == [(100,)]
