"""What a run may ask of its judges at most: calls, tokens and money."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, isfinite

from ragstone.errors import CannotScore
from ragstone.judge import DecisionReply, DecisionRequest, LLMReply, LLMRequest, Meter
from ragstone.judging.flow import EmbedRequest, ReservingMeter, prompt_tokens
from ragstone.judging.prompt import tokens
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

    Attributes:
        growth: How many times its estimate a prompt took at most, so far; at least 1.
        longest: The tokens of the longest reply so far.

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
        self.growth = 1.0
        self.longest = 0

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited, or what they cost: then the first call goes alone, and tells what calls take."""
        return not self._limits.keys() <= {"max_calls"}

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
    """Counts the cost of one evaluation, which reserves what it is expected to take before its first call.

    Tokens are taken call by call, each as the largest one so far.
    """

    def __init__(self, spending: Spending, expected: Callable[[], Counter[str]]) -> None:
        super().__init__()
        self._spending = spending
        self._expected = expected

    def asking(self, round_: Sequence[object]) -> None:
        """Reserve the round's calls.

        Raises:
            CannotScore: "over_budget"; the calls are not made.
        """
        if calls := sum(not isinstance(request, EmbedRequest) for request in round_):
            self._take(Counter(calls=calls))
        Meter.asking(self, round_)

    def calling(self, request: LLMRequest | DecisionRequest) -> tuple[int, Counter[str]]:
        """Reserve a call's tokens; return the estimate of its prompt, and what was reserved.

        Raises:
            CannotScore: "over_budget"; the call is not made.
        """
        estimate = prompt_tokens(request)
        spending = self._spending
        taken = Counter(input=ceil(estimate * spending.growth), output=spending.longest)
        try:
            self._take(taken)
        except CannotScore:
            self.spared()
            raise
        return estimate, taken

    def called(self, taken: tuple[int, Counter[str]], reply: object) -> None:
        """Count what a call took, and learn from it; one that failed took nothing."""
        estimate, reserved = taken
        self._cost.subtract(reserved)
        if not isinstance(reply, (LLMReply, DecisionReply)):
            return
        sent = estimate if reply.input_tokens is None else reply.input_tokens
        received = reply.output_tokens
        if received is None:
            received = tokens(reply.text) if isinstance(reply, LLMReply) else 0
        self._cost.update(input=sent, output=received)
        spending = self._spending
        spending.growth = max(spending.growth, sent / max(1, estimate))
        spending.longest = max(spending.longest, received)
        beyond = self._cost - self._reserved
        spending.correct(beyond)
        self._reserved += beyond

    def answered(self, replies: Sequence[object]) -> None:
        """Note the tokens of a round's replies: `called` has counted them."""
        Meter.answered(self, replies)

    def _expect(self, need: Counter[str]) -> None:
        expected, spending = self._expected(), self._spending
        need |= Counter(
            calls=expected["calls"],
            input=ceil(expected["input"] * spending.growth),
            output=max(expected["output"], expected["calls"] * spending.longest),
        )

    def _reserve(self, more: Counter[str]) -> None:
        self._spending.reserve(more)

    def ended(self) -> None:
        """Give back what was reserved and not taken, or enter what was taken beyond it."""
        self._spending.correct(self._beyond())
