"""`MetricEvaluator`: a ragstone metric as one of LlamaIndex' evaluators."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import MetadataMode
from pydantic import ValidationError

from ragstone.errors import ascore_safely, score_safely
from ragstone.judging.prompt import filled
from ragstone.metrics import Metric
from ragstone.outcome import Outcome, Unscored
from ragstone.sample import Sample, SampleField, first_problem
from ragstone_llama_index.responses import Answer, AnyResponse, Mode, aread_response, check_mode, read_response
from ragstone_llama_index.result import MetricResult

_ARGUMENTS: dict[str, str] = {
    "user_input": "query",
    "retrieved_contexts": "contexts",
    "response": "response",
}


class MetricEvaluator(BaseEvaluator):
    """A metric as a LlamaIndex evaluator: alone, in `BatchEvalRunner`, or wherever a `BaseEvaluator` goes.

    `query` is the sample's `user_input`, `contexts` its `retrieved_contexts`. An input that the metric needs and the
    caller leaves out raises `ValueError`. Everything else that keeps a sample from being scored (a judge that fails,
    a reply that cannot be used, an app that answered nothing) is a result with `invalid_result=True`: a raised
    exception would have `BatchEvalRunner` retry for eight seconds and then lose the whole batch.

    The sync methods use the judge's sync half, in threads, and work inside a running event loop; the async methods
    use the running loop. Keyword arguments that LlamaIndex passes to all evaluators (`reference=`) are not used.

    `get_prompts` shows the metric's instructions to the judge, by step, and `update_prompts` replaces them; that
    changes the metric's version, which every result carries. What is said of the data and of the form of the reply
    is not among them: a changed prompt cannot break the fence or the parser.

    Args:
        metric: What to score by.
        metadata_mode: Which metadata of source nodes stand in the contexts of `(a)evaluate_response`, a
            `MetadataMode` or its value: "none", the text alone; "llm", what the app's LLM saw; "embed", what was
            embedded; "all". Lines of metadata count as sentences of the context.

    Raises:
        TypeError: `metric` is no metric.
        ValueError: There is no such `metadata_mode`.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> evaluator = MetricEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [2]}), threshold=0.5))
        >>> result = evaluator.evaluate(query="Who wrote Emma?", contexts=["It is long. Jane Austen wrote Emma."])
        >>> result.score, result.passing, result.feedback
        (0.5, True, '1 of 2 sentences in 1 of 1 contexts are needed to answer.')
    """

    def __init__(self, metric: Metric, *, metadata_mode: Mode = MetadataMode.NONE) -> None:
        if not isinstance(cast("object", metric), Metric):
            raise TypeError(f"metric: is {_kind(metric)}; pass a metric, such as ragstone.ContextRelevancy(llm=...)")
        self._metric = metric
        self._mode = check_mode(metadata_mode)

    @property
    def metric(self) -> Metric:
        """What is scored by."""
        return self._metric

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score one sample, blocking.

        Raises:
            ValueError: The metric needs an input that was not given, or an input is no text.
        """
        sample = self._sample(query, response, contexts)
        return MetricResult.of(score_safely(self._metric, sample), sample)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score one sample on the running event loop; otherwise as `evaluate`."""
        sample = self._sample(query, response, contexts)
        return MetricResult.of(await ascore_safely(self._metric, sample), sample)

    def evaluate_response(
        self,
        query: str | None = None,
        response: AnyResponse | None = None,
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
            return self.evaluate(query=query, **kwargs)
        self._need_query(query)
        sample, failed = self._answered(query, read_response(response, self._mode))
        return MetricResult.of(failed or score_safely(self._metric, sample), sample)

    async def aevaluate_response(
        self,
        query: str | None = None,
        response: AnyResponse | None = None,
        **kwargs: Any,  # noqa: ANN401 - as BaseEvaluator has it
    ) -> MetricResult:
        """Score what a query engine, chat engine or agent returned; otherwise as `evaluate_response`."""
        if response is None:
            return await self.aevaluate(query=query, **kwargs)
        self._need_query(query)
        sample, failed = self._answered(query, await aread_response(response, self._mode))
        return MetricResult.of(failed or await ascore_safely(self._metric, sample), sample)

    def _sample(self, query: str | None, response: str | None, contexts: Sequence[str] | None) -> Sample:
        given: dict[SampleField, object] = {"user_input": query, "retrieved_contexts": contexts, "response": response}
        for field in self._metric.required_fields:
            if given[field] is None:
                raise ValueError(f"{_ARGUMENTS[field]}: is missing; {self._metric.name} needs it")
        try:
            return Sample.model_validate(given)
        except ValidationError as error:
            raise ValueError(first_problem(error, _ARGUMENTS)) from None

    def _need_query(self, query: str | None) -> None:
        if query is None and "user_input" in self._metric.required_fields:
            raise ValueError(f"query: is missing; {self._metric.name} needs it")

    def _answered(self, query: str | None, answer: Answer) -> tuple[Sample, Outcome | None]:
        """Return the sample that an app's answer makes, and why it cannot be scored where that is known."""
        answer = text_only(answer)
        sample = sample_of(query, answer)
        if answer.problem is None or "response" not in self._metric.required_fields:
            return sample, None
        return sample, no_response(self._metric, answer.problem)

    def _get_prompts(self) -> PromptDictType:
        return {
            step: PromptTemplate(self._metric.instructions.get(step, text))
            for step, text in self._metric.prompts.items()
        }

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        given = {step: _text(step, prompt) for step, prompt in prompts_dict.items()}
        changed = {step: text for step, text in given.items() if text != self._metric.prompts.get(step)}
        kept = {step: text for step, text in self._metric.instructions.items() if step not in given}
        self._metric = replace(self._metric, instructions={**kept, **changed})


def _kind(thing: object) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__


def _text(step: str, prompt: object) -> str:
    """Return a prompt's text as it stands: what is in braces is filled in by the metric, or stays."""
    if isinstance(prompt, PromptTemplate):
        if any(getattr(prompt, name, None) for name in ("template_var_mappings", "function_mappings")):
            raise TypeError(f"{step}: has mappings of variables, which the metric does not know; put the text in")
        return filled(prompt.template, {name: str(value) for name, value in prompt.kwargs.items()})
    if isinstance(prompt, str):
        return prompt
    raise TypeError(f"{step}: is {type(prompt).__name__}; pass a PromptTemplate")


def text_only(answer: Answer) -> Answer:
    """Return an answer that is no text, such as a dict, as none at all, with the problem."""
    text = cast("object", answer.text)
    if text is None or isinstance(text, str):
        return answer
    return Answer(None, answer.contexts, f"is {type(text).__name__}, not text")


def sample_of(query: str | None, answer: Answer) -> Sample:
    """Return a question and what an app answered as a sample."""
    given = {"user_input": query, "retrieved_contexts": answer.contexts, "response": answer.text}
    return Sample.model_validate(given)


def no_response(metric: Metric, problem: str) -> Unscored:
    """Return the outcome on a response that could not be had."""
    return Unscored(metric=metric.name, reason="missing_input", detail=f"response: {problem}", version=metric.version)
