"""`evaluate_query_engine`: put questions to a query engine and score what it answers."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.schema import MetadataMode

from ragstone import Report, aevaluate, evaluate
from ragstone.errors import describe
from ragstone.limits.timeouts import in_daemon
from ragstone.metrics import Metric
from ragstone.metrics.base import check_members
from ragstone.registry import spread
from ragstone.sample import Row, Sample
from ragstone_llama_index.evaluator import AnyEmbedder, AnyLLM, MetricEvaluator
from ragstone_llama_index.responses import Answered, Mode, Tools, aread_response, check_mode, check_tools, read_response

Metrics = Metric | MetricEvaluator | str | Sequence[Metric | MetricEvaluator | str]
_AHEAD = 4  # times max_concurrency: questions that are asked before the first of them is scored, at most


def evaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Sequence[str],
    metrics: Metrics,
    llm: AnyLLM | None = None,
    embed_model: AnyEmbedder | None = None,
    *,
    max_concurrency: int = 8,
    progress: bool | None = None,
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
        max_concurrency: Questions under way at most, and calls to judges at most, of all metrics together.
        progress: Whether to show a bar; None: on a terminal and in a notebook.
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
    mode, tools, made = check_mode(metadata_mode), check_tools(context_tools), _metrics(metrics, llm, embed_model)

    async def ask(question: str) -> Answered:
        return await in_daemon(lambda: read_response(question, engine.query(question), mode, tools))

    bar: bool | Literal["auto"] = "auto" if progress is None else progress
    rows = _rows(ask, questions, max_concurrency)
    return evaluate(rows, made, max_concurrency=max_concurrency, progress=bar, total=len(questions))


async def aevaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Sequence[str],
    metrics: Metrics,
    llm: AnyLLM | None = None,
    embed_model: AnyEmbedder | None = None,
    *,
    max_concurrency: int = 8,
    progress: bool | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
    context_tools: Tools = (),
) -> Report:
    """Put each question to a query engine on the running event loop; otherwise as `evaluate_query_engine`."""
    _check(engine, questions)
    mode, tools, made = check_mode(metadata_mode), check_tools(context_tools), _metrics(metrics, llm, embed_model)

    async def ask(question: str) -> Answered:
        return await aread_response(question, await engine.aquery(question), mode, tools)

    bar: bool | Literal["auto"] = "auto" if progress is None else progress
    async with aclosing(_rows(ask, questions, max_concurrency)) as rows:
        return await aevaluate(rows, made, max_concurrency=max_concurrency, progress=bar, total=len(questions))


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

    asked: deque[asyncio.Task[Row]] = deque()
    try:
        for line, question in enumerate(questions, 1):
            asked.append(asyncio.create_task(row(line, question)))
            if len(asked) == _AHEAD * most:
                yield await asked[0]
                asked.popleft()
        while asked:
            yield await asked[0]
            asked.popleft()
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


def _metrics(metrics: Metrics, llm: AnyLLM | None, embed_model: AnyEmbedder | None) -> Sequence[Metric]:
    several = [metrics] if isinstance(metrics, str | Metric | MetricEvaluator) else metrics
    made = [MetricEvaluator(each, llm, embed_model) if isinstance(each, str) else each for each, _ in spread(several)]
    return [metric.metric if isinstance(metric, MetricEvaluator) else metric for metric in made]
