"""The runner: order, how much is held, slow input, failures, time-outs, the journal, stopping."""

import asyncio
import contextlib
import gc
import re
import threading
import time
import weakref
from dataclasses import dataclass

import pytest

from ragstone import BaseLLM, ContextRelevancy, LLMReply, Metric, Sample, Score, SummarizationScore, Unscored
from ragstone.batch import BadLine, Row
from ragstone.batch.feed import FromThread
from ragstone.batch.journal.file import JournalError
from ragstone.batch.journal.journal import Journal
from ragstone.batch.journal.keys import NoKeyError
from ragstone.batch.pace.gate import Gate
from ragstone.batch.runner import Runner, Scored
from ragstone.batch.scoring import GIVE_UP_AFTER
from ragstone.testing import FakeLLM

from .clock import run_on_a_clock

YES = {"answers": {"1": "yes"}}


def metric(llm, **options):
    return SummarizationScore(llm=llm, questions=("Is it so?",), **options)


def row(line, response="A summary."):
    return Row(line, Sample(retrieved_contexts=["A long source text."], response=response, id=str(line)))


def different(count):
    """Rows that no reply can serve two of."""
    return [row(line, f"Summary {line}.") for line in range(1, count + 1)]


async def collect(rows, metrics, *, gate=None, **settings):
    return [item async for item in Runner(rows, metrics, gate or Gate(), **settings).results()]


def lines(items):
    return [item.line if isinstance(item, BadLine) else item.row.line for item in items]


def outcomes(items):
    return [result.outcome for item in items if isinstance(item, Scored) for result in item.results]


class Gated(BaseLLM):
    """Answers when its gate says so; the gate gets the prompt."""

    model = "gated"

    def __init__(self, gate):
        self.gate = gate
        self.cancelled = 0

    async def agenerate(self, request, /):
        try:
            await self.gate(request.user)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return LLMReply('{"answers": {"1": "yes"}}')


@dataclass(frozen=True, kw_only=True)
class Rounds(Metric):
    """A user's metric: three rounds of three calls."""

    name, version, required_fields = "rounds", "1", ("response",)

    def _flow(self, sample):
        for turn in range(3):
            data = {"response": sample.response}
            yield tuple(
                self.choice("step", f"Round {turn}, call {i}?", data, "Yes or no.", ("yes", "no")) for i in range(3)
            )
        return self._score(1.0, "Asked nine times.")


class TestOrder:
    def test_results_come_in_input_order_with_bad_lines_in_their_place(self):
        async def run():
            others_done = asyncio.Event()
            finished = []

            async def gate(user):
                if "First." in user:
                    await others_done.wait()
                finished.append(user)
                if len(finished) == 3:
                    others_done.set()

            rows = [row(1, "First."), BadLine(2, "no"), *different(9)[2:]]
            items = await collect(rows, [metric(Gated(gate))])
            assert "First." not in finished[0]
            assert lines(items) == list(range(1, 10))
            assert items[1] == BadLine(2, "no")

        asyncio.run(run())

    def test_within_a_row_by_metric_then_by_draw(self):
        llm = FakeLLM(lambda request: YES)
        (item,) = asyncio.run(collect([row(7)], [metric(llm), metric(llm, length_penalty=False)], repeat=2))
        assert [(each.row, each.sample_id, each.draw, each.judge) for each in item.results] == [
            (6, "7", 0, "fake"), (6, "7", 1, "fake"), (6, "7", 0, "fake"), (6, "7", 1, "fake"),
        ]  # fmt: skip
        assert [each.outcome.value == 1.0 for each in item.results] == [False, False, True, True]

    def test_a_sample_without_an_id_has_its_place(self):
        sample = row(1).sample.model_copy(update={"id": None})
        (item,) = asyncio.run(collect([Row(5, sample)], [metric(FakeLLM(lambda request: YES))]))
        assert item.results[0].sample_id == "5"

    @pytest.mark.parametrize("in_memory", [True, False])
    @pytest.mark.parametrize("rows", [[], [BadLine(1, "no")]])
    def test_no_rows(self, rows, in_memory):
        llm = FakeLLM(lambda request: YES)
        assert asyncio.run(collect(rows, [metric(llm)], window=0, flows=0, in_memory=in_memory)) == rows


