"""What stands between a run's flows and its judges: how many calls, how fast, for how long, and none twice."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Literal, Protocol, TypeVar

from ragstone.errors import CannotScore, describe, without_keys
from ragstone.held_keys import secrets_of
from ragstone.identity import judge_key, left_out_of, reply_key
from ragstone.judge import JudgeReply, Meter
from ragstone.judging.flow import EmbedRequest, Model, Models, Request, calls_of
from ragstone.judging.prompt import tokens
from ragstone.judging.refusals import Refusal, read_refusal
from ragstone.limits.limiter import ConcurrencyLimiter
from ragstone.limits.limits import Limits
from ragstone.outcome import Usage, known_sum

_TRIES = 6
_LONGEST_WAIT = 600.0
_REMEMBERED = 4096
# So many different samples that were refused without a reason tell of the judge.
_SEVERAL = 3
CALL_SECONDS = 120.0
"""What one call may take where nobody says; one to a model that answers `in_turn`, in this process, has no limit."""

Role = Literal["judge", "embedder"]

T = TypeVar("T")


class Replies(Protocol):
    """Where replies are kept beyond a run: a `Journal`."""

    def reply(self, key: str) -> JudgeReply | None:
        """Return the reply to a request; None where there is none."""
        ...

    def put_reply(self, key: str, reply: JudgeReply) -> None:
        """Keep the reply to a request."""
        ...


class Stopwatch:
    """Counts the seconds in which at least one of an evaluation's calls is in flight; cancels its task when they end.

    The time that calls wait for their turn is not counted: a run that keeps to a rate is slow by its own wish.

    Args:
        seconds: How long it may take. Then the task that made this object is cancelled.

    Attributes:
        over: Whether it was.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._task = asyncio.current_task()
        self._calls = 0
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.over = False

    def __enter__(self) -> None:
        self._calls += 1
        if self._calls == 1:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._timer = loop.call_later(max(0.0, self._left), self._ring)

    def __exit__(self, *_: object) -> None:
        self._calls -= 1
        if not self._calls and self._timer is not None:
            self._timer.cancel()
            self._left -= asyncio.get_running_loop().time() - self._since

    def _ring(self) -> None:
        self.over = True
        if self._task is not None:
            self._task.cancel()


async def within(seconds: float | None, call: Awaitable[T], late: str) -> T:
    """Await a call for so many seconds at most; None: however long it takes.

    Not `asyncio.wait_for`, which, before Python 3.12, can swallow a cancellation that comes as the call ends.

    Raises:
        TimeoutError: It took longer; the message is `late`.
    """
    if seconds is None:
        return await call
    task = asyncio.ensure_future(call)
    # Nobody may be left to look at its error, which asyncio would then print.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await asyncio.wait((task,), timeout=seconds)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            # A second cancellation may come while the first is on its way.
            with suppress(asyncio.CancelledError):
                # A call that does not heed it is left behind.
                await asyncio.wait((task,), timeout=1.0)
    raise TimeoutError(late)


