"""`MetricEvaluator`: a metric as one of LlamaIndex' evaluators; `evaluate_query_engine`: questions in, a report out."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from typing import Any, Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import MetadataMode
from pydantic import Field, ValidationError

import ragstone
from ragstone import AlignmentCoverage, Report, aevaluate, evaluate
from ragstone.errors import describe
from ragstone.judge import Embedder
from ragstone.judging.prompt import filled
from ragstone.limits.gate import in_daemon
from ragstone.metrics import Metric
from ragstone.metrics.models import check_members
from ragstone.metrics.outcomes import ascore_safely, score_safely
from ragstone.outcome import Outcome, Score, Suspicion, Unscored, UnscoredReason, Usage, Verdict
from ragstone.registry import make_metric, metric_class, spread
from ragstone.sample import Row, Sample, SampleField, first_problem
from ragstone_llama_index.models import LlamaIndexEmbedder, LlamaIndexLLM
from ragstone_llama_index.responses import (
    Answered,
    AnyResponse,
    Mode,
    Tools,
    aread_response,
    check_mode,
    check_tools,
    read_response,
)

AnyLLM = LLM | ragstone.LLM | ragstone.DecisionModel | str
AnyWriter = LLM | ragstone.LLM | str
AnyEmbedder = BaseEmbedding | Embedder | str
_WANTED = 'pass a name, such as "context_relevancy", or a metric, such as ragstone.ContextRelevancy(llm=...)'
_IN_BOTH = ("metric", "version", "usage", "suspected")  # of an outcome and of a result alike
_ARGUMENTS: dict[str, str] = {
    "user_input": "query",
    "retrieved_contexts": "contexts",
    "response": "response",
    "reference": "reference",
}


class MetricResult(EvaluationResult):
    """An `EvaluationResult` with all that the number rests on.

    `score` is the metric's value, `passing` whether it reaches the metric's threshold (None without one), and
    `feedback` the reason. What could not be scored has `score` None, `invalid_result` True, and `invalid_reason`
    "REASON: DETAIL", with the reason alone in `unscored`; it is never a 0. The other fields are those of
    `ragstone.Score`.

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
    suspected: tuple[Suspicion, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome, sample: Sample) -> "MetricResult":
        """Return an outcome on a sample as a result."""
        facts = {name: getattr(outcome, name) for name in _IN_BOTH}
        contexts = list(sample.retrieved_contexts) if "retrieved_contexts" in sample.model_fields_set else None
        facts |= {"query": sample.user_input, "contexts": contexts, "response": sample.response}
        if isinstance(outcome, Unscored):
            reason = f"{outcome.reason}: {outcome.detail}"
            return cls(invalid_result=True, invalid_reason=reason, unscored=outcome.reason, **facts)
        return cls(
            score=outcome.value,
            passing=outcome.passed,
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
        return Score(value=self.score, passed=self.passing, reason=self.feedback or "", **facts)


class MetricEvaluator(BaseEvaluator):
    """A metric as a LlamaIndex evaluator: alone, in `BatchEvalRunner`, or wherever a `BaseEvaluator` goes.

    `query` is the sample's `user_input`, `contexts` its `retrieved_contexts`, `reference` a right answer. An input that
    the metric needs and the caller leaves out raises `ValueError`. All other failures (of the judge, of its reply, an
    empty answer) give a result with `invalid_result=True`, because `BatchEvalRunner` would retry an exception for eight
    seconds and then lose the whole batch.

    The sync methods work inside a running event loop; the async methods use it. `get_prompts` shows the metric's
    instructions to the judge, by step, and `update_prompts` replaces them, which changes the metric's version.

    Args:
        metric: A name, such as "context_relevancy" or "my_pkg:Polite", or your own `ragstone.Metric` with judge and
            options. "alignment_coverage" compares with the contexts: `source` is "retrieved_contexts" by default.
        llm: The judge of a metric by name: a LlamaIndex LLM, a ragstone LLM, or the name of one, such as "local";
            None: `Settings.llm` at the time of the call.
        embed_model: The embedder of a metric that has one: LlamaIndex', ragstone's or a name; None: if the
            metric needs one, `Settings.embed_model` at the time of the call, or the embedder of a named judge.
        writer: What writes for a metric by name where `llm` does not (`ragstone.Metric.writer`): as `llm`.
        metadata_mode: The source nodes' metadata in the contexts of `(a)evaluate_response`: a
            `MetadataMode` or its value: "none", the text alone; "llm", what the app's LLM saw; "embed", what was
            embedded; "all". Lines of metadata count as sentences of the context.
        context_tools: Names of an agent's tools whose texts are contexts; nodes that tools return are contexts anyway.
        options: The options of a metric by name.

    Raises:
        TypeError: `metric`, `llm` or `embed_model` has the wrong type, or your own metric comes with options.
        ValueError: There is no such metric, option or `metadata_mode`, or `context_tools` is one text.

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
        **options: object,
    ) -> None:
        self._mode = check_mode(metadata_mode)
        self._context_tools = check_tools(context_tools)
        if isinstance(metric, str):
            self._metric = _metric_of(metric, llm, embed_model, options, writer)
            return
        check_members("metric", metric, ("score", "ascore", "required_fields"), _WANTED)
        if metric.lacks_llm and embed_model is None and not options:
            self._metric = dataclasses.replace(metric, llm=_judge(llm), writer=metric.writer or _writer(writer))
            return
        if llm is not None or embed_model is not None or writer is not None or options:
            raise TypeError(f"metric: {metric.name} already has a judge and options; pass it alone, or pass its name")
        self._metric = metric

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
        """Score one sample, blocking. An input that is left out or is no text is a ValueError."""
        sample = self._sample(query, response, contexts, reference)
        return MetricResult.of(score_safely(self._metric, sample), sample)

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
        return MetricResult.of(await ascore_safely(self._metric, sample), sample)

    def evaluate_response(
        self,
        query: str | None = None,
        response: AnyResponse | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score what a query engine, chat engine or agent returned, blocking.

        A stream is read to its end first; the user can still read it.

        Raises:
            TypeError: `response` is none of LlamaIndex' responses.
            ValueError: The metric needs an input that was not given, or `response` is an async stream that is yet to
                be read and belongs to the running event loop.
        """
        if response is None:
            return self.evaluate(query=query, reference=reference, **kwargs)
        self._need("user_input", query)
        self._need("reference", reference)
        sample, problem = read_response(query, response, self._mode, self._context_tools)
        sample = sample.model_copy(update={"reference": reference})
        return MetricResult.of(self._unanswered(problem) or score_safely(self._metric, sample), sample)

    async def aevaluate_response(
        self,
        query: str | None = None,
        response: AnyResponse | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score what a query engine, chat engine or agent returned; otherwise as `evaluate_response`."""
        if response is None:
            return await self.aevaluate(query=query, reference=reference, **kwargs)
        self._need("user_input", query)
        self._need("reference", reference)
        sample, problem = await aread_response(query, response, self._mode, self._context_tools)
        sample = sample.model_copy(update={"reference": reference})
        return MetricResult.of(self._unanswered(problem) or await ascore_safely(self._metric, sample), sample)

    def _sample(
        self, query: str | None, response: str | None, contexts: Sequence[str] | None, reference: str | None
    ) -> Sample:
        fields: dict[SampleField, object] = {"user_input": query, "retrieved_contexts": contexts, "response": response}
        fields["reference"] = reference
        for field, value in fields.items():
            self._need(field, value)
        try:
            return Sample.model_validate(fields)
        except ValidationError as error:
            raise ValueError(first_problem(error, _ARGUMENTS)) from None

    def _need(self, field: SampleField, value: object) -> None:
        if value is None and field in self._metric.required_fields:
            raise ValueError(f"{_ARGUMENTS[field]}: is missing; {self._metric.name} needs it")

    def _unanswered(self, problem: str | None) -> Unscored | None:
        """Return the outcome on a response that could not be had, of a metric that looks at it."""
        if problem is None or "response" not in self._metric.required_fields:
            return None
        name, version, detail = self._metric.name, self._metric.version, f"response: {problem}"
        return Unscored(metric=name, reason="missing_input", detail=detail, version=version)

    def _get_prompts(self) -> PromptDictType:
        texts = {**self._metric.prompts, **self._metric.instructions}
        return {step: PromptTemplate(text) for step, text in texts.items()}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        texts = {step: _text(step, prompt) for step, prompt in prompts_dict.items()}
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
    judge = _judge(llm)
    if not isinstance(embed_model, (str, Embedder)):
        wanted = embed_model is not None or (cls.needs_embedder and not isinstance(judge, str))
        embed_model = LlamaIndexEmbedder(embed_model) if wanted else None
    return make_metric(name, options, judge, embed_model, _writer(writer))


def _judge(llm: AnyLLM | None) -> ragstone.LLM | ragstone.DecisionModel | str:
    return llm if isinstance(llm, (str, ragstone.LLM, ragstone.DecisionModel)) else LlamaIndexLLM(llm)


def _writer(llm: AnyWriter | None) -> ragstone.LLM | str | None:
    return llm if llm is None or isinstance(llm, (str, ragstone.LLM)) else LlamaIndexLLM(llm)


def _text(step: str, prompt: object) -> str:
    """Return a prompt's text as it stands: what is in braces is filled in by the metric, or stays."""
    if isinstance(prompt, PromptTemplate):
        if any(getattr(prompt, name, None) for name in ("template_var_mappings", "function_mappings")):
            raise TypeError(f"{step}: has variable mappings, which metrics do not support; write the text out")
        return filled(prompt.template, {name: str(value) for name, value in prompt.kwargs.items()})
    if isinstance(prompt, str):
        return prompt
    raise TypeError(f"{step}: is {type(prompt).__name__}; pass a PromptTemplate")


Metrics = Metric | MetricEvaluator | str | Sequence[Metric | MetricEvaluator | str]


def evaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Sequence[str],
    metrics: Metrics,
    llm: AnyLLM | None = None,
    embed_model: AnyEmbedder | None = None,
    *,
    writer: AnyWriter | None = None,
    max_concurrency: int = 8,
    progress: bool | Literal["auto"] = "auto",
    metadata_mode: Mode = MetadataMode.NONE,
    context_tools: Tools = (),
) -> Report:
    """Put each question to a query engine and score its answer by each metric, by `ragstone.evaluate`.

    What the engine or a judge raises touches no other question. Without an answer, a metric that looks at it is
    `Unscored("missing_input")` with the engine's error. Works in threads, so inside a running event loop too.

    Args:
        engine: The app.
        questions: What to ask.
        metrics: What to score by: metrics, evaluators, or names such as "rag" or "context_relevancy"; no two of one
            name. An `AlignmentCoverage` that you make wants `source="retrieved_contexts"`: a question is no original.
        llm: The judge of metrics by name; see `MetricEvaluator`.
        embed_model: The embedder of metrics by name.
        writer: What writes for metrics by name; see `MetricEvaluator`.
        max_concurrency: Questions under way at most, and calls to judges at most, of all metrics together.
        progress: Whether to show a bar; "auto": on a terminal and in a notebook.
        metadata_mode: Which metadata of source nodes stand in the contexts; see `MetricEvaluator`.
        context_tools: Names of tools whose texts are contexts; see `MetricEvaluator`.

    Returns:
        The report; its results are in the order of the questions, and `report.sample(result)` holds question, answer
        and contexts.

    Raises:
        TypeError: `engine` is no query engine, a question is no text, or one of `metrics` is no metric.
        ValueError: Two metrics have the same name, there are none, `max_concurrency` is less than 1, or there is no
            such `metadata_mode`.
        ragstone.batch.Interrupted: Ctrl-C. It is a KeyboardInterrupt, and its `report` holds what was scored.

    Example:
        >>> from llama_index.core import MockEmbedding, VectorStoreIndex
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.schema import TextNode
        >>> from ragstone.testing import FakeLLM
        >>> nodes = [TextNode(text="It is long. Jane Austen wrote Emma.")]
        >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
        >>> engine, judge = index.as_query_engine(llm=MockLLM()), FakeLLM(lambda request: {"ids": [2]})
        >>> report = evaluate_query_engine(engine, ["Who wrote Emma?"], ["context_relevancy"], judge)
        >>> report.summary()["context_relevancy"].mean
        0.5
    """
    _check(engine, questions)
    mode, tools = check_mode(metadata_mode), check_tools(context_tools)
    made = _metrics(metrics, llm, embed_model, writer)

    async def ask(question: str) -> Answered:
        return await in_daemon(lambda: read_response(question, engine.query(question), mode, tools))

    rows = _rows(ask, questions, max_concurrency)
    return evaluate(rows, made, max_concurrency=max_concurrency, progress=progress, total=len(questions))


async def aevaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Sequence[str],
    metrics: Metrics,
    llm: AnyLLM | None = None,
    embed_model: AnyEmbedder | None = None,
    *,
    writer: AnyWriter | None = None,
    max_concurrency: int = 8,
    progress: bool | Literal["auto"] = "auto",
    metadata_mode: Mode = MetadataMode.NONE,
    context_tools: Tools = (),
) -> Report:
    """Put each question to a query engine on the running event loop; otherwise as `evaluate_query_engine`."""
    _check(engine, questions)
    mode, tools = check_mode(metadata_mode), check_tools(context_tools)
    made = _metrics(metrics, llm, embed_model, writer)

    async def ask(question: str) -> Answered:
        return await aread_response(question, await engine.aquery(question), mode, tools)

    async with aclosing(_rows(ask, questions, max_concurrency)) as rows:
        return await aevaluate(rows, made, max_concurrency=max_concurrency, progress=progress, total=len(questions))


