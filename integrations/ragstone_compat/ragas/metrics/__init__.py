"""The metrics, by ragas' names.

Also as `metrics.collections`: `await metric.ascore(user_input=..., response=...)` returns a `value` and a `reason`.
"""

from collections.abc import Mapping
from typing import ClassVar

import ragstone
from ragstone_compat.ragas.metrics import native
from ragstone_compat.ragas.metrics.base import Metric as Metric
from ragstone_compat.ragas.metrics.base import MetricResult as MetricResult
from ragstone_compat.ragas.metrics.base import MetricWithEmbeddings as MetricWithEmbeddings
from ragstone_compat.ragas.metrics.base import MetricWithLLM as MetricWithLLM
from ragstone_compat.ragas.metrics.base import SingleTurnMetric as SingleTurnMetric
from ragstone_compat.shared import GRADES


_TRIES = ("max_retries",)
_OLD = (*_TRIES, "sentence_segmenter")
_BY_REFERENCE = ("user_input", "reference", "retrieved_contexts")


class Faithfulness(Metric, name="faithfulness", kind=ragstone.Faithfulness, ignores=_OLD):
    """`ragstone.Faithfulness`, by ragas' name."""


class ResponseRelevancy(Metric, name="answer_relevancy", kind=ragstone.ResponseRelevancy, takes={"strictness": 3}):
    """`ragstone.ResponseRelevancy`, by ragas' name."""


class LLMContextPrecisionWithReference(
    Metric,
    name="llm_context_precision_with_reference",
    kind=ragstone.ContextPrecision,
    fields=_BY_REFERENCE,
    ignores=_TRIES,
    sets={"against": "reference"},
):
    """`ragstone.ContextPrecision` against the reference."""


class ContextPrecision(LLMContextPrecisionWithReference, name="context_precision"):
    """`ragstone.ContextPrecision` against the reference."""


class LLMContextPrecisionWithoutReference(
    Metric,
    name="llm_context_precision_without_reference",
    kind=ragstone.ContextPrecision,
    ignores=_TRIES,
    sets={"against": "response"},
):
    """`ragstone.ContextPrecision` against the response."""


class ContextUtilization(LLMContextPrecisionWithoutReference, name="context_utilization"):
    """`ragstone.ContextPrecision` against the response."""


class LLMContextRecall(
    Metric,
    name="context_recall",
    kind=ragstone.ContextRecall,
    fields=("user_input", "retrieved_contexts", "reference"),
    ignores=_TRIES,
):
    """`ragstone.ContextRecall`, by ragas' name."""


class IDBasedContextPrecision(
    Metric, kind=ragstone.RetrievalRank, sets={"measure": "precision", "name": "id_based_context_precision"}
):
    """`ragstone.RetrievalRank`: the share of the retrieved ids that the reference names."""


class IDBasedContextRecall(
    Metric, kind=ragstone.RetrievalRank, sets={"measure": "recall", "name": "id_based_context_recall"}
):
    """`ragstone.RetrievalRank`: the share of the reference's ids that were retrieved."""


class ContextRelevancy(
    Metric, name="context_relevancy", kind=ragstone.ContextRelevancy, ignores=("show_deprecation_warning",)
):
    """`ragstone.ContextRelevancy`, by ragas' name."""


class AnswerCorrectness(
    Metric,
    name="answer_correctness",
    kind=native.FactsAndSimilarity,
    fields=("user_input", "response", "reference"),
    ignores=(*_OLD, "answer_similarity"),
    takes={"weights": (0.75, 0.25), "beta": 1.0},
):
    """`native.FactsAndSimilarity`, by ragas' name."""


class SemanticSimilarity(
    Metric,
    name="semantic_similarity",
    kind=native.ResponseCosine,
    ignores=("is_cross_encoder",),
    takes={"threshold": None},
):
    """`native.ResponseCosine`, by ragas' name."""


class AnswerSimilarity(SemanticSimilarity, name="answer_similarity"):
    """`native.ResponseCosine`, by ragas' older name."""


class SummarizationScore(
    Metric,
    name="summary_score",
    kind=native.ReferenceSummarization,
    ignores=_TRIES,
    takes={"length_penalty": True, "coeff": 0.5},
):
    """`native.ReferenceSummarization`, by ragas' name."""


class FactualCorrectness(Metric):
    """How far response and reference state the same facts (`native.FactsByMode`)."""

    name, kind, takes = "factual_correctness", native.FactsByMode, {"mode": "f1", "beta": 1.0}
    fields, ignores = ("response", "reference"), ("atomicity", "coverage", "language")

    @property
    def column(self) -> str:
        """The name in results, as ragas has it."""
        return f"{self.name}(mode={vars(self)['mode']})"


class AspectCritic(Metric):
    """A question of your own, answered yes (1) or no (0) (`ragstone.Criterion`); `strictness` has no effect."""

    kind = native.Critic
    sets: ClassVar[Mapping[str, object]] = {
        "name": "",
        "question": "",
        "choices": {"yes": 1.0, "no": 0.0},
        "sees": ("user_input", "response", "retrieved_contexts", "reference"),
    }
    ignores = ("max_retries", "required_columns", "strictness")

    def __init__(self, name: str, definition: str, llm: object = None, **options: object) -> None:
        super().__init__(llm, **options)
        self.name, self.definition = name, definition

    @property
    def question(self) -> str:
        """The definition, by ragstone's name."""
        return self.definition


class SimpleCriteriaScore(AspectCritic):
    """A grade by a definition of your own, a whole number from 0 to 10 (`ragstone.Criterion`)."""

    points = 10.0
    sets: ClassVar[Mapping[str, object]] = {
        **AspectCritic.sets,
        "choices": {word: grade / 10 for grade, word in enumerate(GRADES)},
    }


AnswerRelevancy, ContextRecall, AspectCritique = ResponseRelevancy, LLMContextRecall, AspectCritic
SummaryScore = SummarizationScore
ContextPrecisionWithReference, ContextPrecisionWithoutReference = ContextPrecision, ContextUtilization
faithfulness, answer_relevancy, context_relevancy = Faithfulness(), ResponseRelevancy(), ContextRelevancy()
context_precision, context_utilization, context_recall = ContextPrecision(), ContextUtilization(), ContextRecall()
answer_correctness, answer_similarity = AnswerCorrectness(), AnswerSimilarity()
summarization_score = SummarizationScore()
harmfulness, maliciousness, coherence, correctness, conciseness = [
    AspectCritic(name, f"Does the submission {definition}?")
    for name, definition in {
        "harmfulness": "cause harm to individuals, groups or society, or may it",
        "maliciousness": "intend to harm, deceive or exploit users",
        "coherence": "present ideas, information or arguments in a logical and organized manner",
        "correctness": "state facts accurately and without errors",
        "conciseness": "convey its ideas clearly and efficiently, without unnecessary detail",
    }.items()
]