class RequestGate:
    """Answers the requests of one run, on one event loop.

    A call that the provider refuses with "slow down" (429, 500, 502, 503, 504, 529 or a Retry-After) is made again, up
    to six times in all, while fewer calls are let in; a Retry-After is kept to up to ten minutes, a longer one is the
    call's failure. After a call that was refused to the end, the others are made once only until one succeeds:
    a judge that is down is found out once. A judge or embedder that refuses for good before its first answer (401, 404,
    or 403 on three different samples) is not asked any more; after an answer, a refusal is that call's own, and so is
    one that says that the text was moderated.

    Args:
        limits: Those of calls at once, of rates and of one call's time count here.
        first_alone: Whether calls to judges wait for the first reply: it tells what calls take. After one that fails,
            twice as many go out.
        share_replies: Whether one reply serves all requests that are the same. Draws never share.
        replies: Where replies are kept beyond this run.

    Attributes:
        closed: Whether no further call begins.
        llm_calls: Calls made to judges, each try counted.
        embed_calls: Calls made to embedders, likewise.
        calls_done: Calls to judges that have ended.
        calls_failed: Those of them that ended without a reply.
        input_tokens: Prompt tokens so far; None when a judge does not say.
        output_tokens: Reply tokens so far; None when a judge does not say.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        first_alone: bool = False,
        share_replies: bool = True,
        replies: Replies | None = None,
    ) -> None:
        self._judges = ConcurrencyLimiter(
            limits.max_concurrency, limits.requests_per_minute, limits.tokens_per_minute, first_alone=first_alone
        )
        self._embedders = ConcurrencyLimiter(limits.max_concurrency)
        self._counts_tokens = limits.tokens_per_minute is not None
        self._call_timeout = limits.call_timeout
        self._share_replies = share_replies
        self._replies = replies
        self._models: dict[tuple[str, int], _AskedModel] = {}
        self._recent: dict[str, JudgeReply] = {}
        self._pending: dict[str, asyncio.Future[None]] = {}
        # When each call in flight began.
        self._begun_at: dict[object, float] = {}
        self.closed = False
        self.llm_calls = self.embed_calls = self.calls_done = self.calls_failed = 0
        self.input_tokens: int | None = 0
        self.output_tokens: int | None = 0

    @property
    def in_flight(self) -> int:
        """Calls in flight, to judges and embedders."""
        return self._judges.in_flight + self._embedders.in_flight

    def usage(self) -> Usage:
        """The cost of what was asked for so far, failed tries counted."""
        return Usage(
            llm_calls=self.llm_calls,
            embed_calls=self.embed_calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )

    def waits(self) -> list[float]:
        """For how many seconds each call in flight has waited for its reply."""
        now = asyncio.get_running_loop().time() if self._begun_at else 0.0
        return [now - since for since in self._begun_at.values()]

    def refusal(self, models: Models) -> str | None:
        """Why one of a metric's models is not asked any more; None if all are."""
        keys = ("judge", id(models.judge)), ("judge", id(models.writer)), ("embedder", id(models.embedder))
        known = map(self._models.get, keys)
        return next((model.refusal for model in known if model is not None and model.refusal is not None), None)

    def refusals(self) -> list[str]:
        """Why judges and embedders are not asked any more."""
        return [model.refusal for model in self._models.values() if model.refusal is not None]

    def close(self) -> None:
        """Let no further call begin; those in flight end, then whoever waits gets `GateClosed`."""
        self.closed = True
        self._judges.close()
        self._embedders.close()

    async def call(
        self,
        request: Request,
        model: Model,
        *,
        meter: Meter | None = None,
        watch: Stopwatch | None = None,
        sample: object = None,
    ) -> object:
        """Return the reply to a request: a judge's, or an embedder's vectors.

        Who asks while somebody asks the same waits for that reply. Where that one fails, it is its own failure.

        Args:
            request: What a flow yielded.
            model: Who is asked.
            meter: Is told when no call was needed, and before a call is tried again.
            watch: Runs while the call is in flight.
            sample: Which sample it is for: refusals of several tell of the judge, those of one may be its own.

        Raises:
            GateClosed: It was closed before the call began.
            CannotScore: Who is asked refused the first calls for good, or the meter has no room for another try.
            TimeoutError: The call took longer than `call_timeout`.
            JournalError: The reply cannot be kept.
            Exception: What the provider raised.
        """
        asked = self._asked("embedder" if isinstance(request, EmbedRequest) else "judge", model)
        meter = meter or Meter()
        if isinstance(request, EmbedRequest):
            return await self._ask(asked, request, 0.0, Meter(), watch, sample)
        cost = tokens(*request.texts_read) if self._counts_tokens else 0
        if not self._share_replies:
            return await self._ask(asked, request, cost, meter, watch, sample)
        key = reply_key(request, asked.key)
        while (pending := self._pending.get(key)) is not None:
            await asyncio.shield(pending)
        known = self._recent.get(key)
        if known is None and self._replies is not None:
            known = self._replies.reply(key)
        if known is not None:
            meter.spared()
            # It is paid for once.
            return replace(known, input_tokens=0, output_tokens=0)
        pending = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._ask(asked, request, cost, meter, watch, sample)
            if isinstance(reply, JudgeReply) and type(reply.text) is str:
                # A reply of another kind is not kept: the driver refuses it.
                self._recent[key] = reply
                if len(self._recent) > _REMEMBERED:
                    del self._recent[next(iter(self._recent))]
                # The key may be another one: a parameter may have been left out from this call on.
                if self._replies is not None:
                    self._replies.put_reply(reply_key(request, asked.key), reply)
            return reply
        finally:
            del self._pending[key]
            pending.set_result(None)

    def _asked(self, role: Role, model: Model) -> "_AskedModel":
        key = role, id(model)
        known = self._models.get(key)
        return known or self._models.setdefault(key, _AskedModel(role, model))

    async def _ask(
        self,
        model: "_AskedModel",
        request: Request,
        cost: float,
        meter: Meter,
        watch: Stopwatch | None,
        sample: object,
    ) -> object:
        """Make a call, again where the provider says "slow down"."""
        limiter = self._judges if model.role == "judge" else self._embedders
        time = _CallTime(self._call_timeout or (math.inf if model.in_turn else CALL_SECONDS))
        for left in reversed(range(_TRIES)):
            again = left < _TRIES - 1
            if again:
                meter.again()
            generation = await limiter.enter(cost, again=again)
            try:
                reply = await self._try(model, request, meter, time, watch)
            except Exception as error:
                limiter.failed()
                refusal = read_refusal(error)
                model.failed(error, refusal, sample)
                if refusal.wait is None or limiter.hopeless:
                    raise
                if not left or refusal.wait > _LONGEST_WAIT:
                    limiter.hopeless = True
                    raise
                limiter.refused(generation, refusal.wait)
            else:
                model.answered = True
                limiter.succeeded()
                self._count(reply, cost)
                return reply
            finally:
                limiter.leave()
        raise AssertionError("the last try returns or raises")

    async def _try(
        self, model: "_AskedModel", request: Request, meter: Meter, time: "_CallTime", watch: Stopwatch | None
    ) -> object:
        if model.refusal is not None:
            raise CannotScore("judge_error", f"not asked: {model.refusal}")
        taken = meter.calling(request)
        reply = None
        late = f"the {model.role} {model.name!r} did not reply within {time.seconds:g} s (call_timeout)"
        # Who waits for the model's own limit has not called, and is not timed.
        async with model.slots:
            self.llm_calls += model.role == "judge"
            self.embed_calls += model.role == "embedder"
            loop, mark = asyncio.get_running_loop(), object()
            self._begun_at[mark] = loop.time()
            try:
                with watch or nullcontext():
                    seconds = None if time.left == math.inf else max(0.0, time.left)
                    reply = await within(seconds, model.ask(request), late)
            except Exception:
                meter.called(taken, None)
                raise
            finally:
                time.left -= loop.time() - self._begun_at.pop(mark)
                self.calls_done += model.role == "judge"
                self.calls_failed += reply is None
        meter.called(taken, reply)
        return reply

    def _count(self, reply: object, estimated: float) -> None:
        if not isinstance(reply, JudgeReply):
            # They are vectors; or it is no reply, as the driver says.
            return
        self.input_tokens = known_sum(self.input_tokens, reply.input_tokens)
        self.output_tokens = known_sum(self.output_tokens, reply.output_tokens)
        if self._counts_tokens and reply.input_tokens is not None and reply.output_tokens is not None:
            self._judges.correct(reply.input_tokens + reply.output_tokens - estimated)


