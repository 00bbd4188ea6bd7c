"""Streaming: order, how much is held, slow input, failures, stopping."""

import asyncio
import contextlib
import gc
import threading
import weakref

import pytest

from ragstone import BaseLLM, LLMReply, Sample, Score, SummarizationScore, Unscored
from ragstone.batch import BadLine, Row, Scored, stream
from ragstone.testing import FakeLLM

YES = {"answers": {"1": "yes"}}


def metric(llm):
    return SummarizationScore(llm=llm, questions=("Is it so?",))


def row(line, response="A summary."):
    return Row(line, Sample(retrieved_contexts=["A long source text."], response=response, id=str(line)))


async def collect(rows, metrics, **settings):
    return [item async for item in stream(rows, metrics, **settings)]


def lines(items):
    return [item.line if isinstance(item, BadLine) else item.row.line for item in items]


class Gated(BaseLLM):
    """Answers when its gate says so; the gate gets the response that the request is about."""

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


def test_outcomes_come_in_input_order_with_bad_lines_in_their_place():
    async def run():
        others_done = asyncio.Event()
        finished = []

        async def gate(user):
            if "First." in user:
                await others_done.wait()
            finished.append(user)
            if len(finished) == 2:
                others_done.set()

        rows = [row(1, "First."), BadLine(2, "no"), row(3), row(4)]
        items = await collect(rows, [metric(Gated(gate))])
        assert "First." in finished[-1]
        assert lines(items) == [1, 2, 3, 4]
        assert items[1] == BadLine(2, "no")

    asyncio.run(run())


def test_the_outcomes_of_a_row_are_in_the_order_of_the_metrics():
    other = SummarizationScore(llm=FakeLLM(lambda request: YES), questions=("Is it so?",), length_penalty=False)
    (item,) = asyncio.run(collect([row(1)], [metric(FakeLLM(lambda request: YES)), other]))
    assert [outcome.value == 1.0 for outcome in item.outcomes] == [False, True]


@pytest.mark.parametrize("window", [1, 3, 16])
def test_a_window_of_rows_is_held_and_no_more(window):
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
        async for item in stream(rows(), [metric(Instant(lambda request: YES))], window=window):
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


def test_a_row_is_scored_while_the_next_one_has_not_come():
    next_line = threading.Event()

    def slow():
        yield row(1)
        next_line.wait()
        yield row(2)

    async def run():
        items = stream(slow(), [metric(FakeLLM(lambda request: YES))])
        first = await anext(items)
        next_line.set()
        return [first, *[item async for item in items]]

    assert lines(asyncio.run(run())) == [1, 2]


def test_stopping_early_cancels_what_is_under_way():
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
        items = stream(map(row, range(1, 1000)), [metric(llm)], window=4)
        waiting = asyncio.ensure_future(anext(items))
        await all_begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return llm.cancelled, asyncio.all_tasks()

    cancelled, left = asyncio.run(run())
    assert cancelled == 4
    assert len(left) == 1


def test_stopping_does_not_wait_for_input_that_never_comes():
    never = threading.Event()

    def stuck():
        yield row(1)
        never.wait()
        yield row(2)

    async def run():
        async with contextlib.aclosing(stream(stuck(), [metric(FakeLLM(lambda request: YES))])) as items:
            return await anext(items)

    assert asyncio.run(run()).row.line == 1
    never.set()  # the reader ends quietly: its loop is closed


@pytest.mark.parametrize("error", [ConnectionError("down"), ValueError("bug"), KeyError("gone"), RecursionError()])
def test_what_a_row_raises_is_recorded_on_it_alone_with_its_type_and_cost(error):
    def reply(request):
        return error if "Second." in request.user else YES

    items = asyncio.run(collect([row(1), row(2, "Second."), row(3)], [metric(FakeLLM(reply))]))
    first, second, third = (item.outcomes[0] for item in items)
    assert isinstance(first, Score)
    assert isinstance(third, Score)
    assert isinstance(second, Unscored)
    assert (second.reason, second.usage.llm_calls) == ("judge_error", 1)
    assert second.detail == f"{type(error).__name__}: {error}"


def test_a_long_error_is_cut():
    (item,) = asyncio.run(collect([row(1)], [metric(FakeLLM(lambda request: OSError("x" * 9999)))]))
    assert len(item.outcomes[0].detail) < 600


def test_what_reading_raises_is_raised_after_the_rows_before_it():
    def rows():
        yield row(1)
        raise OSError(5, "Input/output error")

    seen = []

    async def run():
        async for item in stream(rows(), [metric(FakeLLM(lambda request: YES))]):
            seen.append(item)

    with pytest.raises(OSError, match="Input/output error"):
        asyncio.run(run())
    assert lines(seen) == [1]


@pytest.mark.parametrize("rows", [[], [BadLine(1, "no")]])
def test_no_rows(rows):
    assert asyncio.run(collect(rows, [metric(FakeLLM(lambda request: YES))], window=0)) == rows


def test_a_row_is_scored_on_the_callers_loop():
    async def run():
        loop = asyncio.get_running_loop()

        async def gate(user):
            assert asyncio.get_running_loop() is loop

        return await collect([row(1)], [metric(Gated(gate))])

    (item,) = asyncio.run(run())
    assert isinstance(item, Scored)
    assert isinstance(item.outcomes[0], Score)
