"""What judging live traffic may cost: limits, the ledger of what was spent, the check before each round."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields

from ragstone.errors import CannotScore
from ragstone.judging.flow import ReservingMeter
from ragstone.live.ledger import Entry, spend
from ragstone.options import NotNegative, checked
from ragstone.results.connection import Database

_SECONDS = {"minute": 60, "day": 86_400}
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # between two tries to reach the ledger


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What the judge may be asked, at most; None: no limit.

    Minutes and days are those of the clock (UTC); an evaluation counts in those in which it starts. Calls are counted
    before they are made and never exceed their limit. Tokens, and so money, are estimated before a call and corrected
    by what the provider says after it, so that they may exceed theirs by one round of calls in each worker. An
    evaluation without room makes no call. One may be broken off half-way when it makes more calls than the last one by
    its metric did, as the first ones may, or when it needs another round and the tokens are used up.

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
            checked(field.name, getattr(self, field.name), NotNegative | None)
        limited = self.money_per_minute is not None or self.money_per_day is not None
        if limited and (self.input_price is None or self.output_price is None):
            raise ValueError(
                "money_per_minute and money_per_day need input_price and output_price (per million tokens)"
            )

    def price(self, input_tokens: int, output_tokens: int) -> float:
        """Return what the tokens cost; 0.0 where no price is given."""
        return ((self.input_price or 0.0) * input_tokens + (self.output_price or 0.0) * output_tokens) / 1e6

    @property
    def most_calls(self) -> int:
        """How many calls one evaluation may reserve; 0 where calls have no limit."""
        limits = (self.calls_per_minute, self.calls_per_day)
        return min((limit for limit in limits if limit is not None), default=0)

    def entries(self, now: float, *, calls: int, tokens: int, money: float) -> list[Entry]:
        """Return what to enter for an expense at a time, under each limit that there is."""
        amounts = {"calls": calls, "tokens": tokens, "money": money}
        return [
            Entry(name, int(now // seconds) * seconds, amount, limit)
            for unit, amount in amounts.items()
            for period, seconds in _SECONDS.items()
            if (limit := getattr(self, name := f"{unit}_per_{period}")) is not None
        ]


class Account:
    """A budget with its account in a database, and what the evaluations in this process know of each other.

    Before its first call, an evaluation reserves as many calls as it will make if it grows as the last one by its
    metric did, and gives back the rest when it ends. So an evaluation without room costs nothing, and mostly only the
    first ones by a metric are broken off half-way. Tokens and money are reserved for one round at a time. While the
    database cannot be reached, evaluations wait before their next calls; none is refused.

    Attributes:
        clock: Tells the time.
        failed: Called with the error when the ledger cannot be reached.
        waiting: The evaluations that wait until it can be reached.
        closed: Set to let them give up.
        growth: How often the calls of its first round the last evaluation by a metric made in all.
        most_calls: How many calls an evaluation reserves at most, beyond those of its first round.
    """

    def __init__(
        self, budget: Budget, database: Database, clock: Callable[[], float], failed: Callable[[Exception], object]
    ) -> None:
        self.clock = clock
        self.failed = failed
        self.waiting: set[BudgetMeter] = set()
        self.closed = threading.Event()
        self.growth: dict[tuple[str, str], float] = {}
        self.most_calls = budget.most_calls
        self._budget = budget
        self._database = database

    def spend(self, cost: Counter[str], at: float, *, limited: bool = True) -> str | None:
        """Enter a cost; return the limit that refuses it. Without `limited`, enter it whatever the limits."""
        money = self._budget.price(cost["input"], cost["output"])
        entries = self._budget.entries(at, calls=cost["calls"], tokens=cost["input"] + cost["output"], money=money)
        if not limited:
            entries = [entry._replace(limit=None) for entry in entries if entry.amount]
        return spend(self._database, entries)


class BudgetMeter(ReservingMeter):
    """Counts the cost of one evaluation, and refuses a round of calls that the budget has no room for.

    Args:
        account: The budget's.
        key: Name and version of the metric.

    Attributes:
        refused_by: The limit that refused, None where none did.
        waited: The seconds that were spent with the ledger.
    """

    def __init__(self, account: Account, key: tuple[str, str]) -> None:
        super().__init__()
        self.refused_by: str | None = None
        self.waited = 0.0
        self._account = account
        self._key = key
        self._at = account.clock()

    def _expect(self, need: Counter[str]) -> None:
        grown = round(self._account.growth.get(self._key, 1.0) * self._first)
        need["calls"] = max(self._first, min(grown, self._account.most_calls))

    def _correct(self) -> None:
        """Give back what was reserved and not taken, or add what was taken beyond it. Raises nothing."""
        if self._taken["calls"] and self.refused_by is None:
            self._account.growth[self._key] = self._taken["calls"] / self._first
        difference = self._taken + Counter(calls=self._failed)
        difference.subtract(self._reserved)
        try:
            self._account.spend(difference, self._at, limited=False)
        except Exception as error:  # what was reserved stays spent
            self._account.failed(error)

    def _reserve(self, more: Counter[str]) -> None:
        """Wait while the ledger cannot be reached; "cancelled" where the account was closed meanwhile."""
        if not more:
            return
        started, wait = time.monotonic(), _FIRST_WAIT
        try:
            while True:
                try:
                    self.refused_by = self._account.spend(more, self._at)
                    break
                except Exception as error:
                    self._account.failed(error)
                self._account.waiting.add(self)
                if self._account.closed.wait(wait):
                    detail = "the monitor was closed while the budget's ledger could not be reached"
                    raise CannotScore("cancelled", detail)
                wait = min(2 * wait, _LONGEST_WAIT)
                if not self._taken["calls"]:
                    self._at = self._account.clock()  # it starts now
        finally:
            self.waited += time.monotonic() - started
            self._account.waiting.discard(self)
        if self.refused_by is not None:
            if self._taken["calls"]:  # broken off half-way: the next ones reserve as much before they begin
                self._account.growth[self._key] = (self._reserved["calls"] + more["calls"]) / self._first
            detail = f"{self.refused_by}: the budget has no room for another evaluation"
            raise CannotScore("over_budget", detail)
