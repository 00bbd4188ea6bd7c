"""The scheduler: what comes out when, how much is held, slow input, failures, time-outs, the journal, stopping."""

import asyncio
import gc
import re
import threading
import weakref
from functools import partial

import pytest

from ragstone import ContextRelevancy, Limits, Metric, Sample, Score, SummarizationScore, Unscored
from ragstone.batch import BadLine, Row
from ragstone.batch.evaluations import Evaluations
from ragstone.batch.journal import Journal
from ragstone.batch.rows import RunRows
from ragstone.batch.scheduler import Scheduler
from ragstone.errors import JournalError
from ragstone.identity import NoKeyError
from ragstone.judge import Meter
from ragstone.limits.gate import RequestGate
from ragstone.testing import FakeLLM

from ..support.judges import Slow  # noqa: TID252
from ..support.metrics import Rounds  # noqa: TID252
from .clock import run_on_a_clock

YES = {"answers": {"1": "yes"}}


def metric(llm=None, **options):
    return SummarizationScore(llm=llm or FakeLLM(YES), questions=("Is it so?",), **options)


def row(line, response="A summary."):
    return Row(line, Sample(retrieved_contexts=["A long source text."], response=response, id=str(line)))


def different(count):
    """Rows that no reply can serve two of."""
    return [row(line, f"Summary {line}.") for line in range(1, count + 1)]


def number_of(text):
    return int(re.search(r"Summary (\d+)", text)[1])


def scheduler(rows, metrics, take, limits=None, journal=None):
    limits = limits or Limits()
    gate = RequestGate(limits, replies=journal)
    evaluations = Evaluations(metrics, gate, lambda *_: Meter(), limits.sample_timeout, journal)
    return Scheduler(RunRows(rows, None, None), evaluations, take, limits.max_concurrency)


async def collect(rows, metrics, **settings):
    items = []
    await scheduler(rows, metrics, items.append, **settings).run()
    return items


def lines(items):
    return [item.line if isinstance(item, BadLine) else item.row.line for item in items]


def outcomes(items):
    """The outcomes, in the order of the input."""
    scored = sorted((item for item in items if not isinstance(item, BadLine)), key=lambda item: item.row.line)
    return [record.outcome for item in scored for record in item.made()]


def yes(request):
    return "yes" if request.choices else YES


NINE = partial(Rounds, sizes=(3, 3, 3))


class TestReading:
    def test_a_window_of_rows_and_no_more(self):
        """Alive at any time are the window's and as many that a thread has read, whatever the length of the stream."""
        window = 16
        alive = peak = under_way = 0

        def gone():
            nonlocal alive
            alive -= 1

        def rows():
            nonlocal alive, peak, under_way
            for line in range(1, 1001):
                made = row(line)
                weakref.finalize(made.sample, gone)
                alive += 1
                under_way += 1
                peak = max(peak, alive)
                assert under_way <= 2 * window
                yield made
                del made

        def take(item):
            nonlocal under_way
            under_way -= 1

        llm = FakeLLM(lambda request: llm.requests.clear() or YES)  # it would hold them all
        gc.collect()
        asyncio.run(scheduler(rows(), [metric(llm)], take, Limits(max_concurrency=1)).run())
        assert peak <= 2 * window + 2  # and one in the hands of each side
        gc.collect()
        assert alive == 0


def test_a_row_whose_app_failed_is_scored_by_what_needs_no_response_and_only_if_something_was_retrieved():
    llm = FakeLLM({"ids": [1]})
    asked = {"user_input": "Who wrote Emma?"}
    rows = [
        Row(1, Sample(**asked, retrieved_contexts=["Jane Austen wrote it."]), error="the engine failed"),
        Row(2, Sample(**asked), error="the engine failed"),
    ]
    retrieved, *unscored = outcomes(asyncio.run(collect(rows, [ContextRelevancy(llm=llm), metric(llm)])))
    assert (retrieved.value, len(llm.requests)) == (1.0, 1)
    assert {(each.reason, each.detail) for each in unscored} == {("missing_input", "response: the engine failed")}


class OddError(Exception):
    def __str__(self):
        raise ValueError("not even that")


