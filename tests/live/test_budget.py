"""The budget: never exceeded in calls, nothing spent on what is refused, one account for all that share a database."""

import itertools
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragstone import ContextRelevancy, LLMReply, Monitor
from ragstone.judging.prompt import tokens
from ragstone.live import Budget
from ragstone.live.database import RESULTS
from ragstone.live.settings import Waits
from ragstone.results.connection import MemoryDatabase, Transaction
from ragstone.testing import FakeLLM

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, Rounds, adds_up, live, ours, sample, submit, yes


class Clock:
    """The account's time: noon of a day, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000 * 86_400 + 43_200.0

    def __call__(self) -> float:
        return self.now


class Account(MemoryDatabase):
    """The database of an account, which cannot be reached at times."""

    def __init__(self, reachable: Callable[[], object] = lambda: True) -> None:
        super().__init__(RESULTS)
        self._reachable = reachable

    def transaction(self, removing: str = "") -> AbstractContextManager[Transaction]:
        if not self._reachable():
            raise OSError("locked, password=hunter2")
        return super().transaction(removing)


def budgeted(
    budget: Budget, metrics: Any, clock: Clock | None = None, account: Account | None = None, **options: Any
) -> tuple[Monitor, Kept]:
    """A monitor with a sink whose database has the account."""
    sink = Kept(database=account or Account())
    return live(metrics, sinks=sink, budget=budget, waits=Waits(clock=clock or time.time), **options), sink


def spent(sink: Kept, name: str = "calls_per_day") -> float:
    assert sink.database is not None
    with sink.database.transaction() as connection:
        ((amount,),) = connection.execute("SELECT total(amount) FROM spending WHERE name = :name", {"name": name})
    return amount


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
    assert spent(sink) == len(llm.requests)
    assert stats.scored + stats.over_budget == 50
    assert stats.reasons.get("over_budget", {}).keys() <= {"calls_per_day"}
    assert adds_up(stats)
    if len(sizes) == 1 or workers == 1:  # nothing is spent on what is refused, and it has no outcome
        assert stats.scored == len(sink.records) == min(50, limit // sum(sizes))


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
    assert spent(sink, "calls_per_minute") == 16


def test_a_new_minute_has_new_room_and_a_clock_that_goes_back_none() -> None:
    clock = Clock()
    llm = FakeLLM(yes)
    monitor, sink = budgeted(Budget(calls_per_minute=3, calls_per_day=8), rounds(llm, 1), clock, workers=1)
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
    assert spent(sink) == len(llm.requests) == 8


def test_an_evaluation_counts_in_the_minute_in_which_it_starts() -> None:
    clock, held = Clock(), Held(lambda _: "yes")
    clock.now += 59.0
    monitor, sink = budgeted(Budget(calls_per_minute=2), rounds(FakeLLM(held), 1, 1), clock, workers=2)
    with monitor:
        monitor.submit(sample(1))
        soon(lambda: held.asked)
        clock.now += 2
        held.let_go()
        assert monitor.flush(PATIENCE)
        assert spent(sink, "calls_per_minute") == 2
        monitor.submit(sample(2))
    assert monitor.stats().scored == 2


@pytest.mark.parametrize("says", [(None, None), (1_000, None), (None, 50)])
def test_tokens_are_corrected_by_what_the_provider_says(says: tuple[int | None, int | None]) -> None:
    llm = FakeLLM(lambda _: LLMReply("yes", input_tokens=says[0], output_tokens=says[1]))
    monitor, sink = budgeted(Budget(tokens_per_day=10**9), rounds(llm, 2, 1), workers=4)
    with monitor:
        submit(monitor, range(5))
    estimates = [(tokens(request.system, request.user), tokens("yes")) for request in llm.requests]
    used = [
        real if real is not None else guess for guesses in estimates for real, guess in zip(says, guesses, strict=True)
    ]
    assert monitor.stats().scored == 5
    assert spent(sink, "tokens_per_day") == sum(used)


@pytest.mark.parametrize(
    ("budget", "limit", "used"),
    [
        (Budget(tokens_per_day=20_000), "tokens_per_day", 900),
        (Budget(money_per_day=0.20, input_price=10.0, output_price=20.0), "money_per_day", 0.01),
    ],
)
def test_tokens_and_money_exceed_their_limit_by_a_round_in_each_worker_at_most(
    budget: Budget, limit: str, used: float
) -> None:
    llm = FakeLLM(lambda _: LLMReply("yes", input_tokens=800, output_tokens=100))
    monitor, sink = budgeted(budget, rounds(llm, 1), workers=4)
    with monitor:
        submit(monitor, range(100))
    assert spent(sink, limit) == pytest.approx(used * len(llm.requests))
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
    llm = FakeLLM(lambda _: ConnectionError("refused"))
    budget = Budget(calls_per_day=5, tokens_per_day=10**9)
    monitor, sink = budgeted(budget, ContextRelevancy(llm=llm), workers=2)
    with monitor:
        monitor.submit(sample("none", user_input=None))
        monitor.submit(sample("empty", retrieved_contexts=[]))
        assert monitor.flush(PATIENCE)
        assert spent(sink) == 0
        submit(monitor, range(20))
    assert monitor.stats().reasons == {
        "unscored": {"missing_input": 1, "empty_input": 1, "judge_error": 5},
        "over_budget": {"calls_per_day": 15},
    }
    assert len(llm.requests) == spent(sink) == 5
    assert spent(sink, "tokens_per_day") > 0


def unreachable(reachable: Callable[[], object], **options: Any) -> tuple[Monitor, Kept, FakeLLM]:
    """A monitor with such an account and a metric of two rounds."""
    llm = FakeLLM(yes)
    account = Account(reachable)
    monitor, sink = budgeted(Budget(calls_per_day=1_000), rounds(llm, 1, 1), account=account, workers=2, **options)
    return monitor, sink, llm


@pytest.mark.parametrize("granted", [0, 1])
def test_an_account_that_cannot_be_reached_is_waited_for(granted: int) -> None:
    """Before the first call of an evaluation, or half-way: nothing is asked meanwhile, refused, timed out or lost."""
    spends = itertools.count()
    up = threading.Event()
    monitor, sink, llm = unreachable(lambda: up.is_set() or next(spends) < granted, timeout=0.3)
    submit(monitor, range(20))
    soon(lambda: monitor.stats().errors.get("budget", 0) >= 8)  # in all longer than the timeout
    stats = monitor.stats()
    assert (stats.pending, stats.reasons) == (20, {"pending": {"ledger": 2}})
    assert (adds_up(stats), len(llm.requests)) == (True, granted)
    up.set()
    assert monitor.close()
    assert (monitor.stats().scored, len(sink.ids), len(llm.requests), spent(sink)) == (20, 20, 40, 40)


def test_closing_while_the_account_cannot_be_reached(tmp_path: Path) -> None:
    outbox = tmp_path / "outbox.db"
    monitor, sink, llm = unreachable(lambda: False, outbox=outbox)
    submit(monitor, range(10))
    soon(lambda: monitor.stats().errors.get("budget", 0) >= 2)
    assert monitor.close(0.1).remaining == 10
    stats = monitor.stats()
    assert stats.reasons == {"spooled": {"outbox": 10}}
    assert (adds_up(stats), len(llm.requests)) == (True, 0)
    soon(lambda: not ours(monitor))
    with live(rounds(llm, 1, 1), sinks=sink, outbox=outbox) as again:
        again.flush(PATIENCE)
    assert len(sink.ids) == 10


def test_an_account_that_hangs_holds_up_no_outcome() -> None:
    """What the judge has answered goes to the sinks before what it cost is settled."""
    free = threading.Event()
    uses = itertools.count()
    account = Account(lambda: next(uses) == 0 or free.wait(PATIENCE))
    llm = FakeLLM(lambda _: LLMReply("yes", input_tokens=9_000, output_tokens=5))
    monitor, sink = budgeted(Budget(tokens_per_day=10**9), rounds(llm, 1), account=account, workers=1)
    monitor.submit(sample(1))
    soon(lambda: sink.ids)
    free.set()
    assert monitor.close()
    assert (monitor.stats().scored, monitor.stats().errors) == (1, {})
    assert spent(sink, "tokens_per_day") == 9_005
