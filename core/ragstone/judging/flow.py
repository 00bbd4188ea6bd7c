"""A metric's algorithm as a generator.

A flow yields *rounds*: tuples of requests that do not depend on one another. It is sent their replies, in
order, and returns its result in the end. It never calls anything itself, so one algorithm serves threads
and an event loop (`ragstone.judging.drivers`), a provider's batch endpoint or a dry run, and is tested with `.send()`.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragstone.errors import CannotScore
from ragstone.judge import LLMReply, LLMRequest, Meter
from ragstone.judging.prompt import one_line, sendable
from ragstone.judging.reply import bare_answer
from ragstone.judging.schema import BadReply

__all__ = [
    "CannotScore",
    "EmbedRequest",
    "Flow",
    "Meter",
    "Request",
    "Round",
    "ask",
    "both",
    "each",
    "embed",
    "of_draw",
]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_APART = 1_000_000  # of the indices of draws; no flow asks one question so often; kept in journals, so it stays

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to be placed in one call to the embedder; the reply is what the embedder returned."""

    texts: tuple[str, ...]


Request = LLMRequest | EmbedRequest
Round = tuple[Request, ...]
Flow = Generator[Round, tuple[Any, ...], T]


def ask(request: LLMRequest, parse: Callable[[LLMReply], T]) -> Flow[T]:
    """Ask the judge, read its reply, and ask once more if it cannot be read.

    Args:
        request: What to ask.
        parse: Reads the reply, whose text is the bare answer (`bare_answer`); raises `BadReply` with what was wrong, in
            words for the judge.

    Raises:
        CannotScore: "judge_unparseable" when the second reply cannot be read either.
    """
    (reply,) = yield (request,)
    try:
        return parse(_answer(reply, request))
    except BadReply as first:
        wrong = _problem(first)
    again = f"{request.user}\n\nYour previous reply could not be used: {wrong}. Reply again, in the asked form only."
    (reply,) = yield (replace(request, user=again),)
    try:
        return parse(_answer(reply, request))
    except BadReply as second:
        raise CannotScore(
            "judge_unparseable", f"{request.task}: {_problem(second)} (first reply: {wrong}; asked twice)"
        ) from None


def _answer(reply: LLMReply, request: LLMRequest) -> LLMReply:
    """Return the reply without what stands around its answer."""
    text, thought = bare_answer(reply.text, request.choices)
    # probabilities that come with thoughts may be those of the thoughts' first word
    return replace(reply, text=text, probabilities=None if thought else reply.probabilities)


def _problem(bad: BadReply) -> str:
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


def of_draw(request: LLMRequest, draw: int) -> LLMRequest:
    """Return a flow's request as the judge is asked it in a draw, counted from 0; the first one's is as it was.

    Whoever asks a judge asks it so, directly or in a provider's batch: a seed made of the index is then the same.

    Example:
        >>> request = LLMRequest(task="demo", system="", user="Why?", schema={}, sample_index=2)
        >>> [of_draw(request, draw).sample_index for draw in range(3)]
        [2, 1000002, 2000002]
    """
    return replace(request, sample_index=request.sample_index + draw * _APART) if draw else request
