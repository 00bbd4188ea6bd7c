"""What a run may ask of its judges at most: calls, tokens and money."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from math import isfinite

from ragstone.errors import CannotScore
from ragstone.judge import Meter
from ragstone.judging.flow import ReservingMeter
from ragstone.metrics.base import Metric
from ragstone.plain import is_list
from ragstone.sample import Sample

Price = tuple[float, float]
"""What a million prompt tokens and a million reply tokens cost."""


def check_price(price: object) -> None:
    """Check that a price, where there is one, is one.

    Raises:
        ValueError: It is not two numbers of at least 0.
    """
    numbers = price if is_list(price) else ()
    good = [isinstance(each, (int, float)) and isfinite(each) and each >= 0 for each in numbers]
    if price is not None and good != [True, True]:
        raise ValueError(f"price: {price!r} is none; pass what a million prompt and reply tokens cost: (0.25, 2.0)")


def cost_of(price: Price, input_tokens: float, output_tokens: float) -> float:
    """Return what so many tokens cost.

    Example:
        >>> cost_of((0.25, 2.0), 1_000_000, 500_000)
        1.25
    """
    return (price[0] * input_tokens + price[1] * output_tokens) / 1e6


class Spending:
    """The limits of one run on one event loop, and what its evaluations have reserved of them.

    Args:
        price: What judges cost.
        max_calls: Calls to judges.
        max_tokens: Prompt and reply tokens together.
        max_cost: Money. It needs a price.
        expected: What an evaluation is expected to take ("calls", "input" and "output" tokens).

    Raises:
        ValueError: The price is none, or money is limited without one.
    """

    def __init__(
        self,
        price: Price | None = None,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        expected: Callable[[Metric, Sample], Counter[str]] = lambda _metric, _sample: Counter(),
    ) -> None:
        check_price(price)
        if max_cost is not None and price is None:
            raise ValueError(
                "max_cost: needs a price; pass what a million prompt and reply tokens cost, such as price=(0.25, 2.0)"
            )
        self._price = price or (0.0, 0.0)
        limits = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._expected = expected
        self._spent: Counter[str] = Counter()

    def meter(self, metric: Metric, sample: Sample) -> Meter:
        """Return what counts one evaluation, and refuses calls that the run has no room for."""
        return SpendingMeter(self, partial(self._expected, metric, sample)) if self._limits else Meter()

    def reserve(self, more: Counter[str]) -> None:
        """Reserve calls and tokens ("calls", "input", "output"), all or none.

        Raises:
            CannotScore: "over_budget": a limit has no room for them.
        """
        spent = self._spent + more
        sums = {
            "max_calls": spent["calls"],
            "max_tokens": spent["input"] + spent["output"],
            "max_cost": cost_of(self._price, spent["input"], spent["output"]),
        }
        for name, limit in self._limits.items():
            if sums[name] > limit:
                raise CannotScore("over_budget", f"{name}: the budget has no room for another evaluation")
        self._spent = spent

    def correct(self, difference: Counter[str]) -> None:
        """Enter what was taken beyond what was reserved; less than that is negative."""
        self._spent.update(difference)


class SpendingMeter(ReservingMeter):
    """Counts the cost of one evaluation, which reserves what it is expected to take before its first call."""

    def __init__(self, spending: Spending, expected: Callable[[], Counter[str]]) -> None:
        super().__init__()
        self._spending = spending
        self._expected = expected

    def _expect(self, need: Counter[str]) -> None:
        need |= self._expected()

    def _reserve(self, more: Counter[str]) -> None:
        self._spending.reserve(more)

    def ended(self) -> None:
        """Give back what was reserved and not taken, or enter what was taken beyond it."""
        self._spending.correct(self._beyond())
