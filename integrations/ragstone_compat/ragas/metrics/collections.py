"""The metrics again: `await metric.ascore(user_input=..., response=...)` returns a result with `value` and `reason`."""

from ragstone_compat.ragas.metrics import (
    AnswerCorrectness,
    AnswerRelevancy,
    ContextPrecision,
    ContextRecall,
    ContextUtilization,
    FactualCorrectness,
    Faithfulness,
    SemanticSimilarity,
    SummarizationScore,
)

ContextPrecisionWithReference, ContextPrecisionWithoutReference = ContextPrecision, ContextUtilization
SummaryScore = SummarizationScore
__all__ = [
    "AnswerCorrectness",
    "AnswerRelevancy",
    "ContextPrecision",
    "ContextPrecisionWithReference",
    "ContextPrecisionWithoutReference",
    "ContextRecall",
    "ContextUtilization",
    "FactualCorrectness",
    "Faithfulness",
    "SemanticSimilarity",
    "SummaryScore",
]
