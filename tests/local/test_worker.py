"""The order in which the calls to the embedded judge run."""

import threading
from concurrent.futures import wait

import pytest

from ragstone.local.engine import Worker


class Busy:
    """A worker that is held up by its first call until the others wait; notes the order in which they run."""

    def __init__(self, first="A: the first", **settings):
        self.worker, self.ran, self.futures = Worker("test", **settings), [], []
        self._free = threading.Event()
        began = threading.Event()
        self.futures.append(self.worker.submit(lambda: (began.set(), self._free.wait(10)), first))
        assert began.wait(10)

    def add(self, *prompts):
        self.futures += [self.worker.submit(lambda p=prompt: self.ran.append(p), prompt) for prompt in prompts]
        return self.futures[-1]

    def free(self):
        self._free.set()

    def order(self):
        self.free()
        wait(self.futures, 10)
        self.worker.stop()
        return self.ran


@pytest.fixture
def busy():
    return Busy()


def test_what_begins_most_like_the_last_prompt_is_next(busy):
    busy.add("B: x", "C: y", "A: y", "B: z", "A: the last", "C: x", "A: x")
    assert busy.order() == ["A: the last", "A: y", "A: x", "B: x", "B: z", "C: y", "C: x"]


def test_no_call_waits_for_ever(busy):
    """Each call that shares the beginning brings another one; the other two are older."""
    done = threading.Event()

    def another(_):
        if len(busy.ran) < 100:
            busy.add("A: more").add_done_callback(another)
        else:
            done.set()

    busy.add("B", "B, too")
    another(None)
    busy.free()
    assert done.wait(10)
    assert [place for place, prompt in enumerate(busy.order()) if prompt.startswith("B")] == [32, 33]


def test_a_call_without_a_prompt_comes_after_those_before_it_and_before_those_after_it(busy):
    busy.add("B", "A: x", "", "A: y", "A: z")
    assert busy.order() == ["A: x", "B", "", "A: y", "A: z"]


def test_what_a_reply_leads_to_is_asked_before_what_shares_less():
    busy = Busy("A: the first", pause=0.5)
    followed = threading.Thread(target=lambda: (busy.futures[0].result(10), busy.add("A: what follows")))
    followed.start()
    busy.add("B")
    busy.free()
    followed.join()
    assert busy.order() == ["A: what follows", "B"]


def test_calls_of_many_threads_all_run_one_at_a_time_and_stopping_loses_none():
    worker, running, ran = Worker("test"), threading.Lock(), []

    def call(name):
        assert running.acquire(blocking=False)
        ran.append(name)
        running.release()

    def ask(n):
        futures = [worker.submit(lambda name=(n, i): call(name), f"{i % 3} {n}") for i in range(25)]
        for future in futures:
            future.result(10)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ran) == [(n, i) for n in range(8) for i in range(25)]
    worker.stop()
    assert worker.submit(lambda: "again").result(10) == "again"
    worker.stop()
