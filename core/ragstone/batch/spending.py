"""What a run may ask of its judges at most: calls, tokens and money."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil

from ragstone.batch.prices import Price, cost_of
from ragstone.errors import CannotScore
from ragstone.judge import JudgeReply, JudgeRequest, Meter
from ragstone.judging.flow import EmbedRequest
from ragstone.judging.metering import ReservingMeter
from ragstone.judging.prompt import tokens
from ragstone.limits.limits import Limits
from ragstone.metrics.base import Metric
from ragstone.sample import Sample


class Spending:
    """The limits of one run on one event loop, and what its evaluations have reserved of them.

    Args:
        limits: Those of calls, tokens and money count here.
        price: What judges cost.
        expected: What an evaluation is expected to take ("calls", "input" and "output" tokens).

    Attributes:
        growth: How many times its estimate a prompt took at most, so far; at least 1.
        longest: The tokens of the longest reply so far.

    Raises:
        ValueError: Money is limited, and there is no price.
    """

    def __init__(self, limits: Limits, price: Price | None, expected: Callable[[Metric, Sample], Counter[str]]) -> None:
        if limits.max_cost is not None and price is None:
            raise ValueError(
                "max_cost: needs a price; pass that of a million prompt and reply tokens, such as price=(0.25, 2.0)"
            )
        self._expected = expected
        self._price = price or (0.0, 0.0)
        self._caps = limits.caps()
        self._spent: Counter[str] = Counter()
        self.growth = 1.0
        self.longest = 0

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited, or what they cost: then the first call goes alone, and tells what calls take."""
        return not self._caps.keys() <= {"max_calls"}

    def meter(self, metric: Metric, sample: Sample) -> Meter:
        """The meter of one evaluation, which refuses calls that the run has no room for."""
        return SpendingMeter(self, partial(self._expected, metric, sample))

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
        for name, limit in self._caps.items():
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
        super().asking(round_)

    def calling(self, request: JudgeRequest) -> tuple[int, Counter[str]]:
        """Reserve a call's tokens; return the estimate of its prompt, and what was reserved.

        Raises:
            CannotScore: "over_budget"; the call is not made.
        """
        estimate = tokens(*request.texts_read)
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
        if not isinstance(reply, JudgeReply):
            return
        sent = estimate if reply.input_tokens is None else reply.input_tokens
        received = reply.output_tokens
        if received is None:
            received = tokens(reply.text)
        self._cost.update(input=sent, output=received)
        spending = self._spending
        spending.growth = max(spending.growth, sent / max(1, estimate))
        spending.longest = max(spending.longest, received)
        beyond = self._cost - self._reserved
        spending.correct(beyond)
        self._reserved += beyond

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
