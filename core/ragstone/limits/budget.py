"""How much judging may cost: limits, and the account that they are held against."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

_SECONDS = {"minute": 60, "day": 86_400}
_KEPT = 2 * 86_400


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What the judge may be asked, at most; None: no limit.

    Minutes and days are those of the clock (UTC), so that all processes mean the same ones; an evaluation counts in
    those in which it starts. Calls are counted before they are made and never exceed their limit. Tokens, and so
    money, are estimated before a call and corrected by what the provider says after it, so that they may exceed
    theirs by one round of calls in each worker. An evaluation that there is no room for makes no call. One may be
    broken off half-way when it makes more calls than others by its metric did, as the first ones may, or when it needs
    another round and the tokens are used up.

    Args:
        calls_per_minute: Judge calls, those to an embedder not counted.
        calls_per_day: Likewise.
        tokens_per_minute: Input and output tokens together.
        tokens_per_day: Likewise.
        money_per_minute: In the currency of the prices, which must be given.
        money_per_day: Likewise.
        input_price: Of a million input tokens.
        output_price: Of a million output tokens.

    Raises:
        ValueError: A limit or a price is negative, or money is limited and no price given.

    Example:
        >>> Budget(calls_per_minute=60, money_per_day=5.0, input_price=0.15, output_price=0.60).price(1_000_000, 0)
        0.15
    """

    calls_per_minute: int | None = None
    calls_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    money_per_minute: float | None = None
    money_per_day: float | None = None
    input_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0):
                raise ValueError(f"{field.name}: is {value!r}; give a number from 0, or None for no limit")
        limited = self.money_per_minute is not None or self.money_per_day is not None
        if limited and (self.input_price is None or self.output_price is None):
            raise ValueError("money_per_minute, money_per_day: need input_price and output_price (per million tokens)")

    def price(self, input_tokens: int, output_tokens: int) -> float:
        """Return what the tokens cost; 0.0 where no price is given."""
        return ((self.input_price or 0.0) * input_tokens + (self.output_price or 0.0) * output_tokens) / 1e6

    def entries(self, now: float, *, calls: int, tokens: int, money: float) -> "list[Entry]":
        """Return what to enter for an expense at a time, under each limit that there is."""
        amounts = {"calls": calls, "tokens": tokens, "money": money}
        found: list[Entry] = []
        for unit, amount in amounts.items():
            for period, seconds in _SECONDS.items():
                name = f"{unit}_per_{period}"
                limit = getattr(self, name)
                if limit is not None:
                    found.append(Entry(name, int(now // seconds) * seconds, amount, limit))
        return found


class Entry(NamedTuple):
    """An amount under one limit in one window of time.

    Attributes:
        name: The limit's name, such as "calls_per_minute".
        starts_at: When the window starts, in seconds since 1970 (UTC).
        amount: What is added; negative where an estimate was too high.
        limit: What the window's sum may not exceed; None adds the amount whatever the sum.
    """

    name: str
    starts_at: int
    amount: float
    limit: float | None


class Ledger(Protocol):
    """An account of what was spent, by limit and window."""

    def spend(self, entries: Sequence[Entry], /) -> str | None:
        """Enter all amounts, or none: then return the name of the limit that refused. Atomic between processes.

        Raises:
            Exception: The account cannot be reached. Nothing is spent then, and the evaluation waits.
        """
        ...


class MemoryLedger:
    """The account of one process.

    Example:
        >>> ledger = MemoryLedger()
        >>> ledger.spend([Entry("calls_per_minute", 0, 2, 3)]), ledger.spend([Entry("calls_per_minute", 0, 2, 3)])
        (None, 'calls_per_minute')
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, int], float] = {}

    def spend(self, entries: Sequence[Entry], /) -> str | None:
        """Enter all amounts, or none: then return the name of the limit that refused."""
        with self._lock:
            for name, starts_at, amount, limit in entries:
                if limit is not None and self._sums.get((name, starts_at), 0) + amount > limit:
                    return name
            for name, starts_at, amount, _ in entries:
                if (name, starts_at) not in self._sums:
                    self._forget(min(int(time.time()), starts_at) - _KEPT)  # whatever the clock says
                self._sums[name, starts_at] = self._sums.get((name, starts_at), 0) + amount
        return None

    def _forget(self, before: float) -> None:
        for key in [key for key in self._sums if key[1] < before]:
            del self._sums[key]
