"""Streams that the user reads while they are evaluated: each gets every piece, and the source is read once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from ragstone.testing import FakeLLM
from ragstone_llama_index import AlignmentCoverageEvaluator
from ragstone_llama_index.responses import aread_response, read_response

from .models import truth

FACTS = [NodeWithScore(node=TextNode(text="Jane Austen wrote Emma."))]
PIECES = ["Jane Austen ", "", "wrote Emma."]
WHOLE = "".join(PIECES)


def read(response):
    return read_response(response, MetadataMode.NONE)


async def aread(response):
    return await aread_response(response, MetadataMode.NONE)


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
        if self.error:
            raise self.error

    async def asynchronous(self):
        self.begun += 1
        yield PIECES[0]
        self.paused.set()
        await self.go_on.wait()
        for piece in PIECES[1:]:
            yield piece
        if self.error:
            raise self.error


# --- async -------------------------------------------------------------------------------------------------------


async def aiterate(response):
    return "".join([piece async for piece in response.response_gen])


async def aiterate_by_method(response):
    return "".join([piece async for piece in response.async_response_gen()])


async def aget(response):
    return (await response.get_response()).response


async def aprint(response):
    await response.print_response_stream()
    return response.response_txt


AWAYS = pytest.mark.parametrize("use", [aiterate, aiterate_by_method, aget, aprint])


async def evaluated(source):
    """Return a response whose evaluation waits for the second piece, and that evaluation."""
    response = AsyncStreamingResponse(source.asynchronous(), FACTS)
    task = asyncio.create_task(aread(response))
    await source.paused.wait()
    return response, task


@AWAYS
def test_the_user_reads_an_async_stream_while_it_is_evaluated(use):
    async def app():
        source = Source(asyncio.Event)
        response = AsyncStreamingResponse(source.asynchronous(), FACTS)
        evaluator = AlignmentCoverageEvaluator(FakeLLM(truth))
        tasks = [
            asyncio.create_task(evaluator.aevaluate_response(query="Who wrote Emma?", response=response))
            for _ in range(2)
        ]
        await source.paused.wait()
        user = asyncio.create_task(use(response))
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(evaluator.aevaluate_response(query="Who wrote Emma?", response=response)))
        await asyncio.sleep(0)
        source.go_on.set()
        assert await user == WHOLE
        assert [(result.score, result.response) for result in await asyncio.gather(*tasks)] == [(1.0, WHOLE)] * 3
        assert (source.begun, response.response_txt, str(response), await aget(response)) == (1, WHOLE, WHOLE, WHOLE)

    asyncio.run(app())


def test_what_the_user_takes_first_the_evaluator_gets_as_well():
    async def app():
        source = Source(asyncio.Event)
        response, task = await evaluated(source)
        assert await anext(response.response_gen) == PIECES[0]
        source.go_on.set()
        assert (await task).text == WHOLE
        assert [piece async for piece in response.response_gen] == PIECES[1:]
        assert response.response_txt == WHOLE

    asyncio.run(app())


@AWAYS
def test_an_async_stream_that_breaks_off_does_so_for_the_user_and_the_evaluator(use):
    async def app():
        source = Source(asyncio.Event, ConnectionError("gone"))
        response, task = await evaluated(source)
        user = asyncio.create_task(use(response))
        await asyncio.sleep(0)
        source.go_on.set()
        with pytest.raises(ConnectionError, match="gone"):
            await user
        assert (await task).problem == "its stream broke off (ConnectionError: gone)"

    asyncio.run(app())


@pytest.mark.parametrize("closed", [True, False])
def test_a_user_who_stops_reading_an_async_stream_harms_no_evaluator(closed):
    async def app():
        source = Source(asyncio.Event)
        response, task = await evaluated(source)
        assert await anext(response.response_gen) == PIECES[0]
        if closed:
            await response.response_gen.aclose()
        else:
            user = asyncio.create_task(aiterate(response))
            await asyncio.sleep(0)
            user.cancel()
            await asyncio.wait([user])
        source.go_on.set()
        assert (await task).text == response.response_txt == WHOLE

    asyncio.run(app())


def test_an_evaluator_that_gives_up_harms_no_user_of_an_async_stream():
    async def app():
        source = Source(asyncio.Event)
        response, task = await evaluated(source)
        user = asyncio.create_task(aiterate(response))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        source.go_on.set()
        return await user

    assert asyncio.run(app()) == WHOLE


def test_an_async_stream_cannot_be_waited_for_on_another_loop_and_is_whole_after_that():
    async def app():
        source = Source(asyncio.Event)
        response, task = await evaluated(source)
        with pytest.raises(RuntimeError):  # LlamaIndex' own words: "Detected nested async"
            str(response)  # reads on a loop of its own, and holds this one up meanwhile
        source.go_on.set()
        assert (await task).text == WHOLE
        assert str(response) == WHOLE
        return await aiterate(response)

    assert asyncio.run(app()) == WHOLE


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("came", [0, 1])
def test_an_async_stream_whose_loop_went_away_does_not_pass_for_a_whole_one(came):
    source = Source(asyncio.Event)
    response = AsyncStreamingResponse(source.asynchronous())

    async def app():
        asyncio.create_task(aread(response))  # noqa: RUF006 - cancelled below
        await (source.paused.wait() if came else asyncio.sleep(0))
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def later():
        for piece in PIECES[:came]:
            assert await anext(response.response_gen) == piece
        with pytest.raises(RuntimeError, match="reading it was cancelled"):
            await anext(response.response_gen)

    asyncio.run(app())
    asyncio.run(later())
    assert asyncio.run(aread(response)).problem.endswith("reading it was cancelled)")


# --- half-read ---------------------------------------------------------------------------------------------------


class App:
    async def stream(self, *pieces):
        for piece in pieces:
            yield (lambda: self and piece)()


def closure():
    words, said = PIECES, []

    async def stream():
        for word in words:
            said.append(word)
            yield word

    return stream()


async def waits():
    await asyncio.sleep(0)
    for piece in PIECES:
        yield piece


FRESH = pytest.mark.parametrize(
    "fresh", [closure, waits, lambda: App().stream(*PIECES), lambda: (piece async for piece in waits())]
)


@FRESH
@pytest.mark.parametrize("taken", [1, 3])
def test_an_async_stream_that_was_half_read_is_said_to_be_as_a_sync_one(fresh, taken):
    async def app():
        response = AsyncStreamingResponse(fresh(), FACTS)
        got = [await anext(response.response_gen) for _ in range(taken)]
        answers = [await aread(response) for _ in range(2)]
        return got + [piece async for piece in response.response_gen], answers

    half = StreamingResponse(piece for piece in PIECES)
    next(half.response_gen)
    got, answers = asyncio.run(app())
    assert got == PIECES
    assert [(answer.text, answer.problem) for answer in answers] == [(None, read(half).problem)] * 2
    assert "was read before" in answers[0].problem


def test_an_async_stream_whose_first_piece_the_user_awaits_is_the_users():
    async def app():
        response = AsyncStreamingResponse(waits())
        user = asyncio.create_task(aiterate(response))
        await asyncio.sleep(0)
        return (await aread(response)).problem, await user

    problem, text = asyncio.run(app())
    assert "was read before" in problem
    assert text == WHOLE


@FRESH
def test_a_fresh_async_stream_is_read(fresh):
    assert asyncio.run(aread(AsyncStreamingResponse(fresh()))).text == WHOLE


# --- sync --------------------------------------------------------------------------------------------------------


def iterate(response):
    return "".join(response.response_gen)


def get(response):
    return response.get_response().response


def print_it(response):
    response.print_response_stream()
    return response.response_txt


WAYS = pytest.mark.parametrize("use", [iterate, get, str, print_it])


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


@WAYS
def test_the_user_reads_a_stream_while_it_is_evaluated(use, threads):
    source = Source(threading.Event)
    response = StreamingResponse(source.sync(), FACTS)
    evaluators = [threads.submit(read, response)]
    source.paused.wait(30)
    evaluators.append(threads.submit(read, response))
    user = threads.submit(use, response)
    wait([user], 0.02)  # lets it collide; in time or not, it gets the whole
    source.go_on.set()
    assert user.result() == WHOLE
    assert [evaluator.result().text for evaluator in evaluators] == [WHOLE] * 2
    assert (source.begun, response.response_txt, str(response), get(response)) == (1, WHOLE, WHOLE, WHOLE)


def test_a_piece_that_has_come_does_not_wait_for_the_next(threads):
    source = Source(threading.Event)
    response = StreamingResponse(source.sync())
    evaluator = threads.submit(read, response)
    source.paused.wait(30)
    assert next(response.response_gen) == PIECES[0]
    source.go_on.set()
    assert list(response.response_gen) == PIECES[1:]
    assert evaluator.result().text == WHOLE


@WAYS
def test_a_stream_that_breaks_off_does_so_for_the_user_and_the_evaluator(use, threads):
    source = Source(threading.Event, ConnectionError("gone"))
    response = StreamingResponse(source.sync())
    evaluator = threads.submit(read, response)
    source.paused.wait(30)
    user = threads.submit(use, response)
    wait([user], 0.02)
    source.go_on.set()
    with pytest.raises(ConnectionError, match="gone"):
        user.result()
    assert evaluator.result().problem == "its stream broke off (ConnectionError: gone)"


def test_a_user_who_closes_a_stream_harms_no_evaluator(threads):
    source = Source(threading.Event)
    response = StreamingResponse(source.sync())
    evaluator = threads.submit(read, response)
    source.paused.wait(30)
    next(response.response_gen)
    response.response_gen.close()
    source.go_on.set()
    assert evaluator.result().text == response.response_txt == WHOLE


def test_the_user_reads_a_stream_whose_evaluator_gave_up_before_its_thread_began():
    async def app(response):
        busy = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        blocked = asyncio.ensure_future(asyncio.to_thread(busy.wait, 30))
        await asyncio.sleep(0)
        evaluator = asyncio.create_task(aread(response))
        await asyncio.sleep(0)
        user = response.response_gen
        evaluator.cancel()
        await asyncio.wait([evaluator])
        first = next(user)
        busy.set()
        await blocked
        return [first, *user], await aread(response)

    got, answer = asyncio.run(app(StreamingResponse(iter(PIECES))))
    assert got == PIECES
    assert answer.text == WHOLE


def test_an_interrupt_is_its_threads_own_and_the_stream_does_not_pass_for_a_whole_one():
    def interrupted():
        yield PIECES[0]
        raise KeyboardInterrupt

    response = StreamingResponse(interrupted())
    with pytest.raises(KeyboardInterrupt):
        read(response)
    assert read(response).problem == "its stream broke off (RuntimeError: reading it was interrupted)"
    assert next(response.response_gen) == PIECES[0]
    with pytest.raises(RuntimeError, match="reading it was interrupted"):
        next(response.response_gen)


# --- both --------------------------------------------------------------------------------------------------------


def test_pieces_that_are_no_text_reach_the_user_and_are_said_to_be_none():
    async def nothing():
        yield None

    async def app():
        response = AsyncStreamingResponse(nothing())
        return (await aread(response)).problem, [piece async for piece in response.response_gen]

    response = StreamingResponse(iter([None]))
    assert "TypeError" in read(response).problem
    assert list(response.response_gen) == [None]
    problem, got = asyncio.run(app())
    assert "TypeError" in problem
    assert got == [None]
