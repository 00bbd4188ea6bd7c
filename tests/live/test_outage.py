"""The budget's account cannot be reached for a while: nothing is lost, nothing is refused, no other sink waits."""

import json
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
from ragstone.live import Budget, CallableSink, JSONLSink, SQLiteSink, SQLSink
from ragstone.testing import FakeLLM

from ..support.waiting import soon  # noqa: TID252
from .postgres import PostgresServer

pytestmark = pytest.mark.slow
SAMPLES = 5_000
PADDING = "x" * 400


def judge(request: LLMRequest) -> Any:
    time.sleep(0.001)
    return {"ids": [1]}


def submit(monitor: Monitor, numbers: range) -> None:
    for i in numbers:
        monitor.submit(Sample(id=f"s{i}", user_input=f"Why {i}?", retrieved_contexts=[f"So. {PADDING}"]))


@pytest.mark.parametrize("outbox", [True, False], ids=["outbox", "memory"])
@pytest.mark.parametrize("seconds", [5, 60])
def test_postgres_stops_while_samples_wait(
    postgres: PostgresServer, postgres_url: str, tmp_path: Path, seconds: int, outbox: bool
) -> None:
    llm = FakeLLM(judge)
    sinks = [SQLSink(postgres_url), JSONLSink(tmp_path / "outcomes.jsonl")]
    path = tmp_path / "outbox.db" if outbox else None
    budget = Budget(calls_per_day=10**6, tokens_per_day=10**9)
    with Monitor(ContextRelevancy(llm=llm), sinks=sinks, outbox=path, budget=budget) as monitor:
        submit(monitor, range(SAMPLES))
        soon(lambda: monitor.stats().scored > 200)
        postgres.stop(signal.SIGQUIT)
        soon(lambda: monitor.stats().reasons.get("pending") == {"ledger": 4})
        asked = len(llm.requests)
        of_file = monitor.stats().sinks[sinks[1].name]
        soon(lambda: monitor.stats().sinks[sinks[1].name].waiting == 0)  # the other sink goes on
        time.sleep(seconds)  # what is tested is how long
        assert len(llm.requests) == asked < SAMPLES
        assert of_file.failures == 0
        postgres.start()
        assert monitor.flush(300)
    stats = monitor.stats()
    assert (stats.scored, stats.accepted, stats.over_budget, len(llm.requests)) == (SAMPLES, SAMPLES, 0, SAMPLES)
    lines = Counter(json.loads(line)["id"] for line in (tmp_path / "outcomes.jsonl").read_text().splitlines())
    assert (len(lines), max(lines.values())) == (SAMPLES, 1)
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
    """The results with the budget's account, or these and the outbox, lie on a disk that fills up."""
    llm, outcomes = FakeLLM(judge), []
    path = (small_disk if where == "both" else tmp_path) / "outbox.db"
    sinks = [SQLiteSink(small_disk / "results.db"), CallableSink(outcomes.extend)]
    with Monitor(ContextRelevancy(llm=llm), sinks=sinks, outbox=path, budget=Budget(calls_per_day=10**6)) as monitor:
        submit(monitor, range(10))
        assert monitor.flush(60)
        ballast = small_disk / "ballast"
        fill(ballast)
        submit(monitor, range(10, samples))
        soon(lambda: "ledger" in monitor.stats().reasons.get("pending", {}))
        assert monitor.stats().over_budget == monitor.stats().dropped == 0
        ballast.unlink()
        assert monitor.flush(60)
    stats = monitor.stats()
    assert (stats.scored, stats.accepted, stats.dropped, stats.over_budget) == (samples, samples, 0, 0)
    assert Counter(record.sample_id for record in outcomes) == dict.fromkeys((f"s{i}" for i in range(samples)), 1)
