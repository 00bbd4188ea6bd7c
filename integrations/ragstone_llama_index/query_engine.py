"""`evaluate_query_engine`: questions to an app of LlamaIndex in, a report out."""

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import Workflow
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags
from llama_index_instrumentation.span import active_span_id

from ragstone.adapters.runs import Run
from ragstone.background import SHORT_LOOPS, in_daemon
from ragstone.batch.run import BatchRun
from ragstone.errors import describe
from ragstone.fields.values import ids_in, queries_in
from ragstone.limits.limits import Limits
from ragstone.metrics import Metric
from ragstone.metrics.names import spread
from ragstone.options import checked
from ragstone.plain import as_dict, fields_of, is_list, is_mapping
from ragstone.report import Report
from ragstone.sample import Row, Sample
from ragstone_llama_index.asking import App, ask, check_app
from ragstone_llama_index.evaluator import AnyEmbedder, AnyLLM, AnyWriter, MetricEvaluator
from ragstone_llama_index.read import Mode, NamedFields, Reading
from ragstone_llama_index.record import EVALUATION_TAG, CallRecorder
from ragstone_llama_index.streaming import Answered, read_to_end

AnyMetrics = Metric | MetricEvaluator | str | Sequence[Metric | MetricEvaluator | str]
Questions = Iterable[Any] | str | Path
References = Sequence[str | Sequence[str | None] | None]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question: alone, or as the next turn of a conversation."""

    text: str
    reference: str | None
    begins: bool
    reference_ids: Sequence[str] = ()


def evaluate_query_engine(
    engine: App,
    questions: Questions,
    metrics: AnyMetrics,
    llm: AnyLLM | None = None,
    embed_model: AnyEmbedder | None = None,
    *,
    references: References | None = None,
    writer: AnyWriter | None = None,
    max_concurrency: int = 8,
    limits: Limits | None = None,
    progress: bool | Literal["auto"] = "auto",
    metadata_mode: Mode = MetadataMode.NONE,
    context_tools: Collection[str] = (),
    fields: NamedFields | None = None,
    id_key: str | None = None,
) -> Report:
    """Put each question to an app and score its answer by each metric, by `ragstone.evaluate`.

    The app's calls are recorded and read as `instrument` reads them. An error of the app or a judge affects no other
    question. Without an answer, a metric that looks at it is `Unscored("missing_input")` with the app's error. Works in
    threads, so inside a running event loop too; a workflow gets an event loop of its own.

    Args:
        engine: The app: a query engine; a chat engine, which is asked in turn, and reset before each question; an agent
            or a workflow, whose start event gets the question under its first usual name, else as `query`; or a
            function of a question, plain or async.
        questions: What to ask. For a chat engine an item may be the list of a conversation's turns, each of which is
            scored. Or a `LabelledRagDataset`, or its saved file. Or an `EmbeddingQAFinetuneDataset`, whose nodes
            "retrieval_rank" compares with those that were retrieved.
        metrics: What to score by: metrics, evaluators, or names such as "rag" or "context_relevancy"; no two of one
            name. An `AlignmentCoverage` that you make wants `source="retrieved_contexts"`: a question is no original.
        llm: The judge of metrics by name; see `MetricEvaluator`.
        embed_model: The embedder of metrics by name.
        references: The right answers, in the form of the questions; a dataset has its own.
        writer: The writer of metrics by name; see `MetricEvaluator`.
        max_concurrency: Questions under way at most.
        limits: The limits on judges, as for `ragstone.evaluate`. None: `max_concurrency` calls at once.
        progress: Whether to show a bar; "auto": on a terminal and in a notebook.
        metadata_mode: Which metadata of source nodes stand in the contexts; see `MetricEvaluator`.
        context_tools: Names of tools whose texts are contexts; see `MetricEvaluator`.
        id_key: The key of a node's metadata that is its id in `retrieved_ids`; None: its own id, where a metric needs
            ids.
        fields: Where a sample's fields stand; see `instrument`. "user_input" names the question of a workflow's start.

    Returns:
        The report; its results are in the order of the questions, and `report.sample(result)` holds question, answer
        and contexts.

    Raises:
        TypeError: `engine` is no app, `questions` no list, or one of `metrics` is no metric.
        ValueError: A question or a reference is no text, two metrics have the same name, there are none, one needs a
            reference and there is none, there are more or fewer references than questions, `max_concurrency` is less
            than 1, or there is no such `metadata_mode`.
        ragstone.batch.Interrupted: Ctrl-C. It is a KeyboardInterrupt, and its `report` holds the scores so far.

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
    asked = _questions(engine, questions, references)
    awaited = isinstance(engine, Workflow) or inspect.iscoroutinefunction(engine)
    scored = _metrics_to_score(metrics, llm, embed_model, writer, asked)
    app = _App(engine, Reading.of(metadata_mode, context_tools, fields, _id_key(id_key, scored)), awaited=awaited)
    # It also checks how many questions may be under way.
    usual = Limits(max_concurrency=max_concurrency)
    run = BatchRun(app.rows(asked, max_concurrency), scored, limits=limits or usual, progress=progress)
    run.total = len(asked)
    return run.evaluated()