class TestCalls:
    @pytest.mark.parametrize(("most", "rows"), [(1, 3), (2, 5), (5, 20), (64, 40)])
    def test_concurrency_is_counted_in_calls(self, most, rows):
        """Rounds of three calls, of many samples: never more in flight, and never fewer while there is work."""

        class Slow(BaseLLM):
            model = "slow"
            in_flight = most = 0

            async def agenerate(self, request, /):
                self.in_flight += 1
                self.most = max(self.most, self.in_flight)
                await asyncio.sleep(1)
                self.in_flight -= 1
                return LLMReply("yes")

        llm = Slow()

        async def run():
            start = asyncio.get_running_loop().time()
            items = await collect(different(rows), [Rounds(llm=llm)], gate=Gate(most), flows=2 * most, in_memory=True)
            return items, asyncio.get_running_loop().time() - start

        items, seconds = run_on_a_clock(run())
        assert all(isinstance(each, Score) for each in outcomes(items))
        assert llm.most == min(most, 3 * rows)
        bound = rows * 9 / most
        assert bound <= seconds <= bound + 9  # the last ones have nobody to share the slots with

    def test_on_the_callers_loop(self):
        async def run():
            loop = asyncio.get_running_loop()

            async def gate(user):
                assert asyncio.get_running_loop() is loop

            return await collect([row(1)], [metric(Gated(gate))])

        assert [type(each) for each in outcomes(asyncio.run(run()))] == [Score]


class TestHolding:
    @pytest.mark.parametrize("in_memory", [True, False])
    @pytest.mark.parametrize("window", [1, 3, 16])
    def test_a_window_of_rows_and_no_more(self, window, in_memory):
        """2,000 rows go through; alive at any time are the window's, whatever the length of the stream."""
        alive = peak = under_way = 0

        def gone():
            nonlocal alive
            alive -= 1

        def rows():
            nonlocal alive, peak, under_way
            for line in range(1, 2001):
                made = row(line)
                weakref.finalize(made.sample, gone)
                alive += 1
                under_way += 1
                peak = max(peak, alive)
                assert under_way <= window
                yield made
                del made

        class Instant(FakeLLM):
            def generate(self, request, /):
                self.requests.clear()  # it would hold them all
                return super().generate(request)

        async def run():
            nonlocal under_way
            count = 0
            settings = {"window": window, "in_memory": in_memory}
            async for item in Runner(rows(), [metric(Instant(lambda request: YES))], Gate(), **settings).results():
                count += 1
                under_way -= 1
                assert item.row.line == count
                del item
            return count

        gc.collect()
        assert asyncio.run(run()) == 2000
        assert peak <= window + 2  # and one in the hands of each side
        gc.collect()
        assert alive == 0

    def test_input_without_end(self):
        def endless():
            line = 0
            while True:
                line += 1
                yield row(line)

        async def run():
            taken = 0
            runner = Runner(endless(), [metric(FakeLLM(lambda request: YES))], Gate(), window=8)
            async with contextlib.aclosing(runner.results()) as items:
                async for _ in items:
                    taken += 1
                    if taken == 3000:
                        return len(runner._slots)
            return None

        assert asyncio.run(run()) <= 8

    def test_a_row_is_scored_while_the_next_one_has_not_come(self):
        next_line = threading.Event()

        def slow():
            yield row(1)
            next_line.wait()
            yield row(2)

        async def run():
            items = Runner(slow(), [metric(FakeLLM(lambda request: YES))], Gate()).results()
            first = await anext(items)
            next_line.set()
            return [first, *[item async for item in items]]

        assert lines(asyncio.run(run())) == [1, 2]

    def test_rows_that_come_asynchronously(self):
        closed = []

        async def rows():
            try:
                for line in range(1, 50):
                    await asyncio.sleep(0)
                    yield row(line)
            finally:
                closed.append(True)

        async def run():
            async with contextlib.aclosing(
                Runner(rows(), [metric(FakeLLM(lambda request: YES))], Gate(), window=4).results()
            ) as items:
                return [await anext(items) for _ in range(20)]

        assert lines(asyncio.run(run())) == list(range(1, 21))
        assert closed == [True]

    @pytest.mark.parametrize("kind", ["thread", "memory", "async"])
    def test_what_reading_raises_is_raised_after_the_rows_before_it(self, kind):
        def rows():
            yield row(1)
            raise OSError(5, "Input/output error")

        async def arows():
            for each in rows():
                yield each

        seen = []

        async def run():
            source = arows() if kind == "async" else rows()
            llm = FakeLLM(lambda request: YES)
            async for item in Runner(source, [metric(llm)], Gate(), in_memory=kind == "memory").results():
                seen.append(item)

        with pytest.raises(OSError, match="Input/output error"):
            asyncio.run(run())
        assert lines(seen) == [1]