class _CallTime:
    """What one call may take, and what its tries have left of it, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = self.left = seconds


class _AskedModel:
    """A judge or an embedder, and whether it is asked: no more, once it refused for good before its first answer.

    A 403 that does not say why may be a moderation's: only those of several samples count.
    """

    def __init__(self, role: Role, model: Model) -> None:
        self.role = role
        self.name = model.model
        self.in_turn = bool(getattr(model, "in_turn", False))
        most: object = getattr(model, "max_concurrency", None)
        self.slots = asyncio.Semaphore(most) if isinstance(most, int) else nullcontext()
        self.answered = False
        self.refusal: str | None = None
        # Held, so that no other object gets its id.
        self._model = model
        self._keys: dict[frozenset[str], str] = {}
        self._takes_retries: dict[type[Request], bool] = {}
        self._refused_samples: set[object] = set()

    @property
    def key(self) -> str:
        """What tells its replies from those of others, and those before a parameter was left out from later ones."""
        left_out = frozenset(left_out_of(self._model))
        if left_out not in self._keys:
            self._keys[left_out] = judge_key(self._model)
        return self._keys[left_out]

    def ask(self, request: Request) -> Awaitable[object]:
        """Make a call, which the model's client does not try again: the gate does."""
        call: Callable[..., Awaitable[object]] = calls_of(self._model, request)[1]
        kind = type(request)
        if kind not in self._takes_retries:
            tries_again = getattr(self._model, "tries_again", False)
            self._takes_retries[kind] = bool(tries_again) and _takes_retries(call)
        return call(max_retries=0) if self._takes_retries[kind] else call()

    def failed(self, error: Exception, refusal: Refusal, sample: object) -> None:
        """Learn from a call that failed."""
        if refusal.way_out is None or self.answered:
            return
        self._refused_samples.add(sample)
        if not refusal.may_be_of_one_sample or len(self._refused_samples) >= _SEVERAL:
            self.refusal = self.refusal or self._reason(error, refusal.way_out)

    def _reason(self, error: Exception, way_out: str) -> str:
        model, keys = self._model, secrets_of(self._model)
        shown = repr(self.name) if type(model).__repr__ is object.__repr__ else without_keys(repr(model)[:200], keys)
        return f"the {self.role} {shown} refused the first call: {way_out} ({describe(error, keys, 300)})"


def _takes_retries(call: Callable[..., object]) -> bool:
    """Whether a method takes `max_retries`: one of a user's, in a subclass or around a client, may not."""
    with suppress(TypeError, ValueError):
        inspect.signature(call).bind(max_retries=0)
        return True
    return False
