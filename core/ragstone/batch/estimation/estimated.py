"""The result of an estimate: numbers by metric, and their table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.outcome import UnscoredReason


@dataclass(slots=True)
class MetricEstimate:
    """What one metric would cost.

    Attributes:
        metric: Its name.
        judge: The judge's model.
        evaluations: Samples, times `repeat`.
        unscored: Those that would be `Unscored` before any call, by reason.
        first_calls: Judge calls of the first round: exact.
        first_input_tokens: Their prompts' tokens, by `ragstone.judging.tokens`.
        calls: Judge calls in all.
        embed_calls: Calls to the embedder in all.
        rounds: The most rounds of judge calls that one sample takes.
        input_tokens: Prompt tokens in all.
        output_tokens: Reply tokens in all.
        first_round_only: Evaluations that could not be followed beyond their first round (a metric of your own whose
            judge replies are in no schema): what comes after it is in none of these numbers.
        cost: In the currency of the prices; None without prices.
    """

    metric: str
    judge: str
    evaluations: int = 0
    unscored: "Counter[UnscoredReason]" = field(default_factory=Counter["UnscoredReason"])
    first_calls: int = 0
    first_input_tokens: int = 0
    calls: int = 0
    embed_calls: int = 0
    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    first_round_only: int = 0
    cost: float | None = None

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain JSON values."""
        names = list(type(self).__dataclass_fields__)
        return {**{name: getattr(self, name) for name in names}, "unscored": dict(self.unscored)}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a batch would cost; `print` shows it as a table.

    Attributes:
        metrics: By metric, in the given order.
        samples: Samples.
        bad_rows: Rows that hold no sample.
        repeat: Scorings of each sample by each metric.

    Example:
        >>> from ragstone import ContextRelevancy, Sample
        >>> from ragstone.batch.estimation.estimate import estimate
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: "never asked"))
        >>> found = estimate([Sample(user_input="Why?", retrieved_contexts=["So."])], [metric])
        >>> found.calls, found.rounds, found.output_tokens
        (1, 1, 3)
    """

    metrics: tuple[MetricEstimate, ...]
    samples: int
    bad_rows: int = 0
    repeat: int = 1

    @property
    def calls(self) -> int:
        """Judge calls."""
        return sum(each.calls for each in self.metrics)

    @property
    def embed_calls(self) -> int:
        """Calls to embedders."""
        return sum(each.embed_calls for each in self.metrics)

    @property
    def rounds(self) -> int:
        """Rounds of judge calls, one after the other: as many batches would a provider's batch endpoint take."""
        return max((each.rounds for each in self.metrics), default=0)

    @property
    def input_tokens(self) -> int:
        """Prompt tokens."""
        return sum(each.input_tokens for each in self.metrics)

    @property
    def output_tokens(self) -> int:
        """Reply tokens."""
        return sum(each.output_tokens for each in self.metrics)

    @property
    def cost(self) -> float | None:
        """In the currency of the prices; None without prices."""
        costs = [each.cost for each in self.metrics if each.cost is not None]
        return sum(costs) if costs and len(costs) == len(self.metrics) else None

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain JSON values."""
        names = ("samples", "bad_rows", "repeat", "calls", "embed_calls", "rounds", "input_tokens", "output_tokens")
        return {
            **{name: getattr(self, name) for name in names},
            "cost": self.cost,
            "metrics": [each.to_dict() for each in self.metrics],
        }

    def __str__(self) -> str:
        priced = self.cost is not None
        head = ["metric", "samples", "rounds", "judge calls", "in round 1", "tokens in", "tokens out", "embed calls"]
        rows = [head + ["cost"] * priced]
        rows += [
            [each.metric, *_cells(each, each.evaluations, each.first_calls), *_money(each.cost, priced)]
            for each in self.metrics
        ]
        if len(self.metrics) > 1:
            first = sum(each.first_calls for each in self.metrics)
            asked = sum(each.evaluations for each in self.metrics)
            rows.append(["together", *_cells(self, asked, first), *_money(self.cost, priced)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(_padded(row, widths)).rstrip() for row in rows]
        for each in self.metrics:
            lines += [
                f"unscored by {each.metric}, without a call: {count:,} {reason}"
                for reason, count in sorted(each.unscored.items())
            ]
            if each.first_round_only:
                lines.append(
                    f"{each.metric}: {each.first_round_only:,} by their first round only, the rest is not known"
                )
        if self.bad_rows:
            lines.append(f"{self.bad_rows:,} row(s) hold no sample")
        lines.append("Calls of round 1 are exact; later ones and tokens out suppose replies of the asked form.")
        return "\n".join(lines)


def _cells(of: MetricEstimate | Estimate, evaluations: int, first_calls: int) -> list[str]:
    numbers = (evaluations, of.rounds, of.calls, first_calls, of.input_tokens, of.output_tokens, of.embed_calls)
    return [f"{number:,}" for number in numbers]


def _money(cost: float | None, priced: bool) -> list[str]:
    return ["-" if cost is None else f"{cost:,.2f}" if cost >= 1 else f"{cost:.4f}"] if priced else []


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
