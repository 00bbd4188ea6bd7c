"""What stands between a run's flows and its judges: how many calls, how fast, for how long, and none twice."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ragstone.judge import LLM, Embedder, LLMReply, LLMRequest
from ragstone.judging.drivers import needed
from ragstone.judging.flow import CannotScore, Meter, Request, of_draw
from ragstone.judging.prompt import tokens
from ragstone.limits.lane import Lane
from ragstone.limits.pushback import pushback
from ragstone.limits.rates import Bucket
from ragstone.limits.refusal import Standing
from ragstone.limits.sharing import Replies, Sharing
from ragstone.limits.watch import Stopwatch, in_daemon, within
from ragstone.outcome import known_sum
from ragstone.store.journal.keys import judge_key

T = TypeVar("T")
_TRIES = 6
_LONGEST_WAIT = 600.0


class Gate:
    """Answers the requests of one run, on one event loop.

    A call that the provider refuses with "slow down" (429, 500, 502, 503, 504, 529 or a Retry-After) is made again, up
    to six times in all, while fewer calls are let in; a Retry-After is kept to up to ten minutes, a longer one is the
    call's failure. After a call that was refused to the end, the others are made once only until one succeeds:
    a judge that is down is found out once.

    A judge or embedder that refuses its first calls for good (401, 403, 404) is not asked any more, see `Standing`.

    Args:
        max_concurrency: Calls to judges in flight at most, and to embedders as many.
        requests_per_minute: Calls to judges at most, spread evenly.
        tokens_per_minute: Tokens of judges at most: estimated before the call, corrected by what the judge says.
        call_timeout: Seconds that one call may take.
        share_replies: Whether one reply serves all requests that are the same. Draws never share.
        replies: Where replies are kept beyond this run.
        own_loop: Whether the event loop is ours. Judges whose class says `one_loop` are then called by their sync
            half, in threads: their client belongs to the app's loop.

    Attributes:
        llm_calls: Calls made to judges, those that failed counted.
        shared: Requests that needed no call.
        input_tokens: Prompt tokens so far; None when a judge does not say.
        output_tokens: Reply tokens so far; None when a judge does not say.
    """

    def __init__(
        self,
        max_concurrency: int = 16,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        call_timeout: float | None = None,
        share_replies: bool = True,
        replies: Replies | None = None,
        own_loop: bool = False,
    ) -> None:
        given = ((requests_per_minute, True), (tokens_per_minute, False))
        rates = [(Bucket(rate), of_calls) for rate, of_calls in given if rate is not None]
        self._judges = Lane(max_concurrency, rates)
        self._embedders = Lane(max_concurrency)
        self._counts_tokens = tokens_per_minute is not None
        self._call_timeout = call_timeout
        self._sharing = Sharing(replies) if share_replies else None
        self._own_loop = own_loop
        self._judge_keys: dict[int, tuple[LLM, str]] = {}  # by id; each is held, so that no other gets its id
        self._mean_output = 0.0
        self._standings: dict[tuple[str, int], Standing] = {}
        self.llm_calls = 0
        self.shared = 0
        self.input_tokens: int | None = 0
        self.output_tokens: int | None = 0

    @property
    def in_flight(self) -> int:
        """Calls in flight, to judges and embedders."""
        return self._judges.in_flight + self._embedders.in_flight

    def refusal(self, llm: LLM, embedder: Embedder | None) -> str | None:
        """Return why a judge or an embedder is not asked any more; None if both are."""
        for key in (("judge", id(llm)), ("embedder", id(embedder))):
            if key in self._standings and (refusal := self._standings[key].refusal) is not None:
                return refusal
        return None

    def refusals(self) -> list[str]:
        """Return why judges and embedders are not asked any more."""
        return [standing.refusal for standing in self._standings.values() if standing.refusal is not None]

    def forget_refusals(self) -> None:
        """Ask all of them again, in a new run."""
        self._standings.clear()

    def close(self) -> None:
        """Let no further call begin; those in flight end, then whoever waits gets `GateClosed`."""
        self._judges.close()
        self._embedders.close()

    async def call(
        self,
        request: Request,
        llm: LLM,
        embedder: Embedder | None,
        draw: int = 0,
        *,
        meter: Meter | None = None,
        watch: Stopwatch | None = None,
    ) -> object:
        """Return the reply to a request: an `LLMReply`, or an embedder's vectors.

        Args:
            request: What a flow yielded.
            llm: Who is asked, if it is an `LLMRequest`.
            embedder: Who is asked, if it is an `EmbedRequest`.
            draw: Which scoring of the sample it is for: other draws get other replies.
            meter: Is told when no call was needed.
            watch: Runs while the call is in flight.

        Raises:
            GateClosed: It was closed before the call began.
            CannotScore: Who is asked refused the first call for good.
            TimeoutError: The call took longer than `call_timeout`.
            JournalError: The reply cannot be kept.
            Exception: What the provider raised.
        """
        if not isinstance(request, LLMRequest):
            return await self._embed(needed(embedder), request.texts, watch)
        ask = partial(self._ask, llm, request, draw, watch)
        if self._sharing is None:
            return await ask()
        reply, shared = await self._sharing.reply(request, self._key_of(llm), draw, ask)
        if not shared or not isinstance(reply, LLMReply):
            return reply
        self.shared += 1
        if meter is not None:
            meter.spared()
        return replace(reply, input_tokens=0, output_tokens=0)  # paid for once

    def _key_of(self, llm: LLM) -> str:
        known = self._judge_keys.get(id(llm))
        if known is None:
            known = self._judge_keys[id(llm)] = llm, judge_key(llm)
        return known[1]

    async def _ask(self, llm: LLM, request: LLMRequest, draw: int, watch: Stopwatch | None) -> object:
        request = of_draw(request, draw)
        cost = tokens(request.system, request.user) + self._mean_output if self._counts_tokens else 0.0
        ask: Callable[[], Awaitable[object]] = partial(llm.agenerate, request)
        if self._own_loop and getattr(type(llm), "one_loop", False):
            ask = partial(in_daemon, partial(llm.generate, request))
        reply = await self._through(self._judges, llm, ask, cost, watch)
        self._count(reply, cost)
        return reply

    async def _embed(self, embedder: Embedder, texts: tuple[str, ...], watch: Stopwatch | None) -> object:
        place: Callable[[], Awaitable[object]] = partial(embedder.aembed, texts)
        if self._own_loop and getattr(type(embedder), "one_loop", False):
            place = partial(in_daemon, partial(embedder.embed, texts))
        return await self._through(self._embedders, embedder, place, 0.0, watch)

    async def _through(
        self,
        lane: Lane,
        whom: LLM | Embedder,
        call: Callable[[], Awaitable[T]],
        cost: float,
        watch: Stopwatch | None,
    ) -> T:
        kind = "judge" if lane is self._judges else "embedder"
        standing = self._standings.setdefault((kind, id(whom)), Standing(kind, whom))
        for left in reversed(range(_TRIES)):
            generation = await lane.enter(cost, again=left < _TRIES - 1)
            while standing.in_doubt:
                lane.leave()
                await standing.known()
                generation = await lane.enter(cost, again=True)
            if standing.refusal is not None:
                lane.leave()
                raise CannotScore("judge_error", f"not asked: {standing.refusal}")
            if lane is self._judges:
                self.llm_calls += 1
            if watch is not None:
                watch.start()
            standing.asking()
            try:
                reply = await self._timed(call, f"the {kind} {whom.model!r}")
            except Exception as error:
                standing.failed(error)
                said = pushback(error)
                if said is None or lane.hopeless:
                    raise
                if not left or (said.seconds or 0.0) > _LONGEST_WAIT:
                    lane.hopeless = True
                    raise
                lane.refused(generation, said.seconds)
            else:
                lane.succeeded()
                standing.answered()
                return reply
            finally:
                standing.ended()
                if watch is not None:
                    watch.stop()
                lane.leave()
        raise AssertionError("the last try returns or raises")

    async def _timed(self, call: Callable[[], Awaitable[T]], whom: str) -> T:
        if self._call_timeout is None:
            return await call()
        late = f"{whom} did not reply within {self._call_timeout:g} s (call_timeout)"
        return await within(self._call_timeout, call(), late)

    def _count(self, reply: object, estimated: float) -> None:
        if not isinstance(reply, LLMReply):
            return  # the driver says so
        self.input_tokens = known_sum(self.input_tokens, reply.input_tokens)
        self.output_tokens = known_sum(self.output_tokens, reply.output_tokens)
        if self._counts_tokens and reply.input_tokens is not None and reply.output_tokens is not None:
            self._judges.correct(reply.input_tokens + reply.output_tokens - estimated)
            self._mean_output += (reply.output_tokens - self._mean_output) / 20
