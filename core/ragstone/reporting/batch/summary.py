"""Adding up outcomes as they come, in constant memory."""

from collections import Counter
from dataclasses import dataclass, field

from ragstone.outcome import Outcome, Score, UnscoredReason, Usage


@dataclass(slots=True)
class Summary:
    """Running totals of one metric's outcomes.

    Attributes:
        total: Outcomes added.
        scored: Those that are a `Score`.
        failures: How many are unscored, by reason. They enter no mean.
        examples: By reason, where the first of them was and what it says.
        usage: What all of them cost together.

    Example:
        >>> from ragstone.outcome import Unscored
        >>> summary = Summary()
        >>> summary.add(Score(metric="demo", value=0.5, reason="", version="1"))
        >>> summary.add(Unscored(metric="demo", reason="timeout", detail="60 s", version="1"), where="line 7")
        >>> summary.mean, summary.scored, summary.total, dict(summary.failures), summary.examples
        (0.5, 1, 2, {'timeout': 1}, {'timeout': 'line 7: 60 s'})
    """

    total: int = 0
    scored: int = 0
    failures: "Counter[UnscoredReason]" = field(default_factory=Counter["UnscoredReason"])
    examples: dict[UnscoredReason, str] = field(default_factory=dict[UnscoredReason, str])
    usage: Usage = field(default_factory=Usage)
    _sum: float = 0.0

    def add(self, outcome: Outcome, *, where: str = "") -> None:
        """Count one outcome, of the sample that stood at `where`."""
        self.total += 1
        self.usage += outcome.usage
        if isinstance(outcome, Score):
            self.scored += 1
            self._sum += outcome.value
        else:
            self.failures[outcome.reason] += 1
            self.examples.setdefault(outcome.reason, f"{where}: {outcome.detail}" if where else outcome.detail)

    @property
    def mean(self) -> float | None:
        """The mean of the scores; None when nothing was scored."""
        return self._sum / self.scored if self.scored else None
