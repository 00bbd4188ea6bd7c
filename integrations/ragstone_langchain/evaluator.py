"""One metric wherever LangChain evaluates."""

import inspect
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragstone.errors import describe
from ragstone.metrics import Metric
from ragstone.metrics.models import check_members
from ragstone.metrics.outcomes import ascore_safely, score_safely
from ragstone.outcome import Outcome, Score, Unscored
from ragstone.plain import is_mapping
from ragstone.registry import make_metric
from ragstone.sample import Sample
from ragstone_langchain.arguments import Arguments
from ragstone_langchain.messages import Unreadable, entries_of
from ragstone_langchain.read import Fields, Reading

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import Runnable
    from langsmith.evaluation import RunEvaluator

    from ragstone.judge import LLM, Embedder, Judge

_METRIC = ("score", "ascore", "required_fields")


class RagEvaluator:
    """A metric as an evaluator: call it as openevals and LangSmith do, or ask it for the form that you need.

    What it is called with may have any form that LangChain's apps take and return; docs/langchain.md says where each
    field is looked for. What cannot be scored (a missing field, an undefined score, a judge that fails) has the score
    None and a comment that says why, never 0, and never raises. It may be shared between threads and tasks.

    Args:
        metric: The metric, with its judge; or a metric's name, such as "context_relevancy" or "my_pkg:MyMetric".
        llm: The judge of a metric by name or without one: a LangChain model or any of ragstone's, by name too.
        writer: What writes for a metric without a judge of its own where `llm` does not (`Metric.writer`).
        embedder: Of a metric by name that embeds: LangChain embeddings or any of ragstone's embedders.
        key: The results' key; by default the metric's name.
        fields: Where a sample's fields are if not under a usual name: a mapping from field to key, such as
            {"response": "data.draft"}, looked up in the field's own place first (inputs, outputs, reference_outputs),
            an answer nowhere else; or a function of inputs and outputs that returns a `ragstone.Sample`, or a mapping
            of those fields that it knows.
        retriever_tools: Names of an agent's tools whose messages are contexts. Tools that keep Documents as their
            artifact need not be named.

    Attributes:
        metric: The metric.
        key: The results' key.

    Raises:
        TypeError: The metric is none.
        ValueError: `fields` is neither function nor mapping of a sample's fields, or `retriever_tools` is one text.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> evaluator = RagEvaluator(ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [2]})))
        >>> result = evaluator(
        ...     inputs={"question": "Who wrote Emma?"},
        ...     outputs={"answer": "Jane Austen.", "context": ["It is long. Jane Austen wrote Emma."]},
        ... )
        >>> result["key"], result["score"], result["comment"]
        ('context_relevancy', 0.5, 'The question needs 1 of 2 sentences, from 1 of 1 contexts.')
        >>> evaluator(inputs="Who wrote Emma?", outputs="Jane Austen.", context=7)["score"]
    """

    def __init__(
        self,
        metric: Metric | str,
        *,
        llm: "Judge | Runnable[Any, Any] | str | None" = None,
        writer: "LLM | Runnable[Any, Any] | str | None" = None,
        embedder: "Embedder | Embeddings | str | None" = None,
        key: str | None = None,
        fields: Fields | None = None,
        retriever_tools: Collection[str] = (),
    ) -> None:
        models: Any = llm, embedder, writer  # a metric wraps those of a framework
        if isinstance(metric, str):
            metric = make_metric(metric, {}, *models)
        check_members("metric", metric, _METRIC, "pass a metric, such as ragstone.ContextRelevancy(llm=...)")
        if metric.lacks_llm:
            metric = replace(metric, llm=models[0], writer=metric.writer or models[2])
        if metric.lacks_llm:
            raise TypeError("llm: is None; a metric by name needs a judge: a LangChain model or one of ragstone's")
        self.metric = metric
        self.key = metric.name if key is None else key
        self.__name__ = f"ragstone:{self.key}"  # LangSmith names the evaluator's trace by it
        self._reading = Reading(fields, retriever_tools)
        self.__signature__ = _SIGNATURE  # LangSmith passes what is named in it

    def __repr__(self) -> str:
        return f"RagEvaluator({self.metric.name}, key={self.key!r})"

    def __call__(self, *unnamed: object, **arguments: object) -> dict[str, Any]:
        """Score one sample, blocking.

        Args:
            unnamed: Nothing: a TypeError says so.
            arguments: `inputs` and `outputs`, each a text, a message, a list of messages, a mapping, or a graph's state
                (mapping, pydantic model or dataclass); `context`, also `contexts` or `retrieved_contexts`: a text, a
                Document or a list of them; `reference_outputs`, in the same forms as outputs: the reference answer.
                `run` is LangSmith's, for its error. Others are not read.

        Returns:
            `key`, `score` (None where there is none), `comment` (what the score rests on, or why there is none) and
            `metadata`: `metric`, `version`, `judge`, `passed`, `unscored` (the reason in one word, or None),
            `breakdown`, `verdicts`, `usage`. Plain values, ready for JSON.
        """
        return self.result(_arguments(unnamed, **arguments))

    async def acall(  # LangSmith passes what is named here
        self,
        *,
        inputs: object = None,
        outputs: object,
        reference_outputs: object = None,
        run: object = None,
        **contexts: object,
    ) -> dict[str, Any]:
        """Score one sample on the running event loop; otherwise as calling it."""
        return await self.aresult(_arguments((), outputs, inputs, reference_outputs, run=run, **contexts))

    def result(self, arguments: Arguments) -> dict[str, Any]:
        """Score what an evaluator was called with, blocking: what every form comes down to."""
        sample = self._sample(arguments)
        return self._result_of(sample if isinstance(sample, Unscored) else score_safely(self.metric, sample))

    async def aresult(self, arguments: Arguments) -> dict[str, Any]:
        """Score what an evaluator was called with on the running event loop."""
        sample = self._sample(arguments)
        return self._result_of(sample if isinstance(sample, Unscored) else await ascore_safely(self.metric, sample))

    def _result_of(self, outcome: Outcome) -> dict[str, Any]:
        score = outcome if isinstance(outcome, Score) else None
        plain = outcome.model_dump(mode="json")
        return {
            "key": self.key,
            "score": None if score is None else score.value,
            "comment": outcome.reason if isinstance(outcome, Score) else f"{outcome.reason}: {outcome.detail}",
            "metadata": {
                "metric": outcome.metric,
                "version": outcome.version,
                "judge": self.metric.judge.model,
                "passed": None if score is None else score.passed,
                "unscored": None if score is not None else outcome.reason,
                "breakdown": plain.get("breakdown", {}),
                "verdicts": plain.get("verdicts", []),
                "usage": plain["usage"],
            },
        }

    def _sample(self, arguments: Arguments) -> Sample | Unscored:
        try:
            return arguments.sample(self.metric, self._reading)
        except Unreadable as problem:
            detail = str(problem)
        except Exception as error:  # from an object of the app's that fails when it is looked into
            detail = f"what was passed cannot be read: {describe(error, most=300)}"
        return Unscored(metric=self.metric.name, reason="missing_input", detail=detail, version=self.metric.version)

    def as_run_evaluator(self) -> "RunEvaluator":
        """Return it as LangSmith's evaluator of runs, for `EvaluatorCallbackHandler` and LangSmith's evaluation.

        Contexts are in the run's outputs or, where they are not, those that its outermost retrievers returned.
        """
        from ragstone_langchain.run_evaluator import RagRunEvaluator  # langsmith takes its time to import

        return RagRunEvaluator(self.key, self.result, self.aresult)

    def as_runnable(self) -> "Runnable[dict[str, Any], dict[str, Any]]":
        """Return it as a step of a chain, sync and async.

        Its input is a chain's state with everything in it, or has `outputs` and any of `inputs`, `reference_outputs`
        and `context`.
        """
        from langchain_core.runnables import RunnableLambda  # most of langchain-core's import time

        return RunnableLambda(self._score_state, self._ascore_state, name=f"ragstone:{self.key}")

    # Methods, not closures, so that the step can be pickled.
    def _score_state(self, state: dict[str, Any]) -> dict[str, Any]:
        return self.result(_in_chain(state))

    async def _ascore_state(self, state: dict[str, Any]) -> dict[str, Any]:
        return await self.aresult(_in_chain(state))

    def evaluate_strings(self, *, prediction: object, **others: object) -> dict[str, Any]:
        """Score as LangChain's string evaluators do.

        Args:
            prediction: The answer.
            others: `input`, the question; `reference`, the reference answer; `contexts`, also `context`, what was
                retrieved: a text, a Document, or a list of them. More are not read.

        Returns:
            `score` (None where there is none), `value` ("passed" or "failed" by the metric's threshold, None without
            one), `reasoning` and `metadata`.
        """
        return _strings_result(self.result(_of_strings(prediction, **others)))

    async def aevaluate_strings(self, *, prediction: object, **others: object) -> dict[str, Any]:
        """Score on the running event loop; otherwise as `evaluate_strings`."""
        return _strings_result(await self.aresult(_of_strings(prediction, **others)))

    @property
    def evaluation_name(self) -> str:
        """The key."""
        return self.key

    @property
    def requires_input(self) -> bool:
        """Whether the metric reads the question."""
        return "user_input" in self.metric.required_fields

    @property
    def requires_reference(self) -> bool:
        """Whether the metric reads a reference answer."""
        return "reference" in self.metric.required_fields


