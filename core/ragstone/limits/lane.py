"""Calls of one kind in flight: so many at most, fewer while the provider asks for it."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence

from ragstone.limits.rates import Bucket

_LONGEST_BACK_OFF = 60.0


class GateClosed(Exception):  # noqa: N818 - it ends an evaluation that was stopped, nobody sees it
    """The run is being stopped: what has not been asked yet is not asked any more."""


class Lane:
    """Lets calls in, first come, first served.

    When the provider pushes back, the calls in flight are halved, once for all calls that were in flight
    together, and nothing is let in until the time that it named (else for 1, 2, 4... 60 seconds) is over.
    Two rounds of successes let in one call more.

    Args:
        most: Calls in flight at most.
        rates: Buckets, and for each whether it counts calls (else tokens).

    Attributes:
        limit: Calls in flight at most, as of now.
        in_flight: Calls in flight.
        hopeless: Whether the last call that was tried again and again was refused to the end.
    """

    def __init__(self, most: int, rates: Sequence[tuple[Bucket, bool]] = ()) -> None:
        self._most = most
        self._rates = rates
        self._waiting: deque[tuple[asyncio.Future[int], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until = 0.0
        self._generation = 0
        self._refusals = 0
        self._successes = 0
        self._closed = False
        self.limit = most
        self.in_flight = 0
        self.hopeless = False

    async def enter(self, tokens: float, *, again: bool = False) -> int:
        """Wait for the turn of a call; return what `refused` wants to know about it.

        Every `enter` that returns is followed by one `leave`.

        Args:
            tokens: What it is thought to take.
            again: Whether it was made before and refused: it goes before those that were not made yet.

        Raises:
            GateClosed: It is closed, and nothing is in flight any more.
        """
        if not self._waiting and self._let_in(tokens):
            return self._generation
        if self._closed and not self.in_flight:
            raise GateClosed
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if again else self._waiting.append)((turn, tokens))
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave()  # let in and called off at the same moment
            raise

    def leave(self) -> None:
        """Say that a call has ended, however it did."""
        self.in_flight -= 1
        if self._closed:
            self._turn_away()
        elif self._waiting:
            self._let_more_in()

    def succeeded(self) -> None:
        """Say that a call was answered."""
        self._refusals = 0
        self.hopeless = False
        if self.limit < self._most:
            self._successes += 1
            if self._successes >= 2 * self.limit:
                self.limit += 1
                self._successes = 0

    def refused(self, generation: int, seconds: float | None) -> None:
        """Say that the provider pushed back on a call, before `leave` is called for it."""
        if generation == self._generation:  # the others of its generation say the same thing again
            self._generation += 1
            self._refusals += 1
            self._successes = 0
            self.limit = max(1, min(self.limit, self.in_flight) // 2)
        if seconds is None:
            back_off = min(_LONGEST_BACK_OFF, 2.0 ** (self._refusals - 1))
            seconds = back_off * random.uniform(0.75, 1.0)  # noqa: S311 - so that processes do not come back together
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    def correct(self, tokens: float) -> None:
        """Take so many tokens more than `enter` was told."""
        now = asyncio.get_running_loop().time()
        for bucket, of_calls in self._rates:
            if not of_calls:
                bucket.take(tokens, now)

    def close(self) -> None:
        """Let nothing in any more; who waits is turned away as soon as nothing is in flight.

        Not sooner: the other calls of its round may be in flight, and would be called off with it.
        """
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._turn_away()

    def _let_in(self, tokens: float) -> bool:
        if self._closed or self.in_flight >= self.limit:
            return False
        if self._rates or self._paused_until:
            loop = asyncio.get_running_loop()
            now = loop.time()
            waits = [bucket.wait(1.0 if of_calls else tokens, now) for bucket, of_calls in self._rates]
            if (wait := max(0.0, self._paused_until - now, *waits)) > 0.0:
                if self._timer is None:
                    self._timer = loop.call_later(wait, self._timer_rang)
                return False
            for bucket, of_calls in self._rates:
                bucket.take(1.0 if of_calls else tokens, now)
        self.in_flight += 1
        return True

    def _let_more_in(self) -> None:
        while self._waiting:
            turn, tokens = self._waiting[0]
            if not turn.done():
                if not self._let_in(tokens):
                    return
                turn.set_result(self._generation)
            self._waiting.popleft()

    def _timer_rang(self) -> None:
        self._timer = None
        self._let_more_in()

    def _turn_away(self) -> None:
        if not self.in_flight:
            for turn, _ in self._waiting:
                if not turn.done():
                    turn.set_exception(GateClosed())
            self._waiting.clear()
