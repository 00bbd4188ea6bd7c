"""The budget: never exceeded in calls, nothing spent on what is refused, no day spent twice by a restart."""

import random
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragstone import ContextRelevancy, LLMReply, Monitor, Usage
from ragstone.judging.prompt import tokens
from ragstone.live import Budget, SQLiteSink
from ragstone.live.budget import Account
from ragstone.live.settings import Waits
from ragstone.testing import FakeLLM

from ..support.metrics import Rounds  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .cases import Case, Impatient, score, unscored
from .kit import PATIENCE, Held, Kept, adds_up, in_threads, live, ours, sample, submit, yes


class Clock:
    """The budget's time: noon of a day long ago, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000 * 86_400 + 43_200.0

    def __call__(self) -> float:
        return self.now


def budgeted(
    budget: Budget, metrics: Any, clock: Clock | None = None, sinks: Any = None, **options: Any
) -> tuple[Monitor, Kept]:
    """A monitor with a budget; by default its sink has no database."""
    kept = Kept()
    return live(metrics, sinks=sinks or kept, budget=budget, waits=Waits(clock=clock or time.time), **options), kept


def rounds(llm: Any, *sizes: int) -> Rounds:
    return Rounds(llm=llm, sizes=sizes)


@pytest.mark.parametrize(
    ("sizes", "limit", "workers"), [((1,), 0, 8), ((3,), 17, 8), ((1, 1), 1, 8), ((2, 1, 2), 100, 8), ((2, 1), 8, 1)]
)
def test_calls_never_exceed_their_limit(sizes: tuple[int, ...], limit: int, workers: int) -> None:
    llm = FakeLLM(lambda request: (time.sleep(random.random() / 500), "yes")[1])
    monitor, sink = budgeted(Budget(calls_per_day=limit), rounds(llm, *sizes), workers=workers)
    with monitor:
        submit(monitor, range(50))
    stats = monitor.stats()
    assert len(llm.requests) <= limit
    assert stats.scored + stats.over_budget == 50
    assert stats.reasons.get("over_budget", {}).keys() <= {"calls_per_day"}
    assert adds_up(stats)
    if len(sizes) == 1 or workers == 1:  # nothing is spent on what is refused, and it has no outcome
        assert stats.scored == len(sink.records) == min(50, limit // sum(sizes))


def test_threads_that_interrupt_one_another_anywhere_never_exceed_the_limit() -> None:
    account = Account(Budget(calls_per_day=2_000), Clock(), None)
    refused: list[str | None] = []

    def work(_: int) -> None:
        for _ in range(1_000):
            refused.append(account.spend(Counter(calls=1), account.clock()))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        in_threads(8, work)
    finally:
        sys.setswitchinterval(interval)
    assert Counter(refused) == {None: 2_000, "calls_per_day": 6_000}


def test_evaluations_that_were_broken_off_teach_the_next_ones() -> None:
    """Eight at once would each begin with the first of two calls and find no room for the second, again and again."""
    clock = Clock()
    held = threading.Barrier(8)
    first = []

    def reply(request: Any) -> str:
        if len(first) < 8:
            first.append(1)
            held.wait(PATIENCE)
        time.sleep(0.02)  # so that all workers are at it
        return "yes"

    llm = FakeLLM(reply)
    monitor, sink = budgeted(Budget(calls_per_minute=8), rounds(llm, 1, 1), clock, workers=8)
    with monitor:
        submit(monitor, range(8))
        assert monitor.flush(PATIENCE)
        assert (monitor.stats().scored, len(llm.requests)) == (0, 8)
        assert all(record.outcome.reason == "over_budget" for record in sink.records.values())  # type: ignore[union-attr]
        assert all(record.outcome.usage.llm_calls == 1 for record in sink.records.values())
        clock.now += 60
        submit(monitor, range(8, 30))
        assert monitor.flush(PATIENCE)
        assert (monitor.stats().scored, len(llm.requests)) == (4, 16)


def test_a_new_minute_has_new_room_and_a_clock_that_goes_back_none() -> None:
    clock = Clock()
    llm = FakeLLM(yes)
    monitor, _ = budgeted(Budget(calls_per_minute=3, calls_per_day=8), rounds(llm, 1), clock, workers=1)
    scored = []
    with monitor:
        for step in (0, 60, -60, 120, 60):
            clock.now += step
            for i in range(10):
                monitor.submit(sample(f"{len(scored)}.{i}"))
            assert monitor.flush(PATIENCE)
            scored.append(monitor.stats().scored)
    assert scored == [3, 6, 6, 8, 8]
    assert monitor.stats().reasons == {"over_budget": {"calls_per_minute": 24, "calls_per_day": 18}}
    assert len(llm.requests) == 8


def test_an_evaluation_counts_in_the_minute_in_which_it_starts() -> None:
    clock, held = Clock(), Held(lambda _: "yes")
    clock.now += 59.0
    monitor, _ = budgeted(Budget(calls_per_minute=2), rounds(FakeLLM(held), 1, 1), clock, workers=2)
    with monitor:
        monitor.submit(sample(1))
        soon(lambda: held.asked)
        clock.now += 2
        held.let_go()
        assert monitor.flush(PATIENCE)
        monitor.submit(sample(2))
    assert monitor.stats().scored == 2


@pytest.mark.parametrize(
    ("says", "scored"), [((None, None), 2), ((1_000, None), 2), ((None, 50), 2), ((1_000, 50), 2), ((1, 0), 5)]
)
def test_tokens_are_corrected_by_what_the_provider_says(says: tuple[int | None, int | None], scored: int) -> None:
    """The day's limit is what two evaluations use, by the provider's words or as estimated, whichever is more."""
    guessed = FakeLLM(yes)
    with live(rounds(guessed, 2, 1)) as monitor:
        monitor.submit(sample(0))
    estimates = [(tokens(request.system, request.user), tokens("yes")) for request in guessed.requests]
    used = [
        max(guess, guess if real is None else real)
        for guesses in estimates
        for real, guess in zip(says, guesses, strict=True)
    ]
    llm = FakeLLM(lambda _: LLMReply("yes", input_tokens=says[0], output_tokens=says[1]))
    monitor, _ = budgeted(Budget(tokens_per_day=2 * sum(used)), rounds(llm, 2, 1), workers=1)
    with monitor:
        submit(monitor, range(5))
    assert monitor.stats().scored == scored


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(tokens_per_day=20_000), "tokens_per_day"),
        (Budget(money_per_day=0.20, input_price=10.0, output_price=20.0), "money_per_day"),
    ],
)
def test_tokens_and_money_exceed_their_limit_by_a_round_in_each_worker_at_most(budget: Budget, limit: str) -> None:
    llm = FakeLLM(LLMReply("yes", input_tokens=800, output_tokens=100))
    monitor, _ = budgeted(budget, rounds(llm, 1), workers=4)
    with monitor:
        submit(monitor, range(100))
    assert 19 <= len(llm.requests) <= 22 + 4
    assert monitor.stats().reasons == {"over_budget": {limit: 100 - len(llm.requests)}}


def test_one_that_takes_more_than_the_limit_does_not_shut_out_all_others() -> None:
    class Varied(Rounds):
        def _flow(self, sample: Any) -> Any:
            return Rounds._flow(replace(self, sizes=(1,) * 20) if sample.response == "huge" else self, sample)

    clock, llm = Clock(), FakeLLM(yes)
    monitor, _ = budgeted(Budget(calls_per_minute=8), Varied(llm=llm, sizes=(1,)), clock, workers=1)
    with monitor:
        monitor.submit(sample(1, response="huge"))
        assert monitor.flush(PATIENCE)
        assert monitor.stats().over_budget == 1
        clock.now += 60
        submit(monitor, range(2, 12))
    assert monitor.stats().scored == 8


def test_budgets_that_cannot_be() -> None:
    for wrong, message in (
        ({"calls_per_minute": -1}, "calls_per_minute"),
        ({"calls_per_day": float("nan")}, "calls_per_day"),
        ({"tokens_per_day": "5"}, "tokens_per_day"),
        ({"money_per_day": 5.0, "input_price": 1.0}, "output_price"),
        ({"input_price": -1.0}, "input_price"),
    ):
        with pytest.raises(ValueError, match=message):
            Budget(**wrong)  # type: ignore[arg-type]


def test_calls_that_fail_are_counted_and_a_sample_that_lacks_something_costs_nothing() -> None:
    llm = FakeLLM(ConnectionError("refused"))
    budget = Budget(calls_per_day=5, tokens_per_day=10**9)
    monitor, _ = budgeted(budget, ContextRelevancy(llm=llm), workers=2)
    with monitor:
        monitor.submit(sample("none", user_input=None))
        monitor.submit(sample("empty", retrieved_contexts=[]))
        submit(monitor, range(20))
    assert monitor.stats().reasons == {
        "unscored": {"missing_input": 1, "empty_input": 1, "judge_error": 5},
        "over_budget": {"calls_per_day": 15},
    }
    assert len(llm.requests) == 5


def test_a_call_that_failed_may_have_been_paid_for() -> None:
    llm = FakeLLM(ConnectionError("refused"))
    with live(rounds(llm, 1)) as monitor:
        monitor.submit(sample(0))
    estimate = tokens(llm.requests[0].system, llm.requests[0].user)
    monitor, _ = budgeted(Budget(tokens_per_day=3 * estimate), rounds(llm, 1), workers=1)
    with monitor:
        submit(monitor, range(1, 9))
    assert len(llm.requests) == 1 + 3


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(calls_per_day=10, tokens_per_day=10**9), "calls_per_day"),
        (Budget(tokens_per_day=10_000), "tokens_per_day"),
        (Budget(money_per_day=0.01, input_price=1.0, output_price=1.0), "money_per_day"),
    ],
)
def test_a_process_that_restarts_spends_no_day_twice(store: Case, budget: Budget, limit: str) -> None:
    """What is stored counts, scored or not; a failed call counts as a call."""
    clock, asked = Clock(), []

    def reply(request: Any) -> Any:
        asked.append(request)
        return ConnectionError("refused") if len(asked) == 3 else LLMReply("yes", input_tokens=900, output_tokens=100)

    llm = FakeLLM(reply)
    for start in range(0, 20, 4):
        monitor, _ = budgeted(budget, rounds(llm, 1), clock, [Kept(), store.sink], workers=1)
        with monitor:
            submit(monitor, range(start, start + 4))
        store.query(f"UPDATE outcomes SET scored_at = {clock.now}")
    assert len(asked) == (10 if limit == "calls_per_day" else 11)
    assert monitor.stats().reasons == {"over_budget": {limit: 4}}


def test_a_day_begins_at_midnight_in_what_is_stored_and_in_what_runs(store: Case) -> None:
    clock, llm = Clock(), FakeLLM(yes)
    midnight = clock.now - 43_200
    early = unscored("early", scored_at=midnight)
    early = replace(early, outcome=early.outcome.model_copy(update={"usage": Usage(llm_calls=1)}))
    others = [score("yesterday", scored_at=midnight - 0.5), score("of a clock ahead", scored_at=midnight + 86_400)]
    store.sink.write([*others, early, score("now", scored_at=clock.now)])
    monitor, _ = budgeted(Budget(calls_per_minute=7, calls_per_day=8), rounds(llm, 1), clock, store.sink, workers=2)
    scored = []
    with monitor:
        for day in range(3):
            submit(monitor, range(10 * day, 10 * day + 10))
            assert monitor.flush(PATIENCE)
            scored.append(monitor.stats().scored)
            clock.now += 86_400
    assert scored == [5, 12, 19]  # 1 call and 2 calls were made before


@contextmanager
def locked(sink: SQLiteSink) -> Iterator[None]:
    """Another process holds the sink's file, which cannot even be read."""
    sink.write([score(scored_at=0.0)])
    sink.close()
    with closing(sqlite3.connect(sink.path)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        yield


def test_a_database_that_is_away_at_start_is_waited_for(tmp_path: Path) -> None:
    """Nothing is asked meanwhile, refused, timed out or lost."""
    llm, sink = FakeLLM(yes), Impatient(tmp_path / "r.db")
    budget = Budget(calls_per_day=30)
    monitor, _ = budgeted(budget, rounds(llm, 1, 1), None, sink, workers=2, timeout=0.3)
    with locked(sink):
        started = time.monotonic()
        submit(monitor, range(20))
        assert time.monotonic() - started < 0.2  # before the first try is over
        soon(lambda: monitor.stats().errors.get("budget", 0) >= 6)  # in all longer than the timeout
        stats = monitor.stats()
        assert (stats.pending, stats.in_hand, stats.reasons, len(llm.requests)) == (20, 0, {}, 0)
    assert monitor.close()
    stats = monitor.stats()
    assert (stats.scored, stats.reasons, len(llm.requests)) == (15, {"over_budget": {"calls_per_day": 5}}, 30)


@pytest.mark.parametrize("kind", [SQLiteSink, Impatient], ids=["hangs", "raises"])
def test_closing_while_the_database_is_away_at_start(tmp_path: Path, kind: type[SQLiteSink]) -> None:
    llm, sink, outbox = FakeLLM(yes), kind(tmp_path / "r.db"), tmp_path / "outbox.db"
    monitor, _ = budgeted(Budget(calls_per_day=30), rounds(llm, 1), None, sink, outbox=outbox)
    with locked(sink):
        submit(monitor, range(10))
        started = time.monotonic()
        assert monitor.close(0.1).remaining == 10
        assert time.monotonic() - started < SQLiteSink.patience / 2
        if kind is Impatient:
            soon(lambda: not ours(monitor))  # nobody tries for ever
    stats = monitor.stats()
    stats = monitor.stats()
    assert (stats.reasons, adds_up(stats), len(llm.requests)) == ({"spooled": {"outbox": 10}}, True, 0)
    soon(lambda: not ours(monitor))
    with live(rounds(llm, 1), sinks=(kept := Kept()), outbox=outbox) as again:
        again.flush(PATIENCE)
    assert len(kept.ids) == 10
