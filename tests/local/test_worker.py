import gc
import os
import sys
import threading
import weakref

import pytest

from ragstone.local.worker import Worker


@pytest.fixture
def worker():
    worker = Worker("test")
    yield worker
    worker.stop()


def test_first_in_first_out(worker):
    gate = threading.Event()
    order: list[int] = []
    futures = [worker.submit(gate.wait)]
    futures += [worker.submit(lambda n=n: order.append(n)) for n in range(20)]
    gate.set()
    for future in futures:
        future.result(timeout=10)
    assert order == list(range(20))


def test_an_exception_reaches_the_caller_and_the_next_call_runs(worker):
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        worker.submit(fail).result(10)
    assert worker.submit(lambda: "next").result(10) == "next"


def test_a_cancelled_call_is_not_made(worker):
    gate = threading.Event()
    worker.submit(gate.wait)
    made: list[bool] = []
    future = worker.submit(lambda: made.append(True))
    assert future.cancel()
    gate.set()
    worker.submit(lambda: None).result(10)
    assert made == []


def test_keeps_nothing_of_the_last_call_alive(worker):
    class Big:
        pass

    big = Big()
    gone = weakref.ref(big)
    worker.submit(lambda big=big: big).result(10)
    del big
    worker.submit(lambda: None).result(10)
    gc.collect()
    assert gone() is None


def test_stop_waits_for_what_is_queued_and_a_later_call_starts_again(worker):
    done: list[int] = []
    worker.submit(lambda: done.append(1))
    worker.stop()
    assert done == [1]
    assert worker.submit(lambda: 2).result(10) == 2


@pytest.mark.skipif(not hasattr(os, "fork") or sys.version_info >= (3, 12), reason="forking a threaded test warns")
def test_a_forked_child_is_told(worker):
    worker.submit(lambda: None).result(10)
    child = os.fork()
    if child == 0:
        try:
            worker.submit(lambda: None)
        except RuntimeError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
