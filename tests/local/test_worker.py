"""The thread in which the calls to the embedded judge run."""

import threading

import pytest

from ragstone.local.engine import Worker


def test_calls_of_many_threads_all_run_one_at_a_time_and_stopping_loses_none():
    worker, running, ran = Worker("test"), threading.Lock(), []

    def call(name):
        assert running.acquire(blocking=False)
        ran.append(name)
        running.release()

    def ask(n):
        futures = [worker.submit(lambda name=(n, i): call(name)) for i in range(25)]
        for future in futures:
            future.result(10)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ran) == [(n, i) for n in range(8) for i in range(25)]
    assert [i for n, i in ran if n == 0] == list(range(25))
    worker.stop()
    failing = worker.submit(lambda: [][0])
    assert worker.submit(lambda: "again").result(10) == "again"
    with pytest.raises(IndexError):
        failing.result()
    worker.stop()