async def aevaluate_query_engine(
    engine: App,
    questions: Questions,
    metrics: AnyMetrics,
    llm: AnyLLM | None = None,
    embed_model: AnyEmbedder | None = None,
    *,
    references: References | None = None,
    writer: AnyWriter | None = None,
    max_concurrency: int = 8,
    limits: Limits | None = None,
    progress: bool | Literal["auto"] = "auto",
    metadata_mode: Mode = MetadataMode.NONE,
    context_tools: Collection[str] = (),
    fields: NamedFields | None = None,
    id_key: str | None = None,
) -> Report:
    """Put each question to an app on the running event loop, then score; otherwise as `evaluate_query_engine`."""
    asked = _questions(engine, questions, references)
    scored = _metrics_to_score(metrics, llm, embed_model, writer, asked)
    app = _App(engine, Reading.of(metadata_mode, context_tools, fields, _id_key(id_key, scored)), awaited=True)
    rows: list[Row] = []
    # These check the options before the app is asked.
    usual = Limits(max_concurrency=max_concurrency)
    run = BatchRun(rows, scored, limits=limits or usual, progress=progress)
    rows.extend([row async for row in app.answers(asked, max_concurrency)])
    await run.all()
    return run.report()


class _App(CallRecorder):
    """An app that is asked, and whose calls are recorded meanwhile."""

    def __init__(self, engine: App, reading: Reading, *, awaited: bool) -> None:
        check_app("engine", engine)
        super().__init__(reading)
        self.engine = engine
        self.awaited = awaited

    def rows(self, questions: Sequence[_Question], most: int) -> Iterator[Row]:
        """Ask on an event loop of its own, in the thread that reads, and yield in order."""
        loop, answers = asyncio.new_event_loop(), self.answers(questions, most)
        SHORT_LOOPS.add(loop)
        try:
            while (row := loop.run_until_complete(anext(answers, None))) is not None:
                yield row
        finally:
            loop.run_until_complete(answers.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def answers(self, questions: Sequence[_Question], most: int) -> AsyncGenerator[Row, None]:
        """Ask on the running loop, so many at once, and yield in order."""
        slots = asyncio.Semaphore(1 if isinstance(self.engine, BaseChatEngine) else most)

        async def row(line: int, question: _Question) -> Row:
            async with slots:
                answer = await self._answered(question)
                return Row(line, answer.sample, answer.problem, answer.first)

        self.install()
        asked = [asyncio.create_task(row(line, question)) for line, question in enumerate(questions, 1)]
        try:
            for line, (question, task) in enumerate(zip(questions, asked, strict=True), 1):
                await asyncio.wait([task])
                # The app may cancel itself.
                error = asyncio.CancelledError() if task.cancelled() else task.exception()
                if error is None:
                    yield task.result()
                    continue
                sample = Sample(user_input=question.text, reference=question.reference)
                yield Row(line, sample, f"the answer could not be read ({describe(error)})")
        finally:
            self.remove()
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _answered(self, question: _Question) -> Answered:
        """Ask a question and read the answer."""
        root = Run(f"ragstone.ask-{uuid4()}", "query", inputs={"question": question.text})
        self.trees.begin(root)
        # What begins in this task is below the question.
        active_span_id.set(str(root.id))
        with instrument_tags({**active_instrument_tags.get(), EVALUATION_TAG: True}):
            try:
                answer = self._call(question) if self.awaited else await in_daemon(lambda: self._call(question))
                # A plain function may return what its async app does.
                root.output = await answer if inspect.isawaitable(answer) else answer
            except Exception as error:
                root.error = error
        self.trees.end(root.id, root.output, root.error)
        active_span_id.set(None)
        run = next((each for each in root.inside if each.output is root.output and root.error is None), root)
        answered = await read_to_end(run, self.reading)
        sample, problem = answered.sample, answered.problem
        if root.error is not None:
            problem = f"the query engine failed ({describe(root.error)})"
            if not self.awaited and "no running event loop" in str(root.error):
                problem += "; pass an async function: async def app(question): return await ..."
        known: dict[str, object] = {"user_input": sample.user_input or question.text, "reference": question.reference}
        known |= {"reference_ids": question.reference_ids} if question.reference_ids else {}
        return Answered(sample.model_copy(update=known), problem, answered.first)

    def _call(self, question: _Question) -> object:
        if question.begins and isinstance(self.engine, BaseChatEngine):
            self.engine.reset()
        return ask(self.engine, question.text, self.reading, awaited=self.awaited)


def _questions(engine: object, questions: Questions, references: References | None) -> Sequence[_Question]:
    """The questions, with the right answers where they are known."""
    examples = _examples(questions)
    own: list[object] = [example.get("reference_answer") or None for example in examples]
    kind: object = list[str | list[str]] if isinstance(engine, BaseChatEngine) else list[str]
    items: list[str | list[str]] = checked("questions", [example.get("query") for example in examples], kind)
    right: list[str | list[str | None] | None] = checked(
        "references", own if references is None else [*references], list[str | list[str | None] | None]
    )
    if len(right) != len(items):
        raise ValueError(f"references: has {len(right)}, for {len(items)} questions; pass one each, or None")
    example_ids = [example.get("reference_ids", ()) for example in examples]
    asked: list[_Question] = []
    for i, (item, reference) in enumerate(zip(items, right, strict=True)):
        turns = [item] if isinstance(item, str) else item
        known: list[str | None] = reference if isinstance(reference, list) else [*[None] * (len(turns) - 1), reference]
        if len(turns) != len(known):
            raise ValueError(f"references[{i}]: has {len(known)}, for {len(turns)} turns; pass one each, or None")
        for j, turn in enumerate(turns):
            asked.append(_Question(turn, known[j], begins=j == 0, reference_ids=ids_in(example_ids[i]) or ()))
    return asked


def _id_key(key: str | None, metrics: Iterable[Metric]) -> str | None:
    """The key of ids; nodes' own where a metric needs some, and none is named."""
    needed = any("retrieved_ids" in metric.required_fields for metric in metrics)
    return "" if key is None and needed else key


def _examples(questions: Questions) -> Sequence[Mapping[str, object]]:
    """Return questions as the rows of a `LabelledRagDataset`, which may be one, or its saved file.

    Or of an `EmbeddingQAFinetuneDataset`, which names the nodes that should be retrieved.
    """
    held: object = questions
    if isinstance(questions, Path) or (isinstance(questions, str) and questions.endswith(".json")):
        held = json.loads(Path(questions).read_text(encoding="utf-8"))
    if (asked := queries_in(held)) is not None:
        return asked
    examples: object = as_dict(held).get("examples") if is_mapping(held) else getattr(held, "examples", None)
    if examples is None and not isinstance(questions, str | Path):
        return [{"query": each} for each in questions]
    if not is_list(examples):
        kind = type(questions).__name__
        raise TypeError(f"questions: is {kind}; pass a list of texts, a LabelledRagDataset or its saved file (.json)")
    return [fields_of(each) or as_dict(each) for each in examples]


def _metrics_to_score(
    metrics: AnyMetrics,
    llm: AnyLLM | None,
    embed_model: AnyEmbedder | None,
    writer: AnyWriter | None,
    asked: Iterable[_Question],
) -> Sequence[Metric]:
    several = [metrics] if isinstance(metrics, str | Metric | MetricEvaluator) else metrics
    made: list[Metric] = []
    for each, _ in spread(several):
        evaluator = MetricEvaluator(each, llm, embed_model, writer=writer) if isinstance(each, str) else each
        made.append(evaluator.metric if isinstance(evaluator, MetricEvaluator) else evaluator)
    known = any(question.reference is not None for question in asked)
    lacking = [metric.name for metric in made if "reference" in metric.required_fields]
    if lacking and not known:
        raise ValueError(
            f"metrics: {', '.join(lacking)} can never be scored: pass references=, a right answer for each question"
        )
    return made
