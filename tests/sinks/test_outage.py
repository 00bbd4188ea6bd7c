"""The budget's account cannot be reached for a while: nothing is lost, nothing is refused, no other sink waits."""

import json
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.judge import LLMRequest
from ragstone.monitor import Budget
from ragstone.sinks import JSONLSink, SQLSink
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
def test_postgres_stops_while_samples_wait(
    postgres: PostgresServer, postgres_url: str, tmp_path: Path, outbox: bool
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
        time.sleep(5)  # what is tested is how long
        assert len(llm.requests) == asked < SAMPLES
        assert of_file.failures == 0
        postgres.start()
        assert monitor.flush(300)
    stats = monitor.stats()
    assert (stats.scored, stats.accepted, stats.over_budget, len(llm.requests)) == (SAMPLES, SAMPLES, 0, SAMPLES)
    lines = Counter(json.loads(line)["sample_id"] for line in (tmp_path / "outcomes.jsonl").read_text().splitlines())
    assert (len(lines), max(lines.values())) == (SAMPLES, 1)
    import psycopg

    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT count(*) FROM outcomes WHERE status = 'scored'").fetchone()
    assert rows == (SAMPLES,)
