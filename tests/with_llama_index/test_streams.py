"""Streams that the user reads before, while or after they are evaluated: the source is read once, and by all."""

import asyncio
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from ragstone.testing import FakeLLM
from ragstone_llama_index import MetricEvaluator

from .models import truth
from .monitored import aread, read

PIECES = ["Jane Austen ", "", "wrote Emma."]
WHOLE = "".join(PIECES)
GONE = "its stream broke off (ConnectionError: gone)"


class Source:
    """A stream that pauses after its first piece until it is let go on."""

    def __init__(self, event, error=None):
        self.paused, self.go_on = event(), event()
        self.error = error
        self.begun = 0

    def sync(self):
        self.begun += 1
        yield PIECES[0]
        self.paused.set()
        self.go_on.wait(30)
        yield from PIECES[1:]

    async def asynchronous(self):
        self.begun += 1
        yield PIECES[0]
        self.paused.set()
        await self.go_on.wait()
        for piece in PIECES[1:]:
            yield piece
        if self.error:
            raise self.error


async def aiterate(response):
    return "".join([piece async for piece in response.response_gen])


async def evaluated(source):
    """Return a response whose evaluation waits for the second piece, and that evaluation."""
    response = AsyncStreamingResponse(source.asynchronous())
    task = asyncio.create_task(aread(response))
    await source.paused.wait()
    return response, task


async def begun(coroutine):
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0)
    return task


async def test_the_user_reads_an_async_stream_while_it_is_evaluated():
    source = Source(asyncio.Event)
    response, first = await evaluated(source)
    user, second = await begun(aiterate(response)), await begun(aread(response))
    source.go_on.set()
    assert await user == WHOLE
    assert [(await first).text, (await second).text] == [WHOLE] * 2
    assert (source.begun, response.response_txt, (await response.get_response()).response) == (1, WHOLE, WHOLE)


@pytest.mark.parametrize("gives_up", ["user", "evaluator"])
async def test_a_reader_of_an_async_stream_who_gives_up_harms_no_other(gives_up):
    source = Source(asyncio.Event)
    response, task = await evaluated(source)
    user = await begun(aiterate(response))
    leaves, stays = (task, user) if gives_up == "evaluator" else (user, task)
    leaves.cancel()
    await asyncio.wait([leaves])
    source.go_on.set()
    assert await stays in (WHOLE, await aread(response))
    assert (await aread(response)).text == response.response_txt == WHOLE


async def test_an_async_stream_is_read_on_one_loop():
    source = Source(asyncio.Event)
    response, task = await evaluated(source)
    with pytest.raises(ValueError, match="another event loop is reading"):
        str(response)  # reads on a loop of its own, and holds this one up meanwhile
    with pytest.raises(ValueError, match="another event loop is reading"):
        await asyncio.to_thread(lambda: asyncio.run(aread(response)))
    source.go_on.set()
    assert (await task).text == (await aread(response)).text == WHOLE


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_an_async_stream_whose_loop_went_away_does_not_pass_for_a_whole_one():
    source = Source(asyncio.Event)
    response = AsyncStreamingResponse(source.asynchronous())

    async def app():
        task = asyncio.create_task(aread(response))
        await source.paused.wait()
        for one in asyncio.all_tasks() - {asyncio.current_task()}:
            one.cancel()
        await asyncio.wait([task])

    async def later():
        assert await anext(response.response_gen) == PIECES[0]
        with pytest.raises(CancelledError):
            await anext(response.response_gen)

    asyncio.run(app())
    asyncio.run(later())
    assert asyncio.run(aread(response)).problem == "its stream broke off (CancelledError: )"


async def test_an_unread_async_stream_wants_the_async_method():
    response = AsyncStreamingResponse(waits())
    with pytest.raises(ValueError, match="await aevaluate_response"):
        MetricEvaluator("alignment_coverage", FakeLLM(truth)).evaluate_response(response=response)
    await aread(response)
    assert read(response).text == WHOLE


async def waits():
    await asyncio.sleep(0)
    for piece in PIECES:
        yield piece


def check_half_read(answer):
    assert answer.text is None
    assert "was read before" in answer.problem


async def test_an_async_stream_is_read_if_it_is_fresh_and_else_said_to_be_half_read():
    expression = (piece async for piece in waits())
    assert (await aread(AsyncStreamingResponse(expression))).text == WHOLE
    for taken in (1, 3):
        response = AsyncStreamingResponse(waits())
        pieces = [await anext(response.response_gen) for _ in range(taken)]
        check_half_read(await aread(response))
        assert pieces + [piece async for piece in response.response_gen] == PIECES
    response = StreamingResponse(piece for piece in PIECES)
    next(response.response_gen)
    check_half_read(read(response))
    check_half_read(await aread(response))
    response = AsyncStreamingResponse(waits())
    user = await begun(aiterate(response))  # waits for the first piece
    check_half_read(await aread(response))
    assert await user == WHOLE


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_the_user_reads_a_stream_while_it_is_evaluated(threads):
    source = Source(threading.Event)
    response = StreamingResponse(source.sync())
    evaluators = [threads.submit(read, response)]
    source.paused.wait(30)
    evaluators.append(threads.submit(read, response))
    user = threads.submit(str, response)
    wait([user], 0.02)  # lets it collide; in time or not, it gets the whole
    source.go_on.set()
    assert [user.result(), *(evaluator.result().text for evaluator in evaluators)] == [WHOLE] * 3
    assert (source.begun, response.response_txt, str(response)) == (1, WHOLE, WHOLE)


def test_a_stream_that_breaks_off_does_so_for_the_evaluator_and_then_the_user():
    def broken():
        yield from PIECES
        raise ConnectionError("gone")

    response = StreamingResponse(broken())
    assert [read(response).problem, asyncio.run(aread(response)).problem] == [GONE] * 2
    pieces = []
    with pytest.raises(ConnectionError, match="gone"):
        pieces.extend(response.response_gen)
    assert pieces == PIECES


async def test_an_async_stream_that_breaks_off_does_so_for_the_evaluator_and_then_the_user():
    source = Source(asyncio.Event, ConnectionError("gone"))
    source.go_on.set()
    response = AsyncStreamingResponse(source.asynchronous())
    assert (await aread(response)).problem == GONE
    with pytest.raises(ConnectionError, match="gone"):
        await aiterate(response)