class OddError(Exception):
    def __str__(self):
        raise ValueError("not even that")


class TestFailures:
    @pytest.mark.parametrize("error", [ConnectionError("down"), ValueError("bug"), KeyError("gone"), RecursionError()])
    def test_what_a_row_raises_is_recorded_on_it_alone_with_its_type_and_cost(self, error):
        def reply(request):
            return error if "Second." in request.user else YES

        items = asyncio.run(collect([row(1), row(2, "Second."), row(3)], [metric(FakeLLM(reply))]))
        first, second, third = outcomes(items)
        assert isinstance(first, Score)
        assert isinstance(third, Score)
        assert isinstance(second, Unscored)
        assert (second.reason, second.usage.llm_calls) == ("judge_error", 1)
        assert second.detail == f"{type(error).__name__}: {error}"

    @pytest.mark.parametrize(
        "error", [ZeroDivisionError("division by zero"), OddError(), StopIteration(), TimeoutError()]
    )
    @pytest.mark.parametrize("place", ["flow", "required"])
    def test_a_metric_that_raises_touches_no_other(self, error, place):
        class Broken(Metric):
            name, version = "broken", "1"

            @property
            def required_fields(self):
                if armed and place == "required":
                    raise error
                return ("response",)

            def _flow(self, sample):
                raise error
                yield

        armed = False
        broken = Broken(llm=FakeLLM(lambda request: "yes"))
        armed = True
        rows = different(GIVE_UP_AFTER + 20)
        items = asyncio.run(collect(rows, [broken, metric(FakeLLM(lambda request: YES))]))
        assert {type(each) for each in outcomes(items)[1::2]} == {Score}
        reasons = {each.reason for each in outcomes(items)[::2]}
        assert reasons == {"timeout" if isinstance(error, TimeoutError) else "judge_error"}

    @pytest.mark.parametrize("returned", [None, 1, "yes"])
    def test_a_metric_that_returns_no_score(self, returned):
        class Wrong(Metric):
            name, version, required_fields = "wrong", "1", ("response",)

            def _flow(self, sample):
                yield ()
                return returned

        (outcome,) = outcomes(asyncio.run(collect([row(1)], [Wrong(llm=FakeLLM(lambda request: "yes"))])))
        assert outcome.reason == "judge_error"
        assert "a flow must return self._score(...)" in outcome.detail

    def test_a_judge_that_returns_no_reply(self):
        class Wrong(BaseLLM):
            model = "wrong"

            async def agenerate(self, request, /):
                return "yes"

        (outcome,) = outcomes(asyncio.run(collect([row(1)], [metric(Wrong())])))
        assert outcome.detail == "TypeError: Wrong: generate and agenerate must return LLMReply, not str"

    def test_a_long_error_is_cut(self):
        items = asyncio.run(collect([row(1)], [metric(FakeLLM(lambda request: OSError("x" * 9999)))]))
        assert len(outcomes(items)[0].detail) < 600

    def test_a_client_that_calls_the_task_off_is_that_rows_failure(self):
        async def gate(user):
            if "Summary 2." in user:
                raise asyncio.CancelledError

        first, second, third = outcomes(asyncio.run(collect(different(3), [metric(Gated(gate))])))
        assert isinstance(first, Score)
        assert isinstance(third, Score)
        assert second.reason == "cancelled"

    def test_the_judge_goes_down_half_way(self):
        def reply(request):
            return YES if int(re.search(r"Summary (\d+)", request.user)[1]) <= 150 else ConnectionError("refused")

        llm = FakeLLM(reply)
        items = asyncio.run(collect(different(2000), [metric(llm)]))
        found = outcomes(items)
        assert lines(items) == list(range(1, 2001))
        assert [type(each) for each in found] == [Score] * 150 + [Unscored] * 1850
        assert {each.reason for each in found[150:]} == {"judge_error"}
        assert found[-1].detail == f"not asked: the judge had failed on {GIVE_UP_AFTER} samples in a row"
        assert found[-1].usage.llm_calls == 0
        assert 250 <= len(llm.requests) <= 250 + 256  # those under way when it was given up

    def test_failures_with_a_score_between_them_are_no_reason_to_give_up(self):
        def reply(request):
            return ConnectionError("refused") if int(re.search(r"Summary (\d+)", request.user)[1]) % 50 else YES

        llm = FakeLLM(reply)
        asyncio.run(collect(different(1000), [metric(llm)]))
        assert len(llm.requests) == 1000

    def test_time_outs(self):
        async def gate(user):
            await asyncio.sleep(100 if "Summary 2." in user else 1)

        async def run():
            return await collect(different(40), [metric(Gated(gate))], gate=Gate(2), sample_timeout=5, flows=4)

        found = outcomes(run_on_a_clock(run()))
        assert [index for index, each in enumerate(found) if isinstance(each, Unscored)] == [1]
        assert (found[1].reason, found[1].usage.llm_calls) == ("timeout", 1)
        assert found[1].detail == "TimeoutError: its calls took more than 5 s (sample_timeout)"

    def test_a_time_out_in_a_round_of_several_calls(self):
        async def gate(user):
            await asyncio.sleep(2)

        async def run():
            judge = Gated(gate)
            items = await collect(different(3), [Rounds(llm=judge)], gate=Gate(9), sample_timeout=5)
            return outcomes(items), judge.cancelled, asyncio.all_tasks()

        found, cancelled, left = run_on_a_clock(run())
        assert [each.reason for each in found] == ["timeout"] * 3
        assert cancelled == 9
        assert len(left) == 1


