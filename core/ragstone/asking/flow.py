"""A metric's algorithm as a generator, and the two drivers that run it.

A flow yields *rounds*: tuples of requests that do not depend on one another. It is sent their replies, in
order, and returns its result in the end. It never calls anything itself, so one algorithm serves threads
(`run`), an event loop (`arun`), a provider's batch endpoint or a dry run, and is tested with `.send()`.
"""

import asyncio
import contextvars
import inspect
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragstone.asking.prompt import one_line, sendable
from ragstone.asking.reply import BadReply
from ragstone.judge import LLM, Embedder, LLMReply, LLMRequest
from ragstone.outcome import Outcome, UnscoredReason, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

_THREADS = 32


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to be placed in one call to the embedder; the reply is what the embedder returned."""

    texts: tuple[str, ...]


Request = LLMRequest | EmbedRequest
Round = tuple[Request, ...]
Flow = Generator[Round, tuple[Any, ...], T]


class CannotScore(Exception):  # noqa: N818 - it is an outcome on its way, not a programming error
    """Raised inside a flow to end it as `Unscored(reason, detail)`."""

    def __init__(self, reason: UnscoredReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: UnscoredReason = reason
        self.detail = detail


def ask(request: LLMRequest, parse: Callable[[LLMReply], T]) -> Flow[T]:
    """Ask the judge, read its reply, and ask once more if it cannot be read.

    Args:
        request: What to ask.
        parse: Reads the reply; raises `BadReply` with what was wrong, in words for the judge.

    Raises:
        CannotScore: "judge_unparseable" when the second reply cannot be read either.
    """
    (reply,) = yield (request,)
    try:
        return parse(reply)
    except BadReply as first:
        wrong = _said(first)
    again = f"{request.user}\n\nYour previous reply could not be used: {wrong}. Reply again, in the asked form only."
    (reply,) = yield (replace(request, user=again),)
    try:
        return parse(reply)
    except BadReply as second:
        raise CannotScore(
            "judge_unparseable", f"{request.task}: {_said(second)} (first reply: {wrong}; asked twice)"
        ) from None


def _said(bad: BadReply) -> str:
    # It may quote the reply, which is nobody's instruction: one short line that every transport carries.
    return one_line(sendable(str(bad)))[:300]


def embed(texts: Sequence[str]) -> Flow["NDArray[np.float32]"]:
    """Place the texts in one call."""
    (vectors,) = yield (EmbedRequest(tuple(texts)),)
    return cast("NDArray[np.float32]", vectors)


def each(flows: Sequence[Flow[T]]) -> Flow[list[T]]:
    """Run independent flows side by side: their rounds are merged, their results come in order."""
    results: dict[int, T] = {}
    waiting: dict[int, Round] = {}

    def step(i: int, replies: tuple[Any, ...] | None) -> None:
        try:
            waiting[i] = next(flows[i]) if replies is None else flows[i].send(replies)
        except StopIteration as stop:
            results[i] = stop.value

    try:
        for i in range(len(flows)):
            step(i, None)
        while waiting:
            asked, waiting = waiting, {}
            replies = yield tuple(request for round_ in asked.values() for request in round_)
            start = 0
            for i, round_ in asked.items():
                step(i, replies[start : start + len(round_)])
                start += len(round_)
    finally:
        for flow in flows:
            flow.close()
    return [results[i] for i in range(len(flows))]


def both(first: Flow[A], second: Flow[B]) -> Flow[tuple[A, B]]:
    """Run two flows of different results side by side."""
    flows = cast("list[Flow[Any]]", [first, second])
    a, b = yield from each(flows)
    return a, b


class Meter:
    """Counts what a flow costs while it runs, so that the cost is known even when it fails."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._llm_calls = 0
        self._embed_calls = 0
        self._input: int | None = 0
        self._output: int | None = 0

    def asking(self, round_: Round) -> None:
        """Count the calls of a round that is about to be made."""
        for request in round_:
            if isinstance(request, LLMRequest):
                self._llm_calls += 1
            else:
                self._embed_calls += 1

    def answered(self, replies: Sequence[Any]) -> None:
        """Add up the tokens of a round's replies."""
        for reply in replies:
            if isinstance(reply, LLMReply):
                self._input = _plus(self._input, reply.input_tokens)
                self._output = _plus(self._output, reply.output_tokens)

    def usage(self) -> Usage:
        """Return the cost so far."""
        return Usage(
            llm_calls=self._llm_calls,
            embed_calls=self._embed_calls,
            input_tokens=self._input,
            output_tokens=self._output,
            seconds=time.perf_counter() - self._started,
        )


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def run(flow: Flow[Outcome], llm: LLM, embedder: Embedder | None = None, meter: Meter | None = None) -> Outcome:
    """Drive a flow with the judge's sync half; the requests of a round go out in threads.

    Needs no event loop and minds none, so it works inside a running one (and blocks it).
    """
    meter = meter or Meter()

    def call(request: Request) -> object:
        if isinstance(request, LLMRequest):
            return _checked(llm.generate(request), llm)
        return _need(embedder).embed(request.texts)

    try:
        replies: tuple[object, ...] | None = None
        while True:
            done, value = _step(flow, replies)
            if done:
                return _with_usage(value, meter)
            meter.asking(value)
            replies = (call(value[0]),) if len(value) == 1 else _in_threads(call, value)
            meter.answered(replies)
    finally:
        flow.close()


