"""`MetricEvaluator`: a metric as one of LlamaIndex' evaluators."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import MetadataMode
from pydantic import Field

import ragstone.judge
from ragstone.adapters.runs import Run
from ragstone.errors import CannotScore
from ragstone.judge import Embedder, Judge, Meter
from ragstone.judging.prompt import filled
from ragstone.metrics import AlignmentCoverage, Metric
from ragstone.metrics.models import check_members
from ragstone.metrics.names import make_metric, metric_class
from ragstone.metrics.outcomes import ascore_safely, score_safely, unscored
from ragstone.outcome import Outcome, Score, Unscored, UnscoredReason, Usage, Verdict
from ragstone.sample import Sample
from ragstone.sources.rows import sample_of_row
from ragstone_llama_index.forms import AnyResponse
from ragstone_llama_index.models import LlamaIndexEmbedder, LlamaIndexLLM
from ragstone_llama_index.read import Mode, NamedFields, Reading
from ragstone_llama_index.streaming import answered

AnyLLM = LLM | Judge | str
AnyWriter = LLM | ragstone.judge.LLM | str
AnyEmbedder = BaseEmbedding | Embedder | str
_WANTED = 'pass a name, such as "context_relevancy", or a metric, such as ragstone.ContextRelevancy(llm=...)'
_ENOUGH = 0.5
# Fields that an outcome and a result have in common.
_IN_BOTH = ("metric", "version", "usage")


class MetricResult(EvaluationResult):
    """An `EvaluationResult` with all that the number rests on.

    `score` is the metric's value and `feedback` the reason. `passing` is always a yes or no, as LlamaIndex' engines and
    tools read it so: whether the score reaches the metric's threshold or, without one, 0.5; by the metric's direction.
    `passed` is None without a threshold.

    An unscored response has `score` None and `passing` False. `invalid_result` is True, `invalid_reason`
    and `feedback` are "REASON: DETAIL", and `unscored` the reason alone. The other fields are those of
    `ragstone.Score`.

    Example:
        >>> from ragstone import ContextRelevancy, Unscored
        >>> failed = Unscored(metric="context_relevancy", reason="timeout", detail="60 s", version="1")
        >>> result = MetricResult.of(failed, Sample(response="So."), ContextRelevancy())
        >>> result.score, result.passing, result.feedback, result.outcome == failed
        (None, False, 'timeout: 60 s', True)
    """

    metric: str
    version: str
    passed: bool | None = None
    unscored: UnscoredReason | None = None
    breakdown: dict[str, float] = Field(default_factory=dict[str, float])
    verdicts: tuple[Verdict, ...] = ()
    usage: Usage = Usage()

    @classmethod
    def of(cls, outcome: Outcome, sample: Sample, metric: Metric) -> "MetricResult":
        """Return a metric's outcome on a sample as a result."""
        facts = {name: getattr(outcome, name) for name in _IN_BOTH}
        contexts = list(sample.retrieved_contexts) if "retrieved_contexts" in sample.model_fields_set else None
        facts |= {"query": sample.user_input, "contexts": contexts, "response": sample.response}
        if isinstance(outcome, Unscored):
            reason = f"{outcome.reason}: {outcome.detail}"
            facts |= {"passing": False, "feedback": reason, "invalid_reason": reason}
            return cls(invalid_result=True, unscored=outcome.reason, **facts)
        return cls(
            score=outcome.value,
            passing=metric.reaches(outcome.value, _ENOUGH) if outcome.passed is None else outcome.passed,
            passed=outcome.passed,
            feedback=outcome.reason,
            breakdown=outcome.breakdown,
            verdicts=outcome.verdicts,
            **facts,
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome as ragstone's core returns it, for its summaries and sinks."""
        facts = {name: getattr(self, name) for name in _IN_BOTH}
        if self.unscored is not None or self.score is None:
            reason = self.unscored or "undefined"
            return Unscored(reason=reason, detail=(self.invalid_reason or "").removeprefix(f"{reason}: "), **facts)
        facts |= {"breakdown": self.breakdown, "verdicts": self.verdicts}
        return Score(value=self.score, passed=self.passed, reason=self.feedback or "", **facts)


class MetricEvaluator(BaseEvaluator):
    """A metric as a LlamaIndex evaluator: alone, in `BatchEvalRunner`, or wherever a `BaseEvaluator` goes.

    `query` is the sample's `user_input`, `contexts` its `retrieved_contexts`, `reference` a right answer.
    All failures (an input that is missing or empty, of the judge, of its reply) give a result with
    `invalid_result=True`, because `BatchEvalRunner` would retry an exception for eight seconds and then lose the whole
    batch.

    The sync methods work inside a running event loop; the async methods use it. `get_prompts` shows the metric's
    instructions to the judge, by step, and `update_prompts` replaces them, which changes the metric's version.

    Args:
        metric: A name, such as "context_relevancy" or "my_pkg:Polite", or your own `ragstone.Metric` with judge and
            options. "alignment_coverage" compares with the contexts: `source` is "retrieved_contexts" by default.
        llm: The judge of a metric by name: a LlamaIndex LLM, a ragstone LLM, or the name of one, such as "local";
            None: `Settings.llm` at the time of the call.
        embed_model: The embedder of a metric that has one: LlamaIndex', ragstone's or a name; None: if the
            metric needs one, `Settings.embed_model` at the time of the call, or the embedder of a named judge.
        writer: The writer of a metric by name, if `llm` does not write (`ragstone.Metric.writer`): as `llm`.
        metadata_mode: The source nodes' metadata in the contexts of `(a)evaluate_response`: a
            `MetadataMode` or its value: "none", the text alone; "llm", what the app's LLM saw; "embed", what was
            embedded; "all". Lines of metadata count as sentences of the context.
        context_tools: Names of an agent's tools whose texts are contexts; nodes that tools return are contexts anyway.
        fields: Where the fields of `(a)evaluate_response` stand; see `instrument`.
        id_key: The key of a node's metadata that is its id in `retrieved_ids`; see `instrument`.
        options: The options of a metric by name.

    Raises:
        TypeError: `metric` is no metric, or your own metric comes with options.
        ValueError: There is no such metric, option or `metadata_mode`, `llm` or `embed_model` is no model, or
            `context_tools` is one text.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> judge = FakeLLM(lambda request: {"ids": [2]})
        >>> evaluator = MetricEvaluator("context_relevancy", judge, threshold=0.5)
        >>> result = evaluator.evaluate(query="Who wrote Emma?", contexts=["It is long. Jane Austen wrote Emma."])
        >>> result.score, result.passing, result.feedback
        (0.5, True, 'The question needs 1 of 2 sentences, from 1 of 1 contexts.')
    """

    def __init__(
        self,
        metric: Metric | str,
        llm: AnyLLM | None = None,
        embed_model: AnyEmbedder | None = None,
        *,
        writer: AnyWriter | None = None,
        metadata_mode: Mode = MetadataMode.NONE,
        context_tools: Collection[str] = (),
        fields: NamedFields | None = None,
        id_key: str | None = None,
        **options: object,
    ) -> None:
        self._reading = Reading.of(metadata_mode, context_tools, fields, id_key)
        if isinstance(metric, str):
            self._metric = _metric_of(metric, llm, embed_model, options, writer)
            return
        check_members("metric", metric, ("score", "ascore", "required_fields"), _WANTED)
        if metric.lacks_llm and embed_model is None and not options:
            self._metric = dataclasses.replace(
                metric, llm=LlamaIndexLLM() if llm is None else llm, writer=metric.writer or writer
            )
            return
        if llm is not None or embed_model is not None or writer is not None or options:
            raise TypeError(f"metric: {metric.name} already has a judge and options; pass it alone, or pass its name")
        self._metric = metric

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._metric.name!r})"

    @property
    def metric(self) -> Metric:
        """What is scored by."""
        return self._metric

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score one sample, blocking. An input that is no text is a ValueError; without one it is `missing_input`."""
        sample = self._sample(query, response, contexts, reference)
        return MetricResult.of(score_safely(self._metric, sample), sample, self._metric)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score one sample on the running event loop; otherwise as `evaluate`."""
        sample = self._sample(query, response, contexts, reference)
        return MetricResult.of(await ascore_safely(self._metric, sample), sample, self._metric)

    def evaluate_response(
        self,
        query: str | None = None,
        response: AnyResponse | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score the response of a query engine, chat engine or agent, blocking.

        A stream is left as it is: call its `get_response()` first, which keeps the text.

        Raises:
            TypeError: `response` is none of LlamaIndex' responses, and there are no `fields`.
        """
        if response is None:
            return self.evaluate(query=query, reference=reference, **kwargs)
        sample, outcome = self._answered(query, response, reference)
        return MetricResult.of(outcome or score_safely(self._metric, sample), sample, self._metric)

    async def aevaluate_response(
        self,
        query: str | None = None,
        response: AnyResponse | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score the response of a query engine, chat engine or agent; otherwise as `evaluate_response`."""
        if response is None:
            return await self.aevaluate(query=query, reference=reference, **kwargs)
        sample, outcome = self._answered(query, response, reference)
        return MetricResult.of(outcome or await ascore_safely(self._metric, sample), sample, self._metric)

    def _sample(
        self, query: str | None, response: str | None, contexts: Sequence[str] | None, reference: str | None
    ) -> Sample:
        return sample_of_row({"query": query, "contexts": contexts, "response": response, "reference": reference}, {})

    def _answered(self, query: str | None, response: object, reference: str | None) -> tuple[Sample, Unscored | None]:
        """An app's answer, and the outcome of a sample whose answer is missing."""
        if not isinstance(response, AnyResponse) and self._reading.fields is None:
            raise TypeError(
                f"response: is {type(response).__name__}; pass what a query engine, chat engine or agent returned, "
                "or its text to evaluate(query=..., response=..., contexts=...)"
            )
        run = Run("", "query", inputs={"query": query}, output=response)
        read = answered(run, self._reading)
        # A response without sources says that there are none.
        known = {"reference": reference, "retrieved_contexts": read.sample.retrieved_contexts}
        sample, problem = read.sample.model_copy(update=known), read.problem
        if problem is None or "response" not in self._metric.required_fields:
            return sample, None
        return sample, unscored(self._metric, CannotScore("missing_input", f"response: {problem}"), Meter())

    def _get_prompts(self) -> PromptDictType:
        texts = {**self._metric.prompts, **self._metric.instructions}
        return {step: PromptTemplate(text) for step, text in texts.items()}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        texts = {step: _prompt_text(step, prompt) for step, prompt in prompts_dict.items()}
        changed = {step: text for step, text in texts.items() if text != self._metric.prompts.get(step)}
        kept = {step: text for step, text in self._metric.instructions.items() if step not in texts}
        self._metric = dataclasses.replace(self._metric, instructions={**kept, **changed})


def _metric_of(
    name: str,
    llm: AnyLLM | None,
    embed_model: AnyEmbedder | None,
    options: dict[str, object],
    writer: AnyWriter | None,
) -> Metric:
    cls = metric_class(name)
    if issubclass(cls, AlignmentCoverage):
        options.setdefault("source", "retrieved_contexts")
    if embed_model is None and cls.needs_embedder and not isinstance(llm, str):
        embed_model = LlamaIndexEmbedder()
    return make_metric(name, options, LlamaIndexLLM() if llm is None else llm, embed_model, writer)


def _prompt_text(step: str, prompt: object) -> str:
    """Return a prompt's text as it stands: what is in braces is filled in by the metric, or stays."""
    if (
        not isinstance(prompt, PromptTemplate) or prompt.template_var_mappings or prompt.function_mappings  # pyright: ignore[reportUnknownMemberType] - a bare Callable
    ):
        raise TypeError(f"{step}: is {type(prompt).__name__}; pass a PromptTemplate without variable mappings")
    return filled(prompt.template, {name: str(value) for name, value in prompt.kwargs.items()})
