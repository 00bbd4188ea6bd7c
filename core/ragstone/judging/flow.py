"""A metric's algorithm as a generator, and the two drivers that run it.

A flow yields *rounds*: tuples of requests that do not depend on one another. It is sent their replies, in
order, and returns its result in the end. It never calls anything itself, so one algorithm serves threads (`run`)
and an event loop (`arun`) or a dry run, and is tested with `.send()`. An empty round asks nothing: a flow that
computes for long yields one now and then, so that its driver may stop it or let others compute.
"""

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ragstone.errors import CannotScore
from ragstone.judge import (
    LLM,
    DecisionReply,
    DecisionRequest,
    Embedder,
    Judge,
    LLMReply,
    LLMRequest,
    Meter,
    WriterRequest,
)
from ragstone.judging.prompt import one_line, sendable
from ragstone.judging.reply import BadReply, bare_answer, was_cut_off, was_withheld
from ragstone.outcome import Outcome, Score, Unscored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_THREADS = 32
_CUT_OFF = "the reply was cut off"
_WITHHELD = "the reply was withheld by a filter or refused by the model"
_IT_READS = ". What there is of it: "
_REPLIES: tuple[tuple[type, str, str, type], ...] = (
    (LLMReply, "generate and agenerate", "text", str),
    (DecisionReply, "decide and adecide", "probabilities", Mapping),
)

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to be placed in one call to the embedder; the reply is what the embedder returned."""

    texts: tuple[str, ...]


Request = LLMRequest | DecisionRequest | EmbedRequest
Model = Judge | Embedder
Round = tuple[Request, ...]
Flow = Generator[Round, Any, T]
Answering = Callable[[Request, Model], Awaitable[object]]
"""How a request gets its reply from a model; raises what the provider raises."""


class Models(NamedTuple):
    """Who answers a flow's requests.

    Attributes:
        judge: What is judged.
        embedder: `EmbedRequest`s.
        writer: `WriterRequest`s; None: the judge.
    """

    judge: Judge
    embedder: Embedder | None = None
    writer: LLM | None = None

    def of(self, request: Request) -> Model:
        """Return who answers a request; a TypeError where there is none."""
        if isinstance(request, EmbedRequest):
            if self.embedder is None:
                raise TypeError("this metric embeds texts: name an embedder (its field `embedder` holds one)")
            return self.embedder
        return self.writer if isinstance(request, WriterRequest) and self.writer is not None else self.judge


def calls_of(model: Any, request: Request) -> tuple[Callable[[], object], Callable[[], Awaitable[object]]]:  # noqa: ANN401
    """Return the call of a model for a request, by its sync and by its async method."""
    if isinstance(request, EmbedRequest):
        return partial(model.embed, request.texts), partial(model.aembed, request.texts)
    if isinstance(request, DecisionRequest):
        return partial(model.decide, request), partial(model.adecide, request)
    return partial(model.generate, request), partial(model.agenerate, request)


def ask(request: LLMRequest, parse: Callable[[LLMReply], T]) -> Flow[T]:
    """Ask the judge, read its reply, and ask once more if it cannot be read.

    A reply that was withheld is not read. Nor is the judge asked again where that, or a cut, would come in the same
    way.

    Args:
        request: What to ask.
        parse: Reads the reply, whose text is the bare answer (`bare_answer`); raises `BadReply` with what was wrong, in
            words for the judge.

    Raises:
        CannotScore: "judge_unparseable" when the second reply cannot be read either, or when a reply was withheld, or
            cut off before it could be read.
    """
    (reply,) = yield (request,)
    try:
        return _read_reply(reply, request, parse)
    except BadReply as bad:
        wrong = _problem(bad)
    again = f"{request.user}\n\nYour previous reply could not be used: {wrong}. Reply again, in the asked form only."
    (reply,) = yield (replace(request, user=again),)
    try:
        return _read_reply(reply, request, parse)
    except BadReply as bad:
        raise _unusable(request, f"{_problem(bad)} (first reply: {wrong}; asked twice)") from None


def _read_reply(reply: LLMReply, request: LLMRequest, parse: Callable[[LLMReply], T]) -> T:
    ended = one_line(sendable(str(reply.ended)))[:100] if reply.ended else ""
    if ended and was_withheld(ended):
        raise _unusable(request, f"{_WITHHELD} ({ended}); ask another judge, or set the provider's filter otherwise")
    cut_off = bool(ended) and was_cut_off(ended)
    text, thought = bare_answer(reply.text, request.choices)
    if thought and cut_off:
        # The mark behind the thoughts may be one that they quote.
        text = ""
    if thought or text != reply.text:
        # Probabilities that come with thoughts may be those of the thoughts' first word.
        reply = replace(reply, text=text, probabilities=None if thought else reply.probabilities)
    try:
        return parse(reply)
    except BadReply as bad:
        if not cut_off:
            raise
        stopped = "" if reply.output_tokens is None else f"; it stopped at {reply.output_tokens} tokens"
        way_out = f"raise max_tokens, or take a judge with a longer context{stopped}"
        raise _unusable(request, f"{_CUT_OFF} ({ended}); {way_out}{_IT_READS}{_problem(bad)}") from None


def _unusable(request: LLMRequest, why: str) -> CannotScore:
    return CannotScore("judge_unparseable", f"{request.task}: {why}")


def without_reply(detail: str) -> str:
    """Return the detail of "judge_unparseable" without what may quote the reply: why it ended, where that is why."""
    said, _, _ = detail.partition(_IT_READS)
    _, _, reason = said.partition(": ")
    return said if reason.startswith((_CUT_OFF, _WITHHELD)) else "the judge's reply could not be read"


def _problem(bad: BadReply) -> str:
    # It may quote the reply, which is data and no instruction: one short line that every transport carries.
    return one_line(sendable(str(bad)))[:300]


def embed(texts: Sequence[str]) -> Flow["NDArray[np.float32]"]:
    """Place the texts in one call."""
    (vectors,) = yield (EmbedRequest(tuple(texts)),)
    return cast("NDArray[np.float32]", vectors)


def each(flows: Sequence[Flow[T]]) -> Flow[list[T]]:
    """Run independent flows side by side: their rounds are merged, their results come in order."""
    results: dict[int, T] = {}
    asked: dict[int, Round] = {}
    replies: dict[int, tuple[Any, ...] | None] = dict.fromkeys(range(len(flows)))
    try:
        while len(results) < len(flows):
            for i, own in replies.items():
                try:
                    asked[i] = flows[i].send(own)
                except StopIteration as stop:  # noqa: PERF203 - the end of each
                    results[i] = stop.value
            # Flows that pause go on before anything is asked.
            going = {i: round_ for i, round_ in asked.items() if not round_} or dict(asked)
            answered = iter((yield tuple(chain(*going.values()))) if going else ())
            replies = {i: tuple(islice(answered, len(asked.pop(i)))) for i in going}
    finally:
        for flow in flows:
            flow.close()
    return [results[i] for i in range(len(flows))]


def both(first: Flow[A], second: Flow[B]) -> Flow[tuple[A, B]]:
    """Run two flows of different results side by side."""
    flows: list[Flow[Any]] = [first, second]
    a, b = yield from each(flows)
    return a, b


def run(flow: Flow[Outcome], models: Models, meter: Meter | None = None) -> Outcome:
    """Drive a flow with the models' sync methods; the requests of a round go out in threads.

    Needs no event loop and minds none, so it works inside a running one (and blocks it).
    """
    meter = meter or Meter()

    def call(request: Request) -> object:
        model = models.of(request)
        return _check_reply(calls_of(model, request)[0](), request, model)

    replies: tuple[object, ...] | None = None
    try:
        while True:
            step = advance(flow, replies)
            if not isinstance(step, tuple):
                return step.model_copy(update={"usage": meter.usage()})
            meter.asking(step)
            replies = (call(step[0]),) if len(step) == 1 else _in_threads(call, step)
            meter.answered(replies)
    finally:
        meter.ended()
        flow.close()


async def arun(
    flow: Flow[Outcome],
    models: Models,
    meter: Meter | None = None,
    *,
    offload: bool = False,
    answering: Answering | None = None,
) -> Outcome:
    """Drive a flow with the models' async methods on the running loop; a round's requests go out at once.

    Args:
        flow: What to run.
        models: Who answers.
        meter: Counts the cost; pass one to know it even when this raises.
        offload: Step the flow in a thread, for samples so large that splitting and prompt building would
            hold up the loop.
        answering: What answers each request in place of the model's async method, for runners that hold calls
            back, share replies or bound their time. What it raises ends the flow and is raised here.
    """
    # Loaded when first used: who scores in threads does without.
    import asyncio

    meter = meter or Meter()

    async def call(request: Request) -> object:
        model = models.of(request)
        asking = calls_of(model, request)[1]() if answering is None else answering(request, model)
        return _check_reply(await asking, request, model)

    replies: tuple[object, ...] | None = None
    try:
        while True:
            step = await asyncio.to_thread(advance, flow, replies) if offload else advance(flow, replies)
            if not isinstance(step, tuple):
                return step.model_copy(update={"usage": meter.usage()})
            meter.asking(step)
            replies = (await call(step[0]),) if len(step) == 1 else await _at_once(call, step)
            meter.answered(replies)
            # Calls that waited for this one's slot go out before we compute.
            await asyncio.sleep(0)
    finally:
        meter.ended()
        # Cancelled while a thread steps it, a flow is dropped when that step ends.
        if inspect.getgeneratorstate(flow) != inspect.GEN_RUNNING:
            flow.close()


def advance(flow: Flow[Outcome], replies: tuple[object, ...] | None) -> Round | Outcome:
    """Advance the flow to its next round, or its outcome. StopIteration cannot cross a thread."""
    try:
        step = cast("object", flow.send(replies))
    except StopIteration as stop:
        step = cast("object", stop.value)
        if not isinstance(step, (Score, Unscored)):
            raise TypeError(f"a flow must return self._score(...), not {type(step).__name__}") from None
        return step
    if not isinstance(step, tuple):
        raise TypeError(f"a flow must yield a tuple of requests, not {type(step).__name__}")
    return cast("Round", step)


def _in_threads(call: Callable[[Request], object], round_: Round) -> tuple[object, ...]:
    # Loaded when first used.
    from concurrent.futures import FIRST_EXCEPTION, wait

    from ragstone.background import daemon

    # The threads take from it, each the next one.
    left = enumerate(round_)

    def work() -> dict[int, object]:
        return {place: call(request) for place, request in left}

    # Daemon threads, which a pool's are not: a judge that hangs must not keep the interpreter from ending.
    workers = [daemon(work, f"ragstone-{i}") for i in range(min(_THREADS, len(round_)))]
    done, _ = wait(workers, return_when=FIRST_EXCEPTION)
    # One failed: do not pay for the rest, nor wait for what is under way.
    deque(left, maxlen=0)
    replies: dict[int, object] = {}
    for worker in done:
        replies |= worker.result()
    return tuple([replies[place] for place in range(len(round_))])


async def _at_once(call: Callable[[Request], Coroutine[Any, Any, object]], round_: Round) -> tuple[object, ...]:
    import asyncio

    tasks = [asyncio.ensure_future(call(request)) for request in round_]
    try:
        return tuple(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _check_reply(reply: object, request: Request, model: Model) -> object:
    """Refuse what is no reply to a request, which is the fault of the model's adapter."""
    if isinstance(request, EmbedRequest):
        return reply
    kind, names, field, types = _REPLIES[isinstance(request, DecisionRequest)]
    if not isinstance(reply, kind):
        raise TypeError(f"{type(model).__name__}: {names} must return {kind.__name__}, not {type(reply).__name__}")
    if not isinstance(value := getattr(reply, field), types):
        raise TypeError(f"{type(model).__name__}: {kind.__name__}.{field} must not be {type(value).__name__}")
    return reply
