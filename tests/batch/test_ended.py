"""Runs that end early by Ctrl-C, once and twice, in processes of their own; then resumed. `kill -9`: test_in_use."""

import json
import re
import signal
import threading
from collections import Counter

import pytest

from ..support import programs  # noqa: TID252 - under importlib mode tests are no package
from ..support.waiting import soon  # noqa: TID252

PROGRAM = """
import asyncio, json, signal, sys, threading, time
from ragstone import ContextRelevancy, Limits, evaluate
from ragstone.clients import OpenAICompatible

url, journal, how = sys.argv[1:]
judge = OpenAICompatible("m", base_url=url, max_concurrency=64, max_retries=0)
rows = [{"question": f"Who wrote book {i}?", "contexts": [f"Ann {i} did. It rains."]} for i in range(40)]

def slow():
    yield from rows
    time.sleep(0.5)  # until the loop waits, with nothing that wakes it
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    sys.stdin.read()

def run():
    source = slow() if "slow" in how else rows
    return evaluate(source, [ContextRelevancy(llm=judge)], journal=journal, limits=Limits(max_concurrency=4))

async def inside():
    return run()

try:
    report = asyncio.run(inside()) if "inside" in how else run()
except KeyboardInterrupt as interrupted:
    print("interrupted", len(list(interrupted.report.results())), flush=True)
    print(interrupted, file=sys.stderr)
    sys.exit(130)
print(json.dumps([result.outcome.value for result in report.results()]))
"""


class Held:
    """A judge that answers the first calls and holds the others until it is told; and the program that asks it."""

    def __init__(self, openai_server, path, free):
        self.free = threading.Semaphore(free)
        self.server = openai_server(self.reply)
        self.path = path
        self.started = []

    def reply(self, body):
        self.free.acquire()
        return json.dumps({"ids": [1]})

    def start(self, how="plain"):
        self.started.append(programs.start(PROGRAM, self.server.url, str(self.path), how))
        return self.started[-1]

    @property
    def asked(self):
        """How often each book was asked about."""
        return Counter(re.search(r"book (\d+)", str(body["messages"]))[1] for body in self.server.bodies)


@pytest.fixture
def held(openai_server, tmp_path):
    made = Held(openai_server, tmp_path / "j.db", free=10)
    yield made
    made.free.release(1_000_000)
    for process in made.started:
        process.kill()
        process.communicate()


RESUME = r"What was judged is in \S+/j.db: make the same call again, and it goes on from there.\n"


@pytest.mark.parametrize(("how", "presses"), [("plain", 1), ("inside", 1), ("inside", 2)])
def test_ctrl_c_finishes_what_is_in_flight_and_a_second_one_does_not(held, how, presses):
    process = held.start(how)
    soon(lambda: len(held.server.bodies) >= 14)
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "Finishing 4 judge calls in flight; Ctrl-C again stops at once.\n"
    if presses == 2:
        process.send_signal(signal.SIGINT)
        process.wait()
    held.free.release(1_000_000)
    out, errors = process.communicate()
    assert (process.returncode, out.split()[0]) == (130, "interrupted")
    reported = int(out.split()[1])  # stopped at once: rows in order, as far as none of them is in flight
    assert reported == 14 if presses == 1 else 7 <= reported <= 10
    assert re.fullmatch(RESUME, errors)
    assert sum(held.asked.values()) == 14
    assert json.loads(programs.finish(held.start())) == [0.5] * 40
    lost = 4 * (presses - 1)  # what was in flight, and no more
    assert (len(held.asked), sum(held.asked.values())) == (40, 40 + lost)


@pytest.mark.parametrize("how", ["slow", "slow inside"])
def test_a_signal_that_does_not_wake_the_thread_that_is_to_hear_of_it(held, how):
    """As one that comes just before it goes to wait; the source waits, too."""
    held.free.release(1_000)
    assert held.start(how).wait() == 130
