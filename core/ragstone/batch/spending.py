"""What a run may spend on its judges, and what their tokens cost."""

import time
from collections import Counter
from collections.abc import Sequence
from math import inf

from ragstone.batch.estimation import estimate_sample
from ragstone.judge import Meter
from ragstone.limits.budget import Account, BudgetMeter, MemoryLedger, RunBudget
from ragstone.limits.prices import Price, list_price
from ragstone.metrics.base import Metric
from ragstone.registry import is_embedded
from ragstone.sample import Sample

_FREE = Price(0.0, 0.0, "")


class Spending:
    """Prices of the judges of a run, and its limits; without a limit it only counts.

    An evaluation reserves what it is expected to take before its first call, so that hardly any is broken off half-way.

    Args:
        metrics: Their judges are asked.
        price: Of all judges, per million prompt and reply tokens. None: each one's list price, where it is known.
        judge: The name by which the judges were made, if they were made by name.
        max_calls: Calls to judges, at most.
        max_tokens: Prompt and reply tokens together, at most.
        max_cost: Money, at most.

    Attributes:
        prices: What the judges cost, by their `model`; those that are not known are missing.

    Raises:
        ValueError: Money is limited, and no price is known of a judge.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        price: tuple[float, float] | None,
        judge: object = None,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ) -> None:
        if price is not None and not (len(price) == 2 and all(0 <= each < inf for each in price)):
            raise ValueError(f"price: {price!r} is none; pass what a million prompt and reply tokens cost: (0.25, 2.0)")
        self.prices: dict[str, Price] = {}
        self._accounts: dict[str, Account] = {}
        ledger, now = MemoryLedger(), int(time.time())
        for metric in (each for each in metrics if each.llm is not None):  # the others ask no judge
            model = metric.judge.model
            rate = Price(*price) if price else list_price(metric.judge)
            if rate is None and isinstance(judge, str) and judge.endswith(f":{model}"):
                rate = list_price(judge)
            if rate is not None:
                self.prices[model] = rate
            if max_cost is not None and rate is None and not is_embedded(metric.judge):
                raise ValueError(f"max_cost: no price of {model!r} is known; give one, per million tokens in and out")
            if (max_calls, max_tokens, max_cost) != (None, None, None):
                budget = RunBudget(
                    calls=max_calls, tokens=max_tokens, cost=max_cost, per_million=rate or _FREE, begun_at=now
                )
                self._accounts.setdefault(model, Account(budget, ledger))

    def meter(self, metric: Metric, sample: Sample) -> Meter:
        """Return what counts one evaluation, and refuses it where the run has no room for it."""
        account = self._accounts.get(metric.judge.model)
        if account is None:
            return Meter()

        def expected() -> Counter[str]:
            whole = estimate_sample(metric, sample)
            return Counter(calls=whole.calls, input=whole.input_tokens, output=whole.output_tokens)

        return BudgetMeter(account, (metric.name, metric.version), expected)