class TestJournal:
    def scored(self, path, rows, metrics, **settings):
        with Journal(path) as journal:
            gate = Gate(replies=journal)
            return asyncio.run(collect(rows, metrics, gate=gate, journal=journal, **settings))

    def test_nothing_is_judged_twice(self, tmp_path):
        llm = FakeLLM(lambda request: YES)
        runs = [self.scored(tmp_path / "j.db", different(30), [metric(llm)], repeat=2) for _ in range(3)]
        assert len(llm.requests) == 60
        assert outcomes(runs[0]) == outcomes(runs[1]) == outcomes(runs[2])

    def test_what_failed_is_asked_again(self, tmp_path):
        down = [True]

        def reply(request):
            return ConnectionError("refused") if down[0] and "Summary 2." in request.user else YES

        llm = FakeLLM(reply)
        first = self.scored(tmp_path / "j.db", different(5), [metric(llm)])
        down[0] = False
        second = self.scored(tmp_path / "j.db", different(5), [metric(llm)])
        assert [type(each) for each in outcomes(first)] == [Score, Unscored, Score, Score, Score]
        assert [type(each) for each in outcomes(second)] == [Score] * 5
        assert len(llm.requests) == 6

    def test_the_first_rounds_of_what_was_called_off_are_not_paid_again(self, tmp_path):
        asked = []

        async def gate(user):
            asked.append(user)
            if stuck and len(asked) == 7:  # the first call of the third round
                asyncio.get_running_loop().call_soon(runner[0].cancel)
                await asyncio.Event().wait()

        class Judge(Gated):
            async def agenerate(self, request, /):
                await super().agenerate(request)
                return LLMReply("yes")

        runner = []

        async def main():
            runner.append(asyncio.current_task())
            with Journal(tmp_path / "j.db") as journal:
                return await collect(
                    [row(1)], [Rounds(llm=Judge(gate))], gate=Gate(1, replies=journal), journal=journal
                )

        stuck = True
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
        stuck, runner = False, []
        (outcome,) = outcomes(asyncio.run(main()))
        assert (outcome.value, outcome.usage.llm_calls) == (1.0, 3)
        assert len(asked) == 7 + 3

    def test_the_keys_of_the_outcomes_come_with_them(self, tmp_path):
        items = self.scored(tmp_path / "j.db", different(2), [metric(FakeLLM(lambda request: YES))], repeat=3)
        keys = [key for item in items for key in item.keys]
        assert len(set(keys)) == 6
        with Journal(tmp_path / "j.db") as journal:
            assert [journal.outcome(key) for key in keys] == outcomes(items)

    def test_a_metric_without_a_key_is_refused_before_anything_is_asked(self, tmp_path):
        @dataclass(frozen=True, kw_only=True)
        class Own(ContextRelevancy):
            transform: object = None

        llm = FakeLLM(lambda request: YES)
        with pytest.raises(NoKeyError, match="transform: is a lambda"):
            self.scored(tmp_path / "j.db", different(1), [Own(llm=llm, transform=lambda text: text)])
        assert llm.requests == []

    @pytest.mark.parametrize("method", ["outcome", "put_outcome", "reply", "put_reply"])
    def test_a_journal_that_fails_ends_the_run_and_is_no_judge_error(self, tmp_path, method):
        class Full(Journal):
            pass

        def fail(self, *args):
            raise JournalError("j.db: cannot be written to; is there room on the disk?")

        setattr(Full, method, fail)
        seen = []

        async def run():
            with Full(tmp_path / "j.db") as journal:
                runner = Runner(
                    different(50), [Rounds(llm=FakeLLM(lambda request: "yes"))], Gate(replies=journal), journal=journal
                )
                async with contextlib.aclosing(runner.results()) as items:
                    async for item in items:
                        seen.append(item)

        with pytest.raises(JournalError, match="room on the disk"):
            asyncio.run(run())
        assert seen == []