def _in_threads(call: Callable[[Request], object], round_: Round) -> tuple[object, ...]:
    with ThreadPoolExecutor(min(_THREADS, len(round_)), thread_name_prefix="ragstone") as pool:
        futures = [pool.submit(contextvars.copy_context().run, call, request) for request in round_]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            failed = [future for future in futures if future.done() and future.exception()]
            return tuple([future.result() for future in failed or futures])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # one failed: do not pay for the rest
            raise


async def arun(
    flow: Flow[Outcome],
    llm: LLM,
    embedder: Embedder | None = None,
    meter: Meter | None = None,
    *,
    offload: bool = False,
) -> Outcome:
    """Drive a flow with the judge's async half on the running loop; a round's requests go out at once.

    Args:
        flow: What to run.
        llm: The judge.
        embedder: Where the flow embeds.
        meter: Counts the cost; pass one to know it even when this raises.
        offload: Step the flow in a thread, for samples so large that splitting and prompt building would
            hold up the loop.
    """
    meter = meter or Meter()

    async def call(request: Request) -> object:
        if isinstance(request, LLMRequest):
            return _checked(await llm.agenerate(request), llm)
        return await _need(embedder).aembed(request.texts)

    try:
        replies: tuple[object, ...] | None = None
        while True:
            step = partial(_step, flow, replies)
            done, value = await asyncio.to_thread(step) if offload else step()
            if done:
                return _with_usage(value, meter)
            meter.asking(value)
            replies = (await call(value[0]),) if len(value) == 1 else await _at_once(call, value)
            meter.answered(replies)
    finally:
        if (
            inspect.getgeneratorstate(flow) != inspect.GEN_RUNNING
        ):  # cancelled while a thread steps it: it is dropped when that step ends
            flow.close()


def _step(flow: Flow[Outcome], replies: tuple[object, ...] | None) -> tuple[bool, Any]:
    """Advance the flow: (False, next round) or (True, result). StopIteration cannot cross a thread."""
    try:
        return False, next(flow) if replies is None else flow.send(replies)
    except StopIteration as stop:
        return True, stop.value


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
    if not isinstance(reply, LLMReply):
        raise TypeError(
            f"{type(llm).__name__}: generate and agenerate must return LLMReply, not {type(reply).__name__}"
        )
    return reply


def _need(embedder: Embedder | None) -> Embedder:
    if embedder is None:
        raise TypeError("this metric embeds texts: name an embedder (a metric's _embedder() returns it)")
    return embedder


def _with_usage(outcome: Outcome, meter: Meter) -> Outcome:
    return outcome.model_copy(update={"usage": meter.usage()})
