"""The two drivers of a flow: threads and the judge's sync half, or an event loop and its async half."""

import asyncio
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, cast

from ragstone.judge import LLM, Embedder, LLMReply, LLMRequest
from ragstone.judging.flow import Flow, Meter, Request, Round
from ragstone.outcome import Outcome, Score, Unscored

_THREADS = 32

Answering = Callable[[Request, LLM, Embedder | None], Awaitable[object]]
"""How a request gets its reply: an `LLMReply`, or the vectors of an `EmbedRequest`; raises what the provider raises."""


def run(flow: Flow[Outcome], llm: LLM, embedder: Embedder | None = None, meter: Meter | None = None) -> Outcome:
    """Drive a flow with the judge's sync half; the requests of a round go out in threads.

    Needs no event loop and minds none, so it works inside a running one (and blocks it).
    """
    meter = meter or Meter()

    def call(request: Request) -> object:
        if isinstance(request, LLMRequest):
            return _checked(llm.generate(request), llm)
        return needed(embedder).embed(request.texts)

    try:
        replies: tuple[object, ...] | None = None
        while True:
            done, value = advance(flow, replies)
            if done:
                return _with_usage(value, meter)
            meter.asking(value)
            replies = (call(value[0]),) if len(value) == 1 else _in_threads(call, value)
            meter.answered(replies)
    finally:
        flow.close()


def _in_threads(call: Callable[[Request], object], round_: Round) -> tuple[object, ...]:
    replies: dict[int, object] = {}
    failures: list[BaseException] = []
    left = deque(enumerate(round_))
    ended = SimpleQueue[None]()

    def work() -> None:
        while not failures and left:  # one failed: do not pay for the rest
            try:
                place, request = left.popleft()
            except IndexError:
                break
            try:
                replies[place] = call(request)
            except BaseException as error:
                failures.append(error)
            ended.put(None)

    # Daemon threads, which a pool's are not: a judge that hangs must not keep the interpreter from ending.
    for i in range(min(_THREADS, len(round_))):
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), name=f"ragstone-{i}", daemon=True).start()
    for _ in round_:
        ended.get()
        if failures:
            raise failures[0]  # nor wait for it
    return tuple([replies[place] for place in range(len(round_))])


async def arun(
    flow: Flow[Outcome],
    llm: LLM,
    embedder: Embedder | None = None,
    meter: Meter | None = None,
    *,
    offload: bool = False,
    answering: Answering | None = None,
) -> Outcome:
    """Drive a flow with the judge's async half on the running loop; a round's requests go out at once.

    Args:
        flow: What to run.
        llm: The judge.
        embedder: Where the flow embeds.
        meter: Counts the cost; pass one to know it even when this raises.
        offload: Step the flow in a thread, for samples so large that splitting and prompt building would
            hold up the loop.
        answering: What answers each request in place of the judge's async half, for runners that hold calls
            back, share replies or bound their time. What it raises ends the flow and is raised here.
    """
    meter = meter or Meter()
    answer = answering or _ask

    async def call(request: Request) -> object:
        reply = await answer(request, llm, embedder)
        return _checked(reply, llm) if isinstance(request, LLMRequest) else reply

    try:
        replies: tuple[object, ...] | None = None
        while True:
            step = partial(advance, flow, replies)
            done, value = await asyncio.to_thread(step) if offload else step()
            if done:
                return _with_usage(value, meter)
            meter.asking(value)
            replies = (await call(value[0]),) if len(value) == 1 else await _at_once(call, value)
            meter.answered(replies)
            await asyncio.sleep(0)  # calls that waited for this one's slot go out before we compute
    finally:
        # Cancelled while a thread steps it, a flow is dropped when that step ends.
        if inspect.getgeneratorstate(flow) != inspect.GEN_RUNNING:
            flow.close()


async def _ask(request: Request, llm: LLM, embedder: Embedder | None) -> object:
    if isinstance(request, LLMRequest):
        return await llm.agenerate(request)
    return await needed(embedder).aembed(request.texts)


def advance(flow: Flow[Outcome], replies: tuple[object, ...] | None) -> tuple[bool, Any]:
    """Advance the flow: (False, next round) or (True, result). StopIteration cannot cross a thread."""
    try:
        round_ = cast("object", next(flow) if replies is None else flow.send(replies))
    except StopIteration as stop:
        if not isinstance(stop.value, (Score, Unscored)):
            raise TypeError(f"a flow must return self._score(...), not {type(stop.value).__name__}") from None
        return True, stop.value
    if not isinstance(round_, tuple):
        raise TypeError(f"a flow must yield a tuple of requests, not {type(round_).__name__}")
    return False, cast("Round", round_)


async def _at_once(call: Callable[[Request], Any], round_: Round) -> tuple[object, ...]:
    tasks = [asyncio.ensure_future(call(request)) for request in round_]
    try:
        return tuple(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _checked(reply: object, llm: LLM) -> LLMReply:
    name = type(llm).__name__
    if not isinstance(reply, LLMReply):
        raise TypeError(f"{name}: generate and agenerate must return LLMReply, not {type(reply).__name__}")
    if not isinstance(cast("object", reply.text), str):
        raise TypeError(f"{name}: LLMReply.text must be str, not {type(reply.text).__name__}")
    return reply


def needed(embedder: Embedder | None) -> Embedder:
    """Return the embedder.

    Raises:
        TypeError: There is none.
    """
    if embedder is None:
        raise TypeError("this metric embeds texts: name an embedder (its field `embedder` holds one)")
    return embedder


def _with_usage(outcome: Outcome, meter: Meter) -> Outcome:
    return outcome.model_copy(update={"usage": meter.usage()})
