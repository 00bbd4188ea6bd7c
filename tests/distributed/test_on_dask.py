"""A Dask cluster of two worker processes on loopback, a judge behind HTTP that counts its calls, and kill -9."""

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("distributed")
from distributed import Client, LocalCluster
from ragstone.batch.evaluate import evaluate
from ragstone.distributed import Spec, SpecError, score_on_dask

from ..support.openai_server import Answer, chat  # noqa: TID252 - under importlib mode tests are no package
from ..support.waiting import soon  # noqa: TID252
from .people import asked, rows

YES = '{"ids": [1]}'


def spec(server, **more):
    return Spec(metrics=["context_relevancy"], judge=f"m@{server.url}", **more)


def plain(report):
    """Results without the time they took and what was found in a journal."""
    return [
        (r.row, r.sample_id, r.draw, r.judge, r.outcome.model_dump(exclude={"usage": {"seconds"}}))
        for r in report.results()
    ]


def clients():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield client


client = pytest.fixture(scope="module")(clients)
short_lived = pytest.fixture(clients)


def test_report_is_that_of_evaluate_and_both_workers_judge(client, openai_server, caplog):
    def reply(body):
        soon(lambda: server.max_in_flight > 4)  # more than one worker's share
        odd = int(str(body["messages"]).partition("Who is person ")[2].partition("?")[0]) % 2
        return Answer({"error": {"message": "no"}}, status=400) if odd else YES

    server = openai_server(reply)
    named = spec(server, max_concurrency=8, repeat=2, requests_per_minute=30_000)
    source = [*rows(40), {"response": 5}, {**rows(1, 70)[0], "id": None, "metadata": {"a": object()}}]
    with caplog.at_level(logging.INFO, "ragstone.distributed"):
        report = score_on_dask(source, named, client, chunk_rows=8, name="two")
    assert (len(asked(server)), set(asked(server).values())) == (41, {2})
    assert server.max_in_flight <= 8
    expected = evaluate(source, named.build(), repeat=2, progress=False)
    assert plain(report) == plain(expected)
    assert report.bad_rows == expected.bad_rows
    assert (report.name, report.metrics) == ("two", expected.metrics)
    assert report.sample(next(each for each in report.results() if each.row == 3)).user_input == "Who is person 3?"
    assert "divided among 2 workers; each has 4 calls in flight" in str(report)
    assert "Limits divided among 2 workers; each has 4 calls in flight, 15,000 requests per minute." in caplog.text
    score_on_dask(rows(2), spec(server), client, workers=1)
    assert "2 workers, but limits were divided among 1: they are exceeded" in caplog.text


def test_what_cannot_be_scored_is_raised(client, openai_server):
    async def endless():
        yield rows(1)[0]

    def torn():
        yield from rows(10)
        raise OSError("the disk is gone")

    server = openai_server(lambda body: YES)
    for source, named, error, message in (
        (
            rows(4),
            Spec(metrics=["context_relevancy"], judge="nowhere:judge"),
            SpecError,
            "cannot load nowhere:judge on",
        ),
        (rows(2), spec(server, max_concurrency=1), SpecError, "too few for 2 workers"),
        (endless(), spec(server), TypeError, "async iterable"),
        (torn(), spec(server), OSError, "the disk is gone"),
    ):
        with pytest.raises(error, match=message):
            score_on_dask(source, named, client, chunk_rows=5)
    assert list(score_on_dask([], spec(server), client).results()) == []


@pytest.mark.slow
def test_killed_worker_loses_nothing_and_only_calls_in_flight_are_made_again(tmp_path, openai_server, short_lived):
    server = openai_server(lambda body: Answer(chat(YES), delay=0.02))
    victim = next(iter(short_lived.run(os.getpid).values()))

    def kill():
        soon(lambda: len(server.seen) > 100)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    named = spec(server, max_concurrency=8, journal=str(tmp_path))
    report = score_on_dask(rows(400), named, short_lived, chunk_rows=100)
    killer.join()
    assert [r.sample_id for r in report.results()] == [f"q{i}" for i in range(400)]
    assert report.summary()["context_relevancy"].scored == len(asked(server)) == 400
    assert asked(server).total() <= 400 + 4  # the killed worker's share of the calls in flight


_RUN = """
import sys
from distributed import Client, LocalCluster
from ragstone.distributed import Spec, score_on_dask

if __name__ == "__main__":
    url, journal, people = sys.argv[1:]
    sys.path.append(people)
    from people import rows
    spec = Spec(metrics=["context_relevancy"], judge=f"m@{url}", max_concurrency=8, journal=journal)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        score_on_dask(rows(300), spec, Client(cluster), chunk_rows=50)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")
def test_run_that_was_killed_goes_on_and_one_that_is_done_asks_nobody(client, tmp_path, openai_server):
    server = openai_server(lambda body: Answer(chat(YES), delay=0.02))
    script, journal = tmp_path / "run.py", tmp_path / "journal"
    script.write_text(_RUN)
    command = [sys.executable, str(script), server.url, str(journal), str(Path(__file__).parent)]
    run = subprocess.Popen(command, start_new_session=True)
    try:
        soon(lambda: len(server.seen) > 80)
    finally:
        os.killpg(run.pid, signal.SIGKILL)  # the client, the scheduler, the workers and who looks after them
        run.wait()
    soon(lambda: server.open_connections == 0)
    assert len(server.seen) < 300
    named = spec(server, max_concurrency=8, journal=str(journal))
    first = score_on_dask(rows(300), named, client, chunk_rows=70)
    calls = asked(server)
    assert len(calls) == 300
    assert calls.total() <= 300 + 8
    files = sorted(journal.iterdir())
    again = score_on_dask(rows(300), named, client)
    assert asked(server) == calls
    assert plain(again) == plain(first)
    assert sorted(journal.iterdir()) == files
