"""The database is away for a while: judging goes on, nothing is lost or judged twice, no other sink waits."""

import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.judge import LLMRequest
from ragstone.live import Budget, CallableSink, SQLiteSink, SQLSink
from ragstone.testing import FakeLLM

from ..support.postgres import PostgresServer  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252

pytestmark = pytest.mark.slow
SAMPLES = 5_000
PADDING = "x" * 400


def slowly(request: LLMRequest) -> Any:
    time.sleep(0.001)
    return {"ids": [1]}


def submit(monitor: Monitor, numbers: range) -> None:
    for i in numbers:
        monitor.submit(Sample(id=f"s{i}", user_input=f"Why {i}?", retrieved_contexts=[f"So. {PADDING}"]))


@pytest.mark.parametrize("outbox", [True, False], ids=["outbox", "memory"])
def test_postgres_stops_while_samples_wait(
    postgres: PostgresServer, postgres_url: str, tmp_path: Path, outbox: bool
) -> None:
    llm, outcomes = FakeLLM(slowly), []
    sinks = [SQLSink(postgres_url), CallableSink(outcomes.extend, "list")]
    path = tmp_path / "outbox.db" if outbox else None
    budget = Budget(calls_per_day=10**6, tokens_per_day=10**9)
    with Monitor(ContextRelevancy(llm=llm), sinks=sinks, outbox=path, budget=budget) as monitor:
        submit(monitor, range(SAMPLES))
        soon(lambda: monitor.stats().scored > 200)
        postgres.stop(signal.SIGQUIT)
        soon(lambda: len(outcomes) == SAMPLES)  # the other sink goes on
        of_list = monitor.stats().sinks["list"]
        assert (monitor.stats().scored, of_list.waiting, of_list.failures) == (SAMPLES, 0, 0)
        postgres.start()
        assert monitor.flush(300)
    stats = monitor.stats()
    assert (stats.scored, stats.accepted, stats.over_budget, len(llm.requests)) == (SAMPLES, SAMPLES, 0, SAMPLES)
    assert len({record.sample_id for record in outcomes}) == len(outcomes) == SAMPLES
    import psycopg

    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT count(*) FROM outcomes WHERE status = 'scored'").fetchone()
    assert rows == (SAMPLES,)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 5 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False) if mount else None
    if done is None or done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip() if done else 'there is no mount'}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4_096)


@pytest.mark.parametrize(("where", "samples"), [("results", 1_000), ("both", 300)])
def test_a_full_disk(small_disk: Path, tmp_path: Path, where: str, samples: int) -> None:
    """The results, or these and the outbox, lie on a disk that fills up."""
    llm, outcomes = FakeLLM(slowly), []
    path = (small_disk if where == "both" else tmp_path) / "outbox.db"
    sinks = [SQLiteSink(small_disk / "results.db"), CallableSink(outcomes.extend)]
    with Monitor(ContextRelevancy(llm=llm), sinks=sinks, outbox=path) as monitor:
        submit(monitor, range(10))
        assert monitor.flush(60)
        ballast = small_disk / "ballast"
        fill(ballast)
        submit(monitor, range(10, samples))
        soon(lambda: monitor.stats().errors)  # of the outbox, behind which nothing new is judged, or of the sink
        assert monitor.stats().dropped == 0
        ballast.unlink()
        assert monitor.flush(60)
    stats = monitor.stats()
    assert (stats.scored, stats.accepted, stats.dropped) == (samples, samples, 0)
    assert Counter(record.sample_id for record in outcomes) == dict.fromkeys((f"s{i}" for i in range(samples)), 1)
