"""Processes that are killed or end without `close`: nothing is lost, nothing is twice in the results."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.waiting import soon  # noqa: TID252
from .live_app import OUTBOX, RESULTS, app, calls, live, ran, results, rows, undelivered, waiting

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


# Both kills together leave a rest: at most 2 * (n / 5 + BEYOND) answers are given before the second.
@pytest.mark.parametrize("n", [300, pytest.param(5_000, marks=pytest.mark.slow)])
def test_the_next_start_finishes(n):
    interrupted(n, kills=2)
    assert ran(NEXT_START) == (0, "")
    complete(n, kills=2)


@pytest.mark.slow
def test_the_worker_finishes(tmp_path):
    interrupted(300, kills=1)
    (tmp_path / "my_app.py").write_text("from tests.live.live_app import live\nmonitor = live(0.002)\n")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ragstone.cli import main; main()"
    command = [sys.executable, "-c", code, "live", "worker", "--outbox", OUTBOX, "--monitor", "my_app:monitor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    complete(300, kills=1)


def test_killed_between_delivered_and_forgotten():
    """The sink has the outcomes, the outbox does not know yet: they are delivered again, over the first ones."""
    code = """
class Holding(SQLiteSink):
    def write(self, records):
        soon(lambda: undelivered() == 30)
        if not held.in_transaction:
            held.execute("BEGIN IMMEDIATE")
        super().write(records)

held = sqlite3.connect(OUTBOX, isolation_level=None, check_same_thread=False, timeout=PATIENCE)
monitor = live(sinks=Holding(RESULTS))
submit(monitor, range(30))
soon(lambda: len(results()) == 30)
say("kept")
hear()
"""
    with app(code) as process:
        process.hear()
    assert undelivered() == 30
    assert ran(NEXT_START) == (0, "")
    complete(30, kills=0)
    assert rows(RESULTS, "SELECT count(*) FROM outcomes") == [(30,)]


# The judge hangs, so that nothing but what is in the outbox can be scored later.
HANGING = "monitor = live(reply=hangs)\n"


def finish(n):
    """The next start scores all that was left."""
    with live() as monitor:
        assert monitor.flush(put_off=True)
    assert results() == list(range(n))
    assert (waiting(), undelivered()) == ([], 0)


@pytest.mark.parametrize(
    ("ending", "says"),
    [(signal.SIGINT, "and nothing was judged: 100 evaluations and 0 outcomes wait in "), (signal.SIGTERM, "")],
)
def test_the_outbox_has_them_all(ending, says):
    status, errors = ran(HANGING + f"kept(monitor, range(100))\nimport signal; signal.raise_signal({int(ending)})")
    assert status == -ending
    assert says in errors if says else not errors
    assert sorted(waiting()) == sorted(f"s{i}" for i in range(100))
    finish(100)


def test_what_was_not_written_yet_is_written_and_what_was_judged_is_not_judged_again():
    """1,000 samples, most of them submitted in the last moment, and a judge that hangs."""
    code = """
reply = lambda request: {"ids": [1]} if asked(request) < 50 else hangs(request)
monitor = live(reply=reply, workers=2)
submit(monitor, range(60))
soon(lambda: sum(calls().values()) >= 52)
submit(monitor, range(60, 1_000))
"""
    status, errors = ran(code)
    assert (status, "without close(): 950 evaluations and 0 outcomes wait in" in errors) == (0, True)
    assert len(waiting()) + undelivered() >= 950
    finish(1_000)
    assert {n for n, times in calls().items() if times > 1} == {50, 51}