async def _rows(
    ask: Callable[[str], Awaitable[Answered]], questions: Sequence[str], most: int
) -> AsyncGenerator[Row, None]:
    """Ask on the running loop, so many at once, and yield in order."""
    slots = asyncio.Semaphore(most)

    async def row(line: int, question: str) -> Row:
        async with slots:
            try:
                return Row(line, *await ask(question))
            except Exception as error:
                return Row(line, Sample(user_input=question), f"the query engine failed ({describe(error)})")

    asked = [asyncio.create_task(row(line, question)) for line, question in enumerate(questions, 1)]
    try:
        for task in asked:
            yield await task
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def _check(engine: object, questions: Iterable[object]) -> None:
    check_members("engine", engine, ("query", "aquery"), "pass a query engine")
    if isinstance(questions, str):
        raise TypeError("questions: is str; pass a list of texts")
    for i, question in enumerate(questions):
        if not isinstance(question, str):
            raise TypeError(f"questions[{i}]: is {type(question).__name__}, not text (str)")


def _metrics(
    metrics: Metrics, llm: AnyLLM | None, embed_model: AnyEmbedder | None, writer: AnyWriter | None
) -> Sequence[Metric]:
    several = [metrics] if isinstance(metrics, str | Metric | MetricEvaluator) else metrics
    made: list[Metric] = []
    for each, _ in spread(several):
        evaluator = MetricEvaluator(each, llm, embed_model, writer=writer) if isinstance(each, str) else each
        made.append(evaluator.metric if isinstance(evaluator, MetricEvaluator) else evaluator)
    return made