class TestFailures:
    def test_what_a_row_raises_is_recorded_on_it_alone_with_its_type_and_cost(self):
        async def gate(request):
            if number_of(request.user) == 2:
                raise ConnectionError("down " * 999)
            if number_of(request.user) == 3:
                raise asyncio.CancelledError  # by the judge's client

        llm = FakeLLM(Slow(gate, yes))
        first, second, third, fourth = outcomes(asyncio.run(collect(different(4), [metric(llm)])))
        assert [type(each) for each in (first, fourth)] == [Score] * 2
        assert (second.reason, second.usage.llm_calls, third.reason) == ("judge_error", 1, "cancelled")
        assert second.detail.startswith("ConnectionError: down down")
        assert len(second.detail) < 600

    def test_a_metric_that_raises_touches_no_other(self):
        class Broken(Metric):
            name, version, required_fields = "broken", "1", ("response",)

            def _flow(self, sample):
                raise errors[-1]
                yield

        for error in (OddError(), StopIteration(), TimeoutError()):
            errors = [error]
            broken = Broken(llm=FakeLLM("yes"))
            found = outcomes(asyncio.run(collect(different(3), [broken, metric()])))
            assert {type(each) for each in found[1::2]} == {Score}
            reason = "timeout" if isinstance(error, TimeoutError) else "judge_error"
            assert {each.reason for each in found[::2]} == {reason}

    def test_the_judge_goes_down_half_way(self):
        llm = FakeLLM(lambda request: YES if number_of(request.user) <= 150 else ConnectionError("refused"))
        items = asyncio.run(collect(different(1000), [metric(llm)]))
        found = outcomes(items)
        assert sorted(lines(items)) == list(range(1, 1001))
        assert [type(each) for each in found] == [Score] * 150 + [Unscored] * 850
        assert {each.reason for each in found[150:]} == {"judge_error"}
        assert found[-1].detail == "not asked: the judge failed on 100 samples in a row"
        assert found[-1].usage.llm_calls == 0
        assert 250 <= len(llm.requests) <= 250 + 256  # those under way when it was given up

    def test_failures_with_a_score_between_them_are_no_reason_to_give_up(self):
        llm = FakeLLM(lambda request: ConnectionError("refused") if number_of(request.user) % 50 else YES)
        asyncio.run(collect(different(600), [metric(llm)]))
        assert len(llm.requests) == 600

    def test_time_outs_count_the_time_of_the_calls_and_call_off_a_round(self):
        llm = FakeLLM(Slow(lambda request: asyncio.sleep(100 if "Summary 2." in request.user else 1), yes))

        async def run(metrics, most):
            items = await collect(different(40), metrics, limits=Limits(max_concurrency=most, sample_timeout=5))
            return outcomes(items), asyncio.all_tasks()

        found, _ = run_on_a_clock(run([metric(llm)], 2))
        assert [index for index, each in enumerate(found) if isinstance(each, Unscored)] == [1]
        assert (found[1].reason, found[1].usage.llm_calls) == ("timeout", 1)
        assert found[1].detail == "TimeoutError: its calls took more than 5 s (sample_timeout)"
        slow = Slow(2)
        found, left = run_on_a_clock(run([NINE(llm=FakeLLM(slow))], 1))
        assert [each.reason for each in found] == ["timeout"] * 40
        assert (slow.cancelled, len(left)) == (40, 1)


class TestJournal:
    def scored(self, path, rows, metrics):
        with Journal(path) as journal:
            return asyncio.run(collect(rows, metrics, journal=journal))

    def test_the_first_rounds_of_what_was_called_off_are_not_paid_again(self, tmp_path):
        asked, running = [], []

        async def gate(request):
            asked.append(request)
            if len(asked) == 7:  # the first call of the third round
                asyncio.get_running_loop().call_soon(running[0].cancel)
                await asyncio.Event().wait()

        async def main():
            running.append(asyncio.current_task())
            with Journal(tmp_path / "j.db") as journal:
                limits = Limits(max_concurrency=1)
                return await collect([row(1)], [NINE(llm=FakeLLM(Slow(gate)))], limits=limits, journal=journal)

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
        (outcome,) = outcomes(asyncio.run(main()))
        assert (outcome.value, outcome.usage.llm_calls) == (1.0, 3)
        assert len(asked) == 7 + 3

    def test_a_metric_without_a_key_is_refused_before_anything_is_asked(self, tmp_path):
        llm = FakeLLM("yes")
        with pytest.raises(NoKeyError, match="option: is or holds a lambda"):
            self.scored(tmp_path / "j.db", different(1), [NINE(llm=llm, option=lambda text: text)])
        assert llm.requests == []

    @pytest.mark.parametrize("method", ["put_outcome", "put_reply"])
    def test_a_journal_that_fails_ends_the_run_and_is_no_judge_error(self, tmp_path, method):
        def fail(self, *args):
            raise JournalError("j.db: cannot be written to; is there room on the disk?")

        full = type("Full", (Journal,), {method: fail})
        rounds = NINE(llm=FakeLLM("yes"))
        with full(tmp_path / "j.db") as journal, pytest.raises(JournalError, match="room on the disk"):
            asyncio.run(collect(different(50), [rounds], journal=journal))


class TestStopping:
    def test_neither_scoring_nor_a_stop_waits_for_the_next_row(self):
        second, third = threading.Event(), threading.Event()

        def slow():
            yield row(1)
            second.wait()
            yield row(2)
            third.wait()
            yield row(3)

        def take(item):
            items.append(item)
            second.set() if len(items) == 1 else run.stop()

        items = []
        run = scheduler(slow(), [metric()], take)
        asyncio.run(run.run())
        assert lines(items) == [1, 2]
        third.set()  # the reader ends quietly: its loop is closed
