"""The two limits on calls, in flight at once and per minute, and how they answer a provider that says "slow down"."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

_LONGEST_BACK_OFF = 60.0
_SLOW_DOWN = frozenset({429, 500, 502, 503, 504, 529})
_STATUS_NAMES = ("status_code", "http_status", "status", "code")
# A quota that is used up comes back tomorrow or with a payment, not with patience.
_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class GateClosed(Exception):  # noqa: N818 - it ends an evaluation that was stopped, nobody sees it
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
        return 0.0 if missing <= 1e-9 else missing / self._per_second  # a billionth is rounding, not debt

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
        calls: Their rate.
        tokens: The rate of their tokens.

    Attributes:
        limit: Calls in flight at most, as of now.
        in_flight: Calls in flight.
        hopeless: Whether the last call that was tried again and again was refused to the end.
    """

    def __init__(self, most: int, calls: RateLimiter | None = None, tokens: RateLimiter | None = None) -> None:
        self._most = most
        self._calls = calls
        self._tokens = tokens
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

    async def enter(self, tokens: float = 0.0, *, again: bool = False) -> int:
        """Wait for the turn of a call; return what `refused` wants to know about it. One `leave` follows each.

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

    def refused(self, generation: int, seconds: float) -> None:
        """Say, before `leave`, that the provider pushed back on a call, for so many seconds; 0 where it named none."""
        if generation == self._generation:  # the others of its generation say the same thing again
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
        if self._timer is not None:
            self._timer.cancel()
        self._turn_away()

    def _let_in(self, tokens: float) -> bool:
        if self._closed or self.in_flight >= self.limit:
            return False
        if self._calls or self._tokens or self._paused_until:
            loop = asyncio.get_running_loop()
            now = loop.time()
            amounts = [(self._calls, 1.0), (self._tokens, tokens)]
            waits = [rate.wait(amount, now) for rate, amount in amounts if rate is not None]
            if (wait := max(0.0, self._paused_until - now, *waits)) > 0.0:
                if self._timer is None:
                    self._timer = loop.call_later(wait, self._timer_rang)
                return False
            for rate, amount in amounts:
                if rate is not None:
                    rate.take(amount, now)
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


def pushback(error: BaseException) -> float | None:
    """Return for how many seconds a provider said "slow down" by an exception: 0 where it named no time, else None.

    Read are, also of the exception that it was raised from, a status of 429, 500, 502, 503, 504 or 529 under the names
    that clients give it, here or in `response`; a number `retry_after`; and the headers retry-after-ms and
    Retry-After, in seconds or as a date.

    Example:
        >>> class TooMany(Exception):
        ...     status_code, retry_after = 429, 2
        >>> pushback(TooMany()), pushback(ValueError()) is None
        (2.0, True)
    """
    for each in _causes(error):
        if str(getattr(each, "code", None)) in _NO_QUOTA:
            return None
        seconds = _seconds(getattr(each, "retry_after", None))
        if seconds is None and not _SLOW_DOWN.isdisjoint(_own_statuses(each)):
            seconds = _in_headers(getattr(each, "response", None)) or 0.0
        if seconds is not None:
            return seconds
    return None


def statuses(error: BaseException) -> list[int]:
    """Return the HTTP statuses that an exception, or one that it was raised from, names."""
    return [status for each in _causes(error) for status in _own_statuses(each)]


def _own_statuses(error: BaseException) -> list[int]:
    sources = (error, getattr(error, "response", None))
    values = [getattr(source, name, None) for source in sources for name in _STATUS_NAMES]
    return [value for value in values if isinstance(value, int)]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, the one that it was raised from, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _in_headers(response: object) -> float | None:
    get = getattr(getattr(response, "headers", None), "get", None)
    if not callable(get):
        return None
    milliseconds = _seconds(get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value: object = get("retry-after") or get("Retry-After")  # a plain dict minds the case
    seconds = _seconds(value)
    if seconds is None and isinstance(value, str):
        try:
            seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError):
            return None
    return seconds


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < float("inf") else None
