"""Runs that end early, in processes of their own: Ctrl-C once and twice; then resumed. test_claims has `kill -9`."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest

PROGRAM = """
import asyncio, json, signal, sys, threading, time
from ragstone import ContextRelevancy
from ragstone.batch.evaluate import aevaluate, evaluate
from ragstone.clients import OpenAICompatible

settings = json.loads(sys.argv[1])
judge = OpenAICompatible("m", base_url=settings["url"], max_concurrency=64, max_retries=0)
rows = [{"question": f"Who wrote book {i}?", "contexts": [f"Ann {i} did. It rains."]} for i in range(settings["rows"])]

def slow():
    yield from rows
    print("waiting", flush=True)
    if settings.get("unseen"):
        time.sleep(0.5)  # until the loop waits, with nothing that wakes it
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    sys.stdin.read()

def run():
    source = slow() if "slow" in settings["how"] else rows
    return evaluate(source, [ContextRelevancy(llm=judge)], journal=settings["journal"], max_concurrency=4)

async def inside():
    return run()

try:
    report = asyncio.run(inside()) if "inside" in settings["how"] else run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
print(json.dumps([[each.row, each.outcome.value] for each in report.results()]))
"""


class Held:
    """A judge that answers the first calls and holds the others until it is told."""

    def __init__(self, openai_server, free):
        self.free = threading.Semaphore(free)
        self.server = openai_server(self.reply)

    def reply(self, body):
        self.free.acquire()
        return json.dumps({"ids": [1]})

    def go(self):
        self.free.release(1_000_000)

    @property
    def asked(self):
        """How often each book was asked about."""
        return Counter(re.search(r"book (\d+)", str(body["messages"]))[1] for body in self.server.bodies)

    def wait_for(self, calls, process):
        while len(self.server.bodies) < calls:
            assert process.poll() is None


@pytest.fixture
def start(tmp_path):
    """Starts the program: `start(server, rows=..., how=...)`; kills it after the test."""
    started = []

    def begin(server, how="plain", rows=40, **settings):
        given = {"url": server.url, "rows": rows, "how": how, "journal": str(tmp_path / "j.db"), **settings}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(given)], text=True, **pipes))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def finished(process):
    out, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    return json.loads(out)


WHOLE = [[i, 0.5] for i in range(40)]
RESUME = r"Interrupted. What was judged is in \S+/j.db: make the same call again, and it goes on from there.\n"


@pytest.mark.parametrize("how", ["plain", "inside"])
def test_ctrl_c_finishes_what_is_in_flight_and_nothing_is_asked_twice(openai_server, start, how):
    judge = Held(openai_server, free=10)
    process = start(judge.server, how)
    judge.wait_for(14, process)
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "Finishing 4 judge call(s) in flight; Ctrl-C again stops at once.\n"
    judge.go()
    out, errors = process.communicate()
    assert (process.returncode, out) == (130, "interrupted\n")
    assert re.fullmatch(RESUME, errors)
    assert sum(judge.asked.values()) == 14
    assert finished(start(judge.server)) == WHOLE
    assert set(judge.asked.values()) == {1}


def test_a_second_ctrl_c_waits_for_nothing(openai_server, start):
    judge = Held(openai_server, free=10)
    process = start(judge.server, "inside")
    judge.wait_for(14, process)
    process.send_signal(signal.SIGINT)
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate()
    assert (process.returncode, out) == (130, "interrupted\n")
    assert re.fullmatch(RESUME, errors)
    judge.go()
    assert finished(start(judge.server)) == WHOLE
    assert sum(judge.asked.values()) == 40 + 4  # what was in flight, and no more


@pytest.mark.parametrize("how", ["slow", "slow inside"])
def test_a_signal_that_does_not_wake_the_thread_that_is_to_hear_of_it(openai_server, start, how):
    """As one that comes just before it goes to wait."""
    process = start(Held(openai_server, free=1000).server, how, rows=5, unseen=True)
    assert process.wait() == 130
