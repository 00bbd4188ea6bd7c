"""The two limits on calls, in flight at once and per minute, and how they answer a provider that says "slow down"."""

import asyncio
import random
from collections import deque

_LONGEST_BACK_OFF = 60.0


class GateClosed(Exception):  # noqa: N818 - internal: it ends an evaluation that was stopped
    """The run is being stopped: what has not been asked yet is not asked any more."""


class RateLimiter:
    """A token bucket that holds one second's worth (and at least one), so that no burst opens a minute.

    Whole requests taken from it are never more than `per_minute` in any 60 seconds. Sizes that are not known
    before may overdraw it, and what comes later waits for longer.

    Args:
        per_minute: What may be taken in a minute.

    Example:
        >>> limiter = RateLimiter(60)
        >>> limiter.take(1, now=0.0)
        >>> limiter.wait(1, now=0.25)
        0.75
    """

    def __init__(self, per_minute: float) -> None:
        self._holds = max(1.0, per_minute / 60)
        self._per_second = (per_minute - self._holds + 1) / 60
        self._level = self._holds
        self._at: float | None = None

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until `amount` may be taken; more than it holds is waited for until it is full."""
        self._refill(now)
        missing = min(amount, self._holds) - self._level
        # A billionth is rounding, not debt.
        return 0.0 if missing <= 1e-9 else missing / self._per_second

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, or give it back where it is negative."""
        self._refill(now)
        self._level = min(self._holds, self._level - amount)

    def _refill(self, now: float) -> None:
        if self._at is not None:
            self._level = min(self._holds, self._level + (now - self._at) * self._per_second)
        self._at = now


class ConcurrencyLimiter:
    """Lets calls in, first come, first served: so many at once, and no faster than the rates.

    When the provider pushes back, the calls in flight are halved, once for all calls that were in flight
    together, and nothing is let in until the time that it named (else for 1, 2, 4... 60 seconds) is over.
    Two rounds of successes let in one call more.

    Args:
        most: Calls in flight at most.
        calls_per_minute: Their rate; None: no limit.
        tokens_per_minute: The rate of their tokens; None: no limit.
        first_alone: Whether one call is let in at first, and `most` once one was answered.

    Attributes:
        limit: Calls in flight at most, as of now.
        in_flight: Calls in flight.
        hopeless: Whether the last call that was tried again and again was refused to the end.
    """

    def __init__(
        self,
        most: int,
        calls_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        first_alone: bool = False,
    ) -> None:
        self._most = most
        self._calls = None if calls_per_minute is None else RateLimiter(calls_per_minute)
        self._tokens = None if tokens_per_minute is None else RateLimiter(tokens_per_minute)
        self._waiting: deque[tuple[asyncio.Future[int], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until = 0.0
        self._generation = 0
        self._refusals = 0
        self._successes = 0
        self._closed = False
        self._unanswered = first_alone
        self.limit = 1 if first_alone else most
        self.in_flight = 0
        self.hopeless = False

    async def enter(self, tokens: float = 0.0, *, again: bool = False) -> int:
        """Wait for the turn of a call; return what `refused` wants to know about it. One `leave` follows each.

        Args:
            tokens: What it is thought to take.
            again: Whether it was made before and refused: it goes before those that were not made yet.

        Raises:
            GateClosed: It is closed, and nothing is in flight any more.
        """
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if again else self._waiting.append)((turn, tokens))
        self._let_in()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                # It was let in and called off at the same moment.
                self.leave()
            raise

    def leave(self) -> None:
        """Say that a call has ended, however it did."""
        self.in_flight -= 1
        self._let_in()

    def succeeded(self) -> None:
        """Say that a call was answered."""
        self._refusals = 0
        self.hopeless = False
        if self._unanswered:
            self._unanswered, self.limit = False, self._most
        if self.limit < self._most:
            self._successes += 1
            if self._successes >= 2 * self.limit:
                self.limit += 1
                self._successes = 0

    def failed(self) -> None:
        """Say that a call failed: before the first answer, twice as many are let in."""
        if self._unanswered:
            self.limit = min(self._most, 2 * self.limit)

    def refused(self, generation: int, seconds: float) -> None:
        """Say, before `leave`, that the provider pushed back on a call, for so many seconds; 0 where it named none."""
        # Calls of one generation were refused for one reason: only the first one counts.
        if generation == self._generation:
            self._generation += 1
            self._refusals += 1
            self._successes = 0
            self.limit = max(1, min(self.limit, self.in_flight) // 2)
        if not seconds:
            back_off = min(_LONGEST_BACK_OFF, 2.0 ** (self._refusals - 1))
            seconds = back_off * random.uniform(0.75, 1.0)  # noqa: S311 - so that processes do not come back together
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    def correct(self, tokens: float) -> None:
        """Take so many tokens more than `enter` was told."""
        if self._tokens is not None:
            self._tokens.take(tokens, asyncio.get_running_loop().time())

    def close(self) -> None:
        """Let nothing in any more; who waits is turned away as soon as nothing is in flight.

        Not sooner: the other calls of its round may be in flight, and would be called off with it.
        """
        self._closed = True
        self._let_in()

    def _let_in(self) -> None:
        """Let in those whose turn it is, or turn them away."""
        while self._waiting:
            turn, tokens = self._waiting[0]
            # It may have been called off.
            if not turn.done():
                if self.in_flight if self._closed else not self._has_room(tokens):
                    return
                if self._closed:
                    turn.set_exception(GateClosed())
                else:
                    self.in_flight += 1
                    turn.set_result(self._generation)
            self._waiting.popleft()

    def _has_room(self, tokens: float) -> bool:
        """Take a call's share of the rates, or say when to look again."""
        if self.in_flight >= self.limit:
            return False
        loop = asyncio.get_running_loop()
        now = loop.time()
        shares = [(rate, share) for rate, share in ((self._calls, 1.0), (self._tokens, tokens)) if rate is not None]
        wait = max([self._paused_until - now, *(rate.wait(share, now) for rate, share in shares)])
        if wait > 0.0:
            if self._timer is None:
                self._timer = loop.call_later(wait, self._look_again)
            return False
        for rate, share in shares:
            rate.take(share, now)
        return True

    def _look_again(self) -> None:
        self._timer = None
        self._let_in()
