"""A real `StringEvaluator`, for those who have langchain-classic; it is imported only with this module."""

from typing import TYPE_CHECKING, Any

try:
    from langchain_classic.evaluation import StringEvaluator
except ImportError as error:
    raise ImportError("ragstone_langchain.classic needs langchain-classic: pip install langchain-classic") from error

if TYPE_CHECKING:
    from ragstone_langchain.evaluator import RagEvaluator


class RagStringEvaluator(StringEvaluator):
    """A `RagEvaluator` of one metric as LangChain's `StringEvaluator`; contexts are passed as `contexts=`.

    A result has `score` (None where there is none), `value` ("passed" or "failed" by the metric's threshold, None
    without one), `reasoning` and `metadata`. LangChain's own checks are made: a question or a reference that the metric
    needs and that is missing raises ValueError, one that no one reads is warned of.

    Raises:
        ValueError: The evaluator has several metrics.
    """

    def __init__(self, evaluator: "RagEvaluator") -> None:
        if len(evaluator.metrics) > 1:
            raise ValueError(f"evaluator: has several metrics; name one of them: {', '.join(evaluator.keys)}")
        self._evaluator, (self._metric,) = evaluator, evaluator.metrics

    @property
    def evaluation_name(self) -> str:
        """The evaluator's key."""
        return self._evaluator.keys[0]

    @property
    def requires_input(self) -> bool:
        """Whether the metric reads the question."""
        return "user_input" in self._metric.required_fields

    @property
    def requires_reference(self) -> bool:
        """Whether the metric reads a reference answer."""
        return "reference" in self._metric.required_fields

    def _check_evaluation_args(self, reference: str | None = None, input_: str | None = None) -> None:
        # The original of a summary may be passed as `input` or as `contexts`: neither is required nor superfluous.
        if self._metric.source_field is not None:
            input_ = "" if self.requires_input else None
        super()._check_evaluation_args(reference=reference, input_=input_)

    def _evaluate_strings(self, *, prediction: object, **others: object) -> dict[str, Any]:
        return _langchain_result(self._evaluator(outputs=prediction, **_renamed(others)))

    async def _aevaluate_strings(self, *, prediction: object, **others: object) -> dict[str, Any]:
        return _langchain_result(await self._evaluator.acall(outputs=prediction, **_renamed(others)))


def _renamed(others: dict[str, object]) -> dict[str, object]:
    return {"inputs": others.pop("input", None), "reference_outputs": others.pop("reference", None), **others}


def _langchain_result(result: dict[str, Any]) -> dict[str, Any]:
    word = {True: "passed", False: "failed", None: None}[result["metadata"]["passed"]]
    return {"score": result["score"], "value": word, "reasoning": result["comment"], "metadata": result["metadata"]}