def _keywords(
    *, inputs: object = None, outputs: object, reference_outputs: object = None, run: object = None, **contexts: object
) -> None:
    """Have the signature of a call."""


_SIGNATURE = inspect.signature(_keywords)


def _in_chain(state: object) -> Arguments:
    if not is_mapping(state) or "outputs" not in state:
        # A state of one entry is the answer or a conversation; as inputs that one text would be the question too.
        return Arguments(inputs=state if len(entries_of(state) or ()) > 1 else None, outputs=state)
    others = dict(state)
    outputs, inputs = others.pop("outputs"), others.pop("inputs", None)
    reference, context = others.pop("reference_outputs", None), others.pop("context", None)
    question = (others or None) if inputs is None else inputs  # it may stand beside
    return Arguments(question, outputs, reference, context)


def _arguments(
    unnamed: tuple[object, ...],
    outputs: object = None,
    inputs: object = None,
    reference_outputs: object = None,
    run: object = None,
    **others: object,
) -> Arguments:
    if unnamed:
        raise TypeError(
            f"a RagEvaluator takes its arguments by name: evaluator(inputs=..., outputs=...); it was given "
            f"{len(unnamed)} without. It scores one sample and is no summary evaluator: pass it as evaluators=[...]"
        )
    given = [others.pop(name, None) for name in ("context", "contexts", "retrieved_contexts")]
    context = next((value for value in given if value is not None), None)
    error = getattr(run, "error", None)
    return Arguments(inputs, outputs, reference_outputs, context, error=error, others=tuple(others))


def _of_strings(
    prediction: object,
    reference: object = None,
    input: object = None,  # noqa: A002 - the name that LangChain's string evaluators have
    **others: object,
) -> Arguments:
    return _arguments((), prediction, input, reference, **others)


def _strings_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result in the form of LangChain's string evaluators, with their keys."""
    word = {True: "passed", False: "failed", None: None}[result["metadata"]["passed"]]
    return {"score": result["score"], "value": word, "reasoning": result["comment"], "metadata": result["metadata"]}
