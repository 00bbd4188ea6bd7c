"""Holding a metric's judge calls against the budget while it asks them."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.flow import CannotScore, Meter, Round
from ragstone.judging.prompt import tokens
from ragstone.limits.budget import Budget, Ledger


class _Expense(NamedTuple):
    calls: int
    tokens: int
    money: float

    def plus(self, other: "_Expense") -> "_Expense":
        return _Expense(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def minus(self, other: "_Expense") -> "_Expense":
        return _Expense(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)

    def or_more(self, other: "_Expense") -> "_Expense":
        return _Expense(max(self.calls, other.calls), max(self.tokens, other.tokens), max(self.money, other.money))


_NOTHING = _Expense(0, 0, 0.0)
_SECONDS_REMEMBERED = 600.0
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # between two tries to reach the account


class Purse:
    """The budget, its account, and how many calls follow the first round of an evaluation.

    An evaluation puts aside, before its first call, as many calls as it will make if it grows as the worst one by its
    metric did in the last ten to twenty minutes, and gives back the rest when it ends. So one that there is no room for
    costs nothing, and only the first ones by a metric are broken off half-way. Tokens and money are put aside for one
    round at a time: how many will be taken, the last evaluation does not tell.

    While the account cannot be reached, evaluations wait before their next calls; none is refused for it.

    Attributes:
        budget: The limits.
        clock: Seconds since 1970 (UTC).
        failed: Called with what keeps the account from being reached.
        waiting: How many evaluations wait until it can be reached.
    """

    def __init__(self, budget: Budget, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self.budget = budget
        self.clock = clock
        self.failed: Callable[[Exception], None] = _unheard
        self.waiting = 0
        self._ledger = ledger
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._now: dict[tuple[str, str], float] = {}
        self._before: dict[tuple[str, str], float] = {}

    def meter(
        self, metric: str, version: str, untimed: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> "SpendingMeter":
        """Return a meter for one evaluation; `untimed` surrounds what it does with the account."""
        return SpendingMeter(self, (metric, version), untimed)

    def expected(self, key: tuple[str, str], first: int) -> int:
        """Return how many calls an evaluation by the metric may make, by the number in its first round."""
        with self._lock:
            self._forget()
            growth = max(1.0, self._now.get(key, 0.0), self._before.get(key, 0.0))
        return round(growth * first)

    def took(self, key: tuple[str, str], first: int, calls: int) -> None:
        """Note how many calls an evaluation made, or would have made at least."""
        with self._lock:
            self._forget()
            self._now[key] = max(calls / first, self._now.get(key, 0.0))

    def _forget(self) -> None:
        if time.monotonic() - self._since > _SECONDS_REMEMBERED:
            self._since = time.monotonic()
            self._before, self._now = self._now, {}

    def spend(self, expense: _Expense, at: float) -> str | None:
        """Enter an expense; return the limit that refuses it."""
        entries = self.budget.entries(at, calls=expense.calls, tokens=expense.tokens, money=expense.money)
        return self._ledger.spend(entries) if entries else None

    def wait(self, seconds: float) -> None:
        """Wait before the account is tried again.

        Raises:
            CannotScore: "cancelled"; the purse was closed.
        """
        with self._lock:
            self.waiting += 1
        closed = self._closed.wait(seconds)
        with self._lock:
            self.waiting -= 1
        if closed:
            raise CannotScore("cancelled", "the monitor was closed while the budget's account could not be reached")

    def close(self) -> None:
        """Let those that wait for the account give up."""
        self._closed.set()

    def correct(self, expense: _Expense, at: float) -> None:
        """Enter a difference, whatever the limits."""
        entries = self.budget.entries(at, calls=expense.calls, tokens=expense.tokens, money=expense.money)
        self._ledger.spend([entry._replace(limit=None) for entry in entries if entry.amount])


class SpendingMeter(Meter):
    """Counts one evaluation, and refuses a round of calls that the budget has no room for.

    Attributes:
        refused_by: The limit that refused, None where none did.
    """

    def __init__(
        self, purse: Purse, key: tuple[str, str], untimed: Callable[[], AbstractContextManager[object]]
    ) -> None:
        super().__init__()
        self._untimed = untimed
        self.refused_by: str | None = None
        self._purse = purse
        self._key = key
        self._at = purse.clock()
        self._first = 0
        self._put_aside = _NOTHING
        self._taken = _NOTHING  # by what the provider says, or our estimate where it says nothing
        self._round: Round = ()

    def asking(self, round_: Round) -> None:
        """Put the round's cost aside, if it is not yet. Waits while the account cannot be reached.

        Raises:
            CannotScore: "over_budget", or "cancelled" where the purse was closed meanwhile; the calls are not made.
        """
        self._round = round_
        asked = self._priced(sum(isinstance(request, LLMRequest) for request in round_), _prompt_tokens(round_), 0)
        need = self._taken.plus(asked)
        if not self._first:
            self._first = asked.calls
            need = need._replace(calls=self._purse.expected(self._key, asked.calls))
        more = need.minus(self._put_aside).or_more(_NOTHING)
        if asked.calls and more != _NOTHING:
            self._reserve(more)
        super().asking(round_)

    def answered(self, replies: Sequence[Any]) -> None:
        """Count what the replies cost."""
        super().answered(replies)
        for request, reply in zip(self._round, replies, strict=True):
            if isinstance(request, LLMRequest) and isinstance(reply, LLMReply):
                given, got = reply.input_tokens, reply.output_tokens
                self._take(
                    tokens(request.system, request.user) if given is None else given,
                    tokens(reply.text) if got is None else got,
                )
        self._round = ()

    def settle(self) -> None:
        """Give back what was put aside and not taken, or add what was taken beyond it. Raises nothing."""
        try:
            self._settle()
        except Exception as error:  # what was put aside stays spent
            self._purse.failed(error)

    def _settle(self) -> None:
        for request in self._round:  # of a round that failed: its calls were made, and may have been paid for
            if isinstance(request, LLMRequest):
                self._take(tokens(request.system, request.user), 0)
        self._round = ()
        if self._taken.calls and self.refused_by is None:
            self._purse.took(self._key, self._first, self._taken.calls)
        if self._put_aside != _NOTHING:
            self._purse.correct(self._taken.minus(self._put_aside), self._at)

    def _reserve(self, more: _Expense) -> None:
        with self._untimed():
            refused = self._spent(more)
        if refused is not None:
            self._round, self.refused_by = (), refused
            if self._taken.calls:  # broken off half-way: the next ones put as much aside before they begin
                self._purse.took(self._key, self._first, self._put_aside.calls + more.calls)
            raise CannotScore("over_budget", f"{refused}: the monitor's budget has no room for another evaluation")
        self._put_aside = self._put_aside.plus(more)

    def _spent(self, more: _Expense) -> str | None:
        """Enter an expense as soon as the account can be reached; return the limit that refuses it."""
        wait = _FIRST_WAIT
        while True:
            try:
                return self._purse.spend(more, self._at)
            except Exception as error:
                self._purse.failed(error)
            try:
                self._purse.wait(wait)
            except CannotScore:
                self._round = ()
                raise
            wait = min(2 * wait, _LONGEST_WAIT)
            if not self._taken.calls:
                self._at = self._purse.clock()  # it starts now

    def _take(self, input_tokens: int, output_tokens: int) -> None:
        self._taken = self._taken.plus(self._priced(1, input_tokens, output_tokens))

    def _priced(self, calls: int, input_tokens: int, output_tokens: int) -> _Expense:
        return _Expense(calls, input_tokens + output_tokens, self._purse.budget.price(input_tokens, output_tokens))


def _unheard(error: Exception) -> None:
    del error


def _prompt_tokens(round_: Round) -> int:
    return sum(tokens(request.system, request.user) for request in round_ if isinstance(request, LLMRequest))
