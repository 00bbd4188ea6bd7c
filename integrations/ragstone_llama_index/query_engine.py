"""`evaluate_query_engine`: put questions to a query engine and score what it answers."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.schema import MetadataMode

from ragstone.batch import MetricInfo, MetricSummary, Record
from ragstone.errors import ascore_safely, describe, score_safely
from ragstone.metrics import Metric
from ragstone.metrics.options import check_count
from ragstone.outcome import Outcome
from ragstone_llama_index.arguments import Metrics, by_name, check_asked
from ragstone_llama_index.bounded import bounded
from ragstone_llama_index.evaluator import no_response
from ragstone_llama_index.responses import Answer, AnyResponse, Mode, aread_response, check_mode, read_response

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@dataclass(frozen=True, slots=True)
class EngineRow:
    """A question, what the engine answered, and the outcome by each metric.

    Attributes:
        question: What was asked.
        response: What the engine answered; None when it failed.
        contexts: The texts of its source nodes.
        outcomes: A `Score` or an `Unscored` by the metric's name.
        error: What the engine raised, or why its stream gave no text; None when all went well.
    """

    question: str
    response: str | None
    contexts: tuple[str, ...]
    outcomes: Mapping[str, Outcome]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What an evaluation found.

    Attributes:
        rows: One per question, in the order of the questions.
        summaries: Mean, counts, failures by reason and usage, by the metric's name.

    Example:
        >>> summary = MetricSummary(MetricInfo("demo", "1", "judge"))
        >>> print(EngineReport(rows=(), summaries={"demo": summary}))
        demo: no score (0 of 0)
    """

    rows: tuple[EngineRow, ...]
    summaries: Mapping[str, MetricSummary]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {_line(summary)}" for name, summary in self.summaries.items())


def evaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Sequence[str],
    metrics: Metrics,
    *,
    max_concurrency: int = 8,
    progress: bool | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
) -> EngineReport:
    """Put each question to a query engine, score its answer by each metric, and sum up.

    What the engine or a judge raises is on its row and touches no other. Works in threads, by the sync halves of
    engine and judges, and so inside a running event loop too.

    Args:
        engine: The app.
        questions: What to ask.
        metrics: What to score by, metrics or evaluators; by names of yours where two have the same.
            `AlignmentCoverage` wants `source="retrieved_contexts"` here: a question is not the original of its answer.
        max_concurrency: Questions under way at most, and calls to judges at most, of all metrics together.
        progress: Whether to show a bar; None: on a terminal.
        metadata_mode: Which metadata of source nodes stand in the contexts; see `MetricEvaluator`.

    Raises:
        TypeError: `engine` is no query engine, a question is no text, or one of `metrics` is no metric.
        ValueError: Two metrics have the same name, there are none, `max_concurrency` is less than 1, or there is no
            such `metadata_mode`.

    Example:
        >>> from llama_index.core import MockEmbedding, VectorStoreIndex
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.schema import TextNode
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> nodes = [TextNode(text="It is long. Jane Austen wrote Emma.")]
        >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [2]}))
        >>> engine = index.as_query_engine(llm=MockLLM())
        >>> print(evaluate_query_engine(engine, ["Who wrote Emma?"], [metric]))
        context_relevancy: mean 0.500 (1 of 1)
    """
    run = _Run(engine, questions, metrics, max_concurrency, metadata_mode)
    rows: dict[int, EngineRow] = {}
    with _bar(len(questions), progress) as step:
        pool = ThreadPoolExecutor(max_concurrency, thread_name_prefix="ragstone-rows")
        try:
            futures = {
                pool.submit(copy_context().run, run.row, engine, question): i for i, question in enumerate(questions)
            }
            for future in as_completed(futures):
                rows[futures[future]] = future.result()
                step()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return run.report([rows[i] for i in range(len(questions))])


