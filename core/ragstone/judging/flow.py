"""A metric's algorithm as a generator.

A flow yields *rounds*: tuples of requests that do not depend on one another. It is sent their replies, in
order, and returns its result in the end. It never calls anything itself, so one algorithm serves threads
and an event loop (`ragstone.judging.drivers`), a provider's batch endpoint or a dry run, and is tested with `.send()`.
"""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.prompt import one_line, sendable
from ragstone.judging.reply import BadReply, bare_answer
from ragstone.outcome import UnscoredReason, Usage, known_sum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        parse: Reads the reply, whose text is the bare answer (`bare_answer`); raises `BadReply` with what was wrong, in
            words for the judge.

    Raises:
        CannotScore: "judge_unparseable" when the second reply cannot be read either.
    """
    (reply,) = yield (request,)
    try:
        return parse(_answer(reply, request))
    except BadReply as first:
        wrong = _said(first)
    again = f"{request.user}\n\nYour previous reply could not be used: {wrong}. Reply again, in the asked form only."
    (reply,) = yield (replace(request, user=again),)
    try:
        return parse(_answer(reply, request))
    except BadReply as second:
        raise CannotScore(
            "judge_unparseable", f"{request.task}: {_said(second)} (first reply: {wrong}; asked twice)"
        ) from None


def _answer(reply: LLMReply, request: LLMRequest) -> LLMReply:
    """Return the reply without what stands around its answer."""
    text, thought = bare_answer(reply.text, request.choices)
    # probabilities that come with thoughts may be those of the thoughts' first word
    return replace(reply, text=text, probabilities=None if thought else reply.probabilities)


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

    def spared(self) -> None:
        """Uncount a call that was not needed: its reply was there already."""
        self._llm_calls -= 1

    def answered(self, replies: Sequence[Any]) -> None:
        """Add up the tokens of a round's replies."""
        for reply in replies:
            if isinstance(reply, LLMReply):
                self._input = known_sum(self._input, reply.input_tokens)
                self._output = known_sum(self._output, reply.output_tokens)

    def usage(self) -> Usage:
        """Return the cost so far."""
        return Usage(
            llm_calls=self._llm_calls,
            embed_calls=self._embed_calls,
            input_tokens=self._input,
            output_tokens=self._output,
            seconds=time.perf_counter() - self._started,
        )