class TestStopping:
    def test_closing_early_calls_off_what_is_under_way(self):
        async def run():
            begun = 0
            all_begun = asyncio.Event()

            async def gate(user):
                nonlocal begun
                begun += 1
                if begun == 4:
                    all_begun.set()
                await asyncio.Event().wait()

            llm = Gated(gate)
            items = Runner(different(999), [metric(llm)], Gate(4), window=40, flows=8).results()
            waiting = asyncio.ensure_future(anext(items))
            await all_begun.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return llm.cancelled, asyncio.all_tasks()

        cancelled, left = asyncio.run(run())
        assert cancelled == 4
        assert len(left) == 1

    def test_it_does_not_wait_for_input_that_never_comes(self):
        never = threading.Event()

        def stuck():
            yield row(1)
            never.wait()
            yield row(2)

        async def run():
            runner = Runner(stuck(), [metric(FakeLLM(lambda request: YES))], Gate())
            async with contextlib.aclosing(runner.results()) as items:
                first = await anext(items)
                runner.stop()
                return [first, *[item async for item in items]]

        assert lines(asyncio.run(run())) == [1]
        never.set()  # the reader ends quietly: its loop is closed

    def test_a_stop_finishes_the_calls_in_flight_and_asks_no_further(self):
        """What is whole by then comes out, also behind a row that is not."""
        asked = []

        async def run():
            begun = asyncio.Event()
            go = asyncio.Event()

            async def gate(user):
                asked.append(user)
                if len(asked) == 4:
                    begun.set()
                await go.wait()

            class Judge(Gated):
                async def agenerate(self, request, /):
                    await super().agenerate(request)
                    if "Round" in request.system:
                        return LLMReply("yes")
                    return LLMReply('{"answers": {"1": "yes"}}')

            llm = Judge(gate)
            runner = Runner(different(50), [metric(llm), Rounds(llm=llm)], Gate(4), flows=8)
            items = runner.results()
            collecting = asyncio.ensure_future(_all(items))
            await begun.wait()
            runner.stop()
            await asyncio.sleep(0)
            assert not collecting.done()
            go.set()
            found = await collecting
            return found, llm.cancelled, asyncio.all_tasks()

        found, cancelled, left = asyncio.run(run())
        assert (len(asked), cancelled, len(left)) == (4, 0, 1)
        assert found == []  # each row has a metric that was not done

    def test_rows_that_are_whole_come_out_after_a_stop(self):
        async def run():
            go = asyncio.Event()

            async def gate(user):
                if "Summary 1." in user:
                    go.set()
                    await asyncio.sleep(1)
                elif "Summary 9." in user:
                    await asyncio.sleep(1000)

            runner = Runner(different(9), [metric(Gated(gate))], Gate(16), flows=32)
            collecting = asyncio.ensure_future(_all(runner.results()))
            await go.wait()
            await asyncio.sleep(0.5)
            runner.stop()
            return await collecting

        assert lines(run_on_a_clock(run())) == list(range(1, 10))


async def _all(items):
    return [item async for item in items]


def test_a_row_that_comes_as_the_loop_goes_to_wait_for_it_wakes_it():
    async def run():
        go = threading.Event()

        def rows():
            go.wait()
            yield row(1)

        feed = FromThread(rows(), 4)
        loop = feed._loop

        class Between:
            """Lets the row come after the loop has looked for one, and before the thread can know that it waits."""

            call_soon_threadsafe = loop.call_soon_threadsafe

            def create_future(self):
                go.set()
                while not feed._read:
                    time.sleep(0.001)
                return loop.create_future()

        feed._loop = Between()
        return await asyncio.wait_for(feed.next(), 20)

    assert asyncio.run(run()).line == 1