async def aevaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Sequence[str],
    metrics: Metrics,
    *,
    max_concurrency: int = 8,
    progress: bool | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
) -> EngineReport:
    """Put each question to a query engine on the running event loop; otherwise as `evaluate_query_engine`."""
    run = _Run(engine, questions, metrics, max_concurrency, metadata_mode)
    places = asyncio.Semaphore(max_concurrency)
    with _bar(len(questions), progress) as step:

        async def row(question: str) -> EngineRow:
            async with places:
                done = await run.arow(engine, question)
            step()
            return done

        tasks = [asyncio.ensure_future(row(question)) for question in questions]
        try:
            rows = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return run.report(rows)


class _Run:
    """The metrics of one evaluation, and what makes a row."""

    def __init__(
        self,
        engine: BaseQueryEngine,
        questions: Sequence[str],
        metrics: Metrics,
        max_concurrency: int,
        mode: Mode,
    ) -> None:
        check_count("max_concurrency", max_concurrency)
        check_asked(engine, questions)
        named = by_name(metrics)
        self._metrics = dict(zip(named, bounded(list(named.values()), max_concurrency), strict=True))
        self._mode = check_mode(mode)

    def row(self, engine: BaseQueryEngine, question: str) -> EngineRow:
        try:
            answer = read_response(cast("AnyResponse", engine.query(question)), self._mode)
        except Exception as error:
            answer = _failed(error)
        sample = answer.sample(question)
        with ThreadPoolExecutor(len(self._metrics), thread_name_prefix="ragstone-metrics") as pool:
            futures = [
                pool.submit(copy_context().run, score_safely, metric, sample)
                for metric in self._to_score(answer).values()
            ]
            return self._row(question, answer, [future.result() for future in futures])

    async def arow(self, engine: BaseQueryEngine, question: str) -> EngineRow:
        try:
            answer = await aread_response(cast("AnyResponse", await engine.aquery(question)), self._mode)
        except Exception as error:
            answer = _failed(error)
        sample = answer.sample(question)
        scored = await asyncio.gather(*(ascore_safely(metric, sample) for metric in self._to_score(answer).values()))
        return self._row(question, answer, scored)

    def _to_score(self, answer: Answer) -> dict[str, Metric]:
        """Return the metrics that can score the answer: without one, those that do not look at it."""
        if answer.problem is None:
            return self._metrics
        return {
            name: metric
            for name, metric in self._metrics.items()
            if "response" not in metric.required_fields and answer.contexts
        }

    def _row(self, question: str, answer: Answer, scored: Sequence[Outcome]) -> EngineRow:
        by_name = dict(zip(self._to_score(answer), scored, strict=True))
        problem = answer.problem or ""
        outcomes = {name: by_name.get(name) or no_response(metric, problem) for name, metric in self._metrics.items()}
        return EngineRow(question, answer.text, answer.contexts, outcomes, answer.problem)

    def report(self, rows: Sequence[EngineRow]) -> EngineReport:
        summaries = {name: MetricSummary(MetricInfo.of(metric)) for name, metric in self._metrics.items()}
        for number, row in enumerate(rows, 1):
            for name, outcome in row.outcomes.items():
                summaries[name].add([Record(f"question {number}", outcome)])
        return EngineReport(tuple(rows), summaries)


def _failed(error: Exception) -> Answer:
    return Answer(None, (), f"the query engine failed ({describe(error)})")


@contextmanager
def _bar(total: int, progress: bool | None) -> "Generator[Callable[[], object], None, None]":
    from tqdm import tqdm

    with tqdm(total=total, unit="question", disable=None if progress is None else not progress) as bar:
        yield bar.update


def _line(summary: MetricSummary) -> str:
    mean = "no score" if summary.mean is None else f"mean {summary.mean:.3f}"
    failures = "".join(f"; {count} {reason}" for reason, count in summary.failures.most_common())
    return f"{mean} ({summary.scored} of {summary.total}{failures})"
