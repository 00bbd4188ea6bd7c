"""A real `StringEvaluator`, for those who have langchain-classic; it is imported only with this module."""

from typing import TYPE_CHECKING, Any

try:
    from langchain_classic.evaluation import StringEvaluator
except ImportError as error:
    raise ImportError("ragstone_langchain.classic needs langchain-classic: pip install langchain-classic") from error

if TYPE_CHECKING:
    from ragstone_langchain.evaluator import RagEvaluator


class RagStringEvaluator(StringEvaluator):
    """A `RagEvaluator` as LangChain's `StringEvaluator`; contexts are passed as `contexts=`.

    Beside what `RagEvaluator.evaluate_strings` does, LangChain's own checks are made: a question that the metric needs
    and that is missing raises ValueError, a reference is warned of, and a question that no one reads too.
    """

    def __init__(self, evaluator: "RagEvaluator") -> None:
        self._evaluator = evaluator

    @property
    def evaluation_name(self) -> str:
        """The evaluator's key."""
        return self._evaluator.key

    @property
    def requires_input(self) -> bool:
        """Whether the metric reads the question."""
        return self._evaluator.requires_input

    def _check_evaluation_args(self, reference: str | None = None, input_: str | None = None) -> None:
        # The original of a summary may be passed as `input` or as `contexts`: neither is required nor superfluous.
        if self._evaluator.metric.source_field is not None:
            input_ = "" if self.requires_input else None
        super()._check_evaluation_args(reference=reference, input_=input_)

    def _evaluate_strings(self, **arguments: object) -> dict[str, Any]:
        return self._evaluator.evaluate_strings(**arguments)

    async def _aevaluate_strings(self, **arguments: object) -> dict[str, Any]:
        return await self._evaluator.aevaluate_strings(**arguments)
