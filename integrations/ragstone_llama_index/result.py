"""`MetricResult`: an outcome in the form that LlamaIndex' evaluators return."""

from llama_index.core.evaluation import EvaluationResult
from pydantic import Field

from ragstone.outcome import Outcome, Score, Unscored, UnscoredReason, Usage, Verdict
from ragstone.sample import Sample


class MetricResult(EvaluationResult):
    """An `EvaluationResult` with all that the number rests on.

    `score` is the metric's value, `passing` whether it reaches the metric's threshold (None without one), and
    `feedback` the reason. What could not be scored has `score` None, `invalid_result` True, and `invalid_reason`
    "REASON: DETAIL"; it is never a 0.

    Attributes:
        metric: The metric's name.
        version: The metric's version; it changes with its prompts.
        unscored: Why there is no score, in one word for counting; None where there is one.
        breakdown: The parts of the score by name.
        verdicts: The judge's answers, one per item asked, with their evidence.
        usage: Calls, tokens and seconds, also of what failed.

    Example:
        >>> from ragstone import Unscored
        >>> failed = Unscored(metric="demo", reason="timeout", detail="60 s", version="1")
        >>> result = MetricResult.of(failed, Sample(response="So."))
        >>> result.score, result.invalid_result, result.invalid_reason, result.outcome == failed
        (None, True, 'timeout: 60 s', True)
    """

    metric: str
    version: str
    unscored: UnscoredReason | None = None
    breakdown: dict[str, float] = Field(default_factory=dict[str, float])
    verdicts: tuple[Verdict, ...] = ()
    usage: Usage = Usage()

    @classmethod
    def of(cls, outcome: Outcome, sample: Sample) -> "MetricResult":
        """Return an outcome on a sample as a result."""
        contexts = list(sample.retrieved_contexts) if "retrieved_contexts" in sample.model_fields_set else None
        if isinstance(outcome, Unscored):
            return cls(
                query=sample.user_input,
                contexts=contexts,
                response=sample.response,
                invalid_result=True,
                invalid_reason=f"{outcome.reason}: {outcome.detail}",
                metric=outcome.metric,
                version=outcome.version,
                unscored=outcome.reason,
                usage=outcome.usage,
            )
        return cls(
            query=sample.user_input,
            contexts=contexts,
            response=sample.response,
            score=outcome.value,
            passing=outcome.passed,
            feedback=outcome.reason,
            metric=outcome.metric,
            version=outcome.version,
            breakdown=outcome.breakdown,
            verdicts=outcome.verdicts,
            usage=outcome.usage,
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome as ragstone's core returns it, for its summaries and sinks."""
        if self.unscored is not None or self.score is None:
            reason = self.unscored or "undefined"
            detail = (self.invalid_reason or "").removeprefix(f"{reason}: ")
            return Unscored(metric=self.metric, reason=reason, detail=detail, usage=self.usage, version=self.version)
        return Score(
            metric=self.metric,
            value=self.score,
            passed=self.passing,
            reason=self.feedback or "",
            breakdown=self.breakdown,
            verdicts=self.verdicts,
            usage=self.usage,
            version=self.version,
        )
