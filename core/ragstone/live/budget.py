"""The budget of a monitor: limits, the spending of a process, the check before each round."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from ragstone.errors import CannotScore
from ragstone.judge import JudgeReply, JudgeRequest
from ragstone.judging.metering import ReservingMeter
from ragstone.judging.prompt import tokens
from ragstone.live.outcomes import used_between
from ragstone.options import NotNegative, checked
from ragstone.results.database import Database

_SECONDS = {"minute": 60, "day": 86_400}
# Minutes, more than a day of them, and days.
_REMEMBERED = 1_500


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of one process on its judges; None: no limit.

    Minutes and days are those of the clock (UTC). An evaluation counts when it starts. A process that
    starts counts as spent what today's outcomes in the monitor's first database used, so that a restart spends no day
    twice. Calls are counted before they are made and never exceed their limit. Tokens and money are estimated before
    a call and corrected after it: each worker may exceed their limits by one round of calls. An evaluation without room
    makes no call. One may be broken off half-way when it makes more calls
    than the last one by its metric did, as the first ones may, or when it needs another round and the tokens are used
    up.

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
        """The price of the tokens; 0.0 without prices."""
        return ((self.input_price or 0.0) * input_tokens + (self.output_price or 0.0) * output_tokens) / 1e6


class Account:
    """The spending of a process, and what its evaluations know of each other.

    Before its first call, an evaluation reserves as many calls as it will make if it grows as the last one by its
    metric did, and gives back the rest when it ends. So an evaluation without room costs nothing, and mostly only the
    first ones by a metric are broken off half-way. Tokens and money are reserved for one round at a time.

    Args:
        database: Where outcomes of earlier processes are; None: nothing was spent today.

    Attributes:
        clock: Tells the time.
        growth: How often the calls of its first round the last evaluation by a metric made in all.
        most_calls: How many calls an evaluation reserves at most, beyond those of its first round; 0 without a limit.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float], database: Database | None) -> None:
        limits = (budget.calls_per_minute, budget.calls_per_day)
        self.clock = clock
        self.growth: dict[tuple[str, str], float] = {}
        self.most_calls = min((limit for limit in limits if limit is not None), default=0)
        self._budget = budget
        self._unread = database
        self._lock = threading.Lock()
        self._spent: dict[str, dict[int, Counter[str]]] = {period: {} for period in _SECONDS}

    def read(self) -> None:
        """Count what was spent today before this process started, the first time that the database can be read.

        Raises:
            SinkError: It cannot; call it again.
        """
        with self._lock:
            if self._unread is None:
                return
            now = self.clock()
            midnight = now - now % _SECONDS["day"]
            with self._unread.reading() as connection:
                used = used_between(connection, midnight, midnight + _SECONDS["day"])
            self._unread = None
            self._sums(now)["day"].update(used)

    def spend(self, cost: Counter[str], at: float, *, limited: bool = True) -> str | None:
        """Count a cost, unless a limit refuses it: then return its name. Without `limited`, none does."""
        with self._lock:
            sums = self._sums(at)
            for period, spent in sums.items() if limited else ():
                if refused_by := self._exceeded(spent + cost, period):
                    return refused_by
            for spent in sums.values():
                spent.update(cost)
        return None

    def _sums(self, at: float) -> dict[str, Counter[str]]:
        """Return what was spent in the minute and in the day of a time."""
        sums: dict[str, Counter[str]] = {}
        for period, seconds in _SECONDS.items():
            known = self._spent[period]
            sums[period] = known.setdefault(int(at // seconds), Counter())
            if len(known) > _REMEMBERED:
                del known[next(iter(known))]
        return sums

    def _exceeded(self, spent: Counter[str], period: str) -> str | None:
        money = self._budget.price(spent["input"], spent["output"])
        amounts = {"calls": spent["calls"], "tokens": spent["input"] + spent["output"], "money": money}
        for unit, amount in amounts.items():
            limit = getattr(self._budget, name := f"{unit}_per_{period}")
            if limit is not None and amount > limit:
                return name
        return None


class BudgetMeter(ReservingMeter):
    """Counts the cost of one evaluation, and refuses a round of calls that the budget has no room for.

    Args:
        account: The budget's.
        key: Name and version of the metric.

    Attributes:
        refused_by: The limit that refused, None where none did.
    """

    def __init__(self, account: Account, key: tuple[str, str]) -> None:
        super().__init__()
        self.refused_by: str | None = None
        self._account = account
        self._key = key
        self._at = account.clock()
        # Calls of the first round.
        self._first = 0
        # Tokens of each prompt of the round under way.
        self._estimates: list[int] = []

    def asking(self, round_: Sequence[object]) -> None:
        """Reserve the round's cost.

        Raises:
            CannotScore: "over_budget"; the calls are not made.
        """
        requests = [request for request in round_ if isinstance(request, JudgeRequest)]
        if requests:
            estimates = [tokens(*request.texts_read) for request in requests]
            self._take(Counter(calls=len(requests), input=sum(estimates)))
            self._estimates = estimates
        super().asking(round_)

    def answered(self, replies: Sequence[object]) -> None:
        """Count the cost of the replies."""
        super().answered(replies)
        of_judges = [reply for reply in replies if isinstance(reply, JudgeReply)]
        for estimate, reply in zip(self._estimates, of_judges, strict=True):
            sent, received = reply.input_tokens, reply.output_tokens
            if received is None:
                received = tokens(reply.text)
            self._cost.update(input=0 if sent is None else sent - estimate, output=received)
        self._estimates = []

    def ended(self) -> None:
        """Give back what was reserved and not taken, or count what was taken beyond it."""
        if self._cost and self.refused_by is None:
            self._account.growth[self._key] = self._cost["calls"] / self._first
        self._account.spend(self._beyond(), self._at, limited=False)

    def _expect(self, need: Counter[str]) -> None:
        self._first = need["calls"]
        grown = round(self._account.growth.get(self._key, 1.0) * self._first)
        need["calls"] = max(self._first, min(grown, self._account.most_calls))

    def _reserve(self, more: Counter[str]) -> None:
        self.refused_by = self._account.spend(more, self._at)
        if self.refused_by is None:
            return
        if self._cost:
            # Broken off half-way: the next ones reserve as much before they begin.
            self._account.growth[self._key] = (self._reserved["calls"] + more["calls"]) / self._first
        raise CannotScore("over_budget", f"{self.refused_by}: the budget has no room for another evaluation")
