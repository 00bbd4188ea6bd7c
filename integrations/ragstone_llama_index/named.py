"""The four metrics as evaluators, made the way that LlamaIndex' own are: from a model, or from `Settings`."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.schema import MetadataMode
from typing_extensions import TypedDict, Unpack

import ragstone
from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, SummarizationScore
from ragstone.judge import Asking, Embedder
from ragstone.labels import Calibration
from ragstone.metrics.alignment_coverage import CoverageRule
from ragstone.metrics.base import Scoring
from ragstone.metrics.response_relevancy import NoncommittalRule
from ragstone.text import Splitter
from ragstone_llama_index.embedder import as_embedder
from ragstone_llama_index.evaluator import MetricEvaluator
from ragstone_llama_index.llm import as_judge
from ragstone_llama_index.responses import Mode


class MetricOptions(TypedDict, total=False):
    """What every metric takes; see `ragstone.Metric`."""

    threshold: float | None
    asking: Literal["auto"] | Asking
    scoring: Scoring
    max_input_tokens: int | None
    max_characters: int | None
    instructions: Mapping[str, str]
    calibration: Calibration | str | PathLike[str] | None


class SummarizationOptions(MetricOptions, total=False):
    """What `ragstone.SummarizationScore` takes."""

    length_penalty: bool
    coeff: float
    coeff_weights: Literal["conciseness", "qa"]
    questions: Sequence[str] | None


class AlignmentOptions(MetricOptions, total=False):
    """What `ragstone.AlignmentCoverage` takes."""

    source: Literal["user_input", "retrieved_contexts"]
    assessment_questions: Sequence[str] | None
    n_questions: int
    coverage_rule: CoverageRule
    language: str | None
    splitter: Splitter


class ResponseOptions(MetricOptions, total=False):
    """What `ragstone.ResponseRelevancy` takes."""

    strictness: int
    sampling: Literal["one_call", "n_calls"]
    noncommittal: NoncommittalRule
    parts: bool


class ContextOptions(MetricOptions, total=False):
    """What `ragstone.ContextRelevancy` takes."""

    selection: Literal["ids", "verbatim"]
    granularity: Literal["sentence", "chunk"]
    language: str | None
    splitter: Splitter
    embedder: Embedder | None


class SummarizationScoreEvaluator(MetricEvaluator):
    """Evaluates by `ragstone.SummarizationScore`: whether the response keeps what its contexts say, and is short.

    Args:
        llm: The judge, a LlamaIndex or a ragstone LLM; None: `Settings.llm`, as it is when a call is made.
        metadata_mode: See `MetricEvaluator`.
        options: The metric's own, by name.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> judge = FakeLLM(lambda request: {"answers": {"1": "yes"}})
        >>> evaluator = SummarizationScoreEvaluator(judge, questions=["Is Emma a novel?"], length_penalty=False)
        >>> evaluator.evaluate(response="A novel.", contexts=["Emma is a novel by Jane Austen."]).score
        1.0
    """

    def __init__(
        self,
        llm: LLM | ragstone.LLM | None = None,
        *,
        metadata_mode: Mode = MetadataMode.NONE,
        **options: Unpack[SummarizationOptions],
    ) -> None:
        super().__init__(SummarizationScore(llm=as_judge(llm), **options), metadata_mode=metadata_mode)


class AlignmentCoverageEvaluator(MetricEvaluator):
    """Evaluates by `ragstone.AlignmentCoverage`: whether the response is true to its contexts and covers them.

    The original is the contexts, unlike the metric's own default: a query engine's `query` is a question. For an app
    that is given the original as its query, pass `source="user_input"`.

    Args:
        llm: The judge, a LlamaIndex or a ragstone LLM; None: `Settings.llm`, as it is when a call is made.
        metadata_mode: See `MetricEvaluator`.
        options: The metric's own, by name.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> AlignmentCoverageEvaluator(FakeLLM(lambda request: "")).metric.required_fields
        ('retrieved_contexts', 'response')
    """

    def __init__(
        self,
        llm: LLM | ragstone.LLM | None = None,
        *,
        metadata_mode: Mode = MetadataMode.NONE,
        **options: Unpack[AlignmentOptions],
    ) -> None:
        options.setdefault("source", "retrieved_contexts")
        super().__init__(AlignmentCoverage(llm=as_judge(llm), **options), metadata_mode=metadata_mode)


class ResponseRelevancyEvaluator(MetricEvaluator):
    """Evaluates by `ragstone.ResponseRelevancy`: whether the response is about the query, all of it and no more.

    Args:
        llm: The judge, a LlamaIndex or a ragstone LLM; None: `Settings.llm`, as it is when a call is made.
        embed_model: A LlamaIndex embedding model or a ragstone embedder; None: `Settings.embed_model`, likewise.
        metadata_mode: See `MetricEvaluator`.
        options: The metric's own, by name.

    Example:
        >>> from ragstone.testing import FakeEmbedder, FakeLLM
        >>> judge = FakeLLM(lambda request: {"questions": [{"question": "Who wrote Emma?", "noncommittal": False}]})
        >>> evaluator = ResponseRelevancyEvaluator(judge, FakeEmbedder(), strictness=1)
        >>> evaluator.evaluate(query="Who wrote Emma?", response="Jane Austen.").score
        1.0
    """

    def __init__(
        self,
        llm: LLM | ragstone.LLM | None = None,
        embed_model: BaseEmbedding | Embedder | None = None,
        *,
        metadata_mode: Mode = MetadataMode.NONE,
        **options: Unpack[ResponseOptions],
    ) -> None:
        metric = ResponseRelevancy(llm=as_judge(llm), embedder=as_embedder(embed_model), **options)
        super().__init__(metric, metadata_mode=metadata_mode)


class ContextRelevancyEvaluator(MetricEvaluator):
    """Evaluates by `ragstone.ContextRelevancy`: how much of the contexts the query needs.

    LlamaIndex has an evaluator of this name too, whose number is one that the judge names.

    Args:
        llm: The judge, a LlamaIndex or a ragstone LLM; None: `Settings.llm`, as it is when a call is made.
        metadata_mode: See `MetricEvaluator`.
        options: The metric's own, by name.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> evaluator = ContextRelevancyEvaluator(FakeLLM(lambda request: {"ids": [2]}), threshold=0.7)
        >>> evaluator.evaluate(query="Who wrote it?", contexts=["It is long. Jane Austen wrote it."]).passing
        False
    """

    def __init__(
        self,
        llm: LLM | ragstone.LLM | None = None,
        *,
        metadata_mode: Mode = MetadataMode.NONE,
        **options: Unpack[ContextOptions],
    ) -> None:
        super().__init__(ContextRelevancy(llm=as_judge(llm), **options), metadata_mode=metadata_mode)
