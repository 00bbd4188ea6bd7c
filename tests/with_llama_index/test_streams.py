"""Streams that are evaluated: read once for all evaluators, and scored only where they are whole."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from ragstone.testing import FakeLLM
from ragstone_llama_index import MetricEvaluator

from .models import truth
from .monitored import aread, read

PIECES = ["Jane Austen ", "", "wrote Emma."]
WHOLE = "".join(PIECES)
GONE = "its stream broke off (ConnectionError: gone)"


def waits_in_a_thread(begun, go_on):
    yield PIECES[0]
    begun.set()
    go_on.wait(30)
    yield from PIECES[1:]


async def waits(go_on=None):
    yield PIECES[0]
    await (go_on.wait() if go_on else asyncio.sleep(0))
    for piece in PIECES[1:]:
        yield piece


def broken():
    yield from PIECES
    raise ConnectionError("gone")


async def abroken():
    for piece in broken():
        yield piece


async def begun(coroutine):
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0.01)
    return task


async def test_evaluators_share_an_async_stream_and_one_that_gives_up_harms_no_other():
    go_on = asyncio.Event()
    response = AsyncStreamingResponse(waits(go_on))
    first, second = [await begun(aread(response)) for _ in range(2)]
    user = await begun(response.get_response())
    first.cancel()
    go_on.set()
    assert ((await second).text, str(await user), (await aread(response)).text) == (WHOLE,) * 3
    assert [piece async for piece in response.async_response_gen()] == [WHOLE]


def test_evaluators_share_a_stream_that_the_user_can_still_read():
    events = threading.Event(), threading.Event()
    response = StreamingResponse(waits_in_a_thread(*events))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(read, response)
        events[0].wait(30)
        second = threads.submit(read, response)
        events[1].set()
        assert (first.result().text, second.result().text) == (WHOLE, WHOLE)
    assert (str(response), list(response.response_gen)) == (WHOLE, [WHOLE])


def test_a_stream_that_breaks_off_does_so_for_all_evaluators():
    response = StreamingResponse(broken())
    assert [read(response).problem, asyncio.run(aread(response)).problem] == [GONE] * 2

    async def main():
        response = AsyncStreamingResponse(abroken())
        return [each.problem for each in await asyncio.gather(aread(response), aread(response))]

    assert asyncio.run(main()) == [GONE] * 2


def test_an_async_stream_whose_loop_went_away_does_not_pass_for_a_whole_one():
    kept = []

    async def app():
        kept.append(AsyncStreamingResponse(waits(asyncio.Event())))
        evaluation = await begun(aread(kept[0]))
        for one in asyncio.all_tasks() - {asyncio.current_task()}:
            one.cancel()
        await asyncio.wait([evaluation])

    asyncio.run(app())
    assert asyncio.run(aread(kept[0])).problem == "its stream broke off (CancelledError: )"


async def test_an_unread_async_stream_wants_the_async_method():
    response = AsyncStreamingResponse(waits())
    with pytest.raises(ValueError, match="await aevaluate_response"):
        MetricEvaluator("alignment_coverage", FakeLLM(truth)).evaluate_response(response=response)
    await aread(response)
    assert read(response).text == WHOLE


async def test_a_stream_that_was_read_in_part_is_no_answer():
    expression = (piece async for piece in waits())
    assert (await aread(AsyncStreamingResponse(expression))).text == WHOLE
    half, ended, kept = (AsyncStreamingResponse(waits()) for _ in range(3))
    await anext(half.response_gen)
    assert [piece async for piece in ended.response_gen] == PIECES
    reading = kept.async_response_gen()  # into the response's text
    await anext(reading)
    sync = StreamingResponse(piece for piece in PIECES)
    next(sync.response_gen)
    for response, reason in ((half, "was read before"), (ended, "was read before"), (kept, "left half-read")):
        answer = await aread(response)
        assert answer.text is None
        assert reason in answer.problem
    assert (read(sync).text, (await aread(sync)).text) == (None, None)
    assert [piece async for piece in half.response_gen] == PIECES[1:]
