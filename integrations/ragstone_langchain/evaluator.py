"""Metrics wherever LangChain evaluates."""

import asyncio
import inspect
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ragstone.adapters.runs import Fields, Unreadable
from ragstone.errors import describe
from ragstone.metrics import Metric
from ragstone.metrics.names import metrics_from
from ragstone.metrics.outcomes import ascore_safely, score_safely
from ragstone.outcome import Outcome, Score, Unscored
from ragstone.plain import is_list
from ragstone.sample import Sample
from ragstone_langchain.arguments import Arguments
from ragstone_langchain.read import ReadingOptions

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import Runnable
    from langsmith.evaluation import RunEvaluator

    from ragstone.judge import LLM, Embedder, Judge


class RagEvaluator:
    """A metric, or several, as an evaluator: called as openevals and LangSmith do, or in the form that you need.

    Arguments may have any form that LangChain's apps take and return; docs/langchain.md says where each field is
    read. A sample that cannot be scored (a missing field, an undefined score, a judge that fails) has the score None
    and a comment that says why. Nothing raises. It may be shared between threads and tasks.

    Args:
        metric: The metric, with its judge; or a metric's name, such as "context_relevancy" or "my_pkg:MyMetric"; a
            list of them, or a group's name, such as "rag".
        llm: The judge of a metric by name or without one: a LangChain model or any of ragstone's, by name too.
        writer: The writer of a metric without a judge of its own, if `llm` does not write (`Metric.writer`).
        embedder: Of a metric by name that embeds: LangChain embeddings or any of ragstone's embedders.
        key: The result's key, of one metric; by default the metric's name.
        fields: Where a sample's fields are if not under a usual name: a mapping from field to key, such as
            {"response": "data.draft"}, looked up in the field's own place first (inputs, outputs, reference_outputs),
            an answer nowhere else; or a function of inputs and outputs that returns a `ragstone.Sample`, or a mapping
            of those fields that it knows.
        retriever_tools: Names of an agent's tools whose messages are contexts. Tools that keep Documents as their
            artifact need not be named.
        id_key: The key of a Document's metadata that is its id in `retrieved_ids`, such as "source"; of one without it
            its own id counts. None: metrics that need ids take their own.

    Attributes:
        metrics: The metrics.
        keys: The keys of their results.

    Raises:
        TypeError: An argument is no metric.
        ValueError: A name names nothing, a judge is missing, `key` is given for several metrics, `fields` is neither
            function nor mapping of a sample's fields, or `retriever_tools` is one text.

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
        metric: Metric | str | Sequence[Metric | str],
        *,
        llm: "Judge | Runnable[Any, Any] | str | None" = None,
        writer: "LLM | Runnable[Any, Any] | str | None" = None,
        embedder: "Embedder | Embeddings | str | None" = None,
        key: str | None = None,
        fields: Fields[object] | None = None,
        retriever_tools: Collection[str] = (),
        id_key: str | None = None,
    ) -> None:
        given = metric if is_list(metric) else [metric]
        self.metrics = metrics_from(given, llm=llm, writer=writer, embedder=embedder)
        names = [each.name for each in self.metrics]
        if key is not None and len(names) > 1:
            raise ValueError(f"key: is one for {', '.join(names)}; leave it out")
        self.keys = names if key is None else [key]
        # LangSmith names the evaluator's trace by it.
        self.__name__ = f"ragstone:{','.join(self.keys)}"
        self.__signature__ = inspect.signature(self.acall)
        if id_key is None and any("retrieved_ids" in each.required_fields for each in self.metrics):
            # Their own ids.
            id_key = ""
        self._reading = ReadingOptions(fields, retriever_tools, id_key)

    def __repr__(self) -> str:
        return f"RagEvaluator({', '.join(self.keys)})"

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
            `breakdown`, `verdicts`, `usage`. Plain values, ready for JSON. Of several metrics `{"results": [...]}`.
        """
        return self.result(_arguments(*unnamed, **arguments))

    # LangSmith passes the arguments that are named here, to `__call__` too.
    async def acall(
        self,
        *,
        inputs: object = None,
        outputs: object,
        reference_outputs: object = None,
        run: object = None,
        **contexts: object,
    ) -> dict[str, Any]:
        """Score one sample on the running event loop; otherwise as calling it."""
        return await self.aresult(
            _arguments(inputs=inputs, outputs=outputs, reference_outputs=reference_outputs, run=run, **contexts)
        )

    def result(self, arguments: Arguments) -> dict[str, Any]:
        """Score an evaluator's arguments, blocking. Every form ends here."""
        read = [_sample_or_unscored(metric, arguments, self._reading) for metric in self.metrics]
        scored = [
            one if isinstance(one, Unscored) else score_safely(metric, one)
            for metric, one in zip(self.metrics, read, strict=True)
        ]
        return self._results(scored)

    async def aresult(self, arguments: Arguments) -> dict[str, Any]:
        """Score an evaluator's arguments on the running event loop."""

        async def score(metric: Metric) -> Outcome:
            one = _sample_or_unscored(metric, arguments, self._reading)
            return one if isinstance(one, Unscored) else await ascore_safely(metric, one)

        return self._results(await asyncio.gather(*map(score, self.metrics)))

    def _results(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        parts = zip(self.keys, self.metrics, outcomes, strict=True)
        results = [_result(key, metric.judge.model, outcome) for key, metric, outcome in parts]
        return results[0] if len(results) == 1 else {"results": results}

    def as_run_evaluator(self) -> "RunEvaluator":
        """Return it as LangSmith's evaluator of runs, for `EvaluatorCallbackHandler` and LangSmith's evaluation.

        Contexts are in the run's outputs or, where they are not, what its outermost retrievers and tools returned, as
        live: of `retriever_tools` their texts.
        """
        # langsmith takes long to import.
        from ragstone_langchain.run_evaluator import RagRunEvaluator

        return RagRunEvaluator(self.keys, self.result, self.aresult, self._reading)

    def as_runnable(self) -> "Runnable[dict[str, Any], dict[str, Any]]":
        """Return it as a step of a chain, sync and async.

        Its input is a chain's state with everything in it.
        """
        # Most of langchain-core's import time goes here.
        from langchain_core.runnables import RunnableLambda

        return RunnableLambda(self._score_state, self._ascore_state, name=self.__name__)

    # Methods, not closures, so that the step can be pickled.
    def _score_state(self, state: object) -> dict[str, Any]:
        return self.result(Arguments(outputs=state))

    async def _ascore_state(self, state: object) -> dict[str, Any]:
        return await self.aresult(Arguments(outputs=state))


def _sample_or_unscored(metric: Metric, arguments: Arguments, reading: ReadingOptions) -> Sample | Unscored:
    try:
        return arguments.sample(metric, reading)
    except Unreadable as problem:
        detail = str(problem)
    except Exception as error:
        # An object of the app's fails when it is looked into.
        detail = f"what was passed cannot be read: {describe(error, most=300)}"
    return Unscored(metric=metric.name, reason="missing_input", detail=detail, version=metric.version)


def _result(key: str, judge: str, outcome: Outcome) -> dict[str, Any]:
    score = outcome if isinstance(outcome, Score) else None
    plain = outcome.model_dump(mode="json")
    return {
        "key": key,
        "score": None if score is None else score.value,
        "comment": outcome.reason if isinstance(outcome, Score) else f"{outcome.reason}: {outcome.detail}",
        "metadata": {
            "metric": outcome.metric,
            "version": outcome.version,
            "judge": judge,
            "passed": None if score is None else score.passed,
            "unscored": None if score is not None else outcome.reason,
            "breakdown": plain.get("breakdown", {}),
            "verdicts": plain.get("verdicts", []),
            "usage": plain["usage"],
        },
    }


def _arguments(
    *unnamed: object,
    inputs: object = None,
    outputs: object = None,
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
