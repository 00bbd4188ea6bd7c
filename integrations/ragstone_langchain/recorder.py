"""What the events of live runs come to: samples for the monitor, and counts of the runs that gave none."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from ragstone.errors import describe
from ragstone.monitor.run_tree import MOST_COLLECTED, OpenSample, Run, RunTree
from ragstone.plain import is_mapping
from ragstone.sample import Sample
from ragstone_langchain.extraction import (
    any_contexts,
    documents_passed,
    find_question,
    find_text,
    if_readable,
    named_contexts,
    state_messages,
    stated_contexts,
    to_sample,
    tool_documents,
    tool_text,
    waits_for_tools,
)
from ragstone_langchain.messages import JUDGE_TAG, context_texts, once_each, tool_texts

if TYPE_CHECKING:
    from ragstone.monitor import Monitor

Extract = Callable[[object, object, Sequence[str]], Sample | Mapping[str, object] | None]
"""A user's own reading of a run: its inputs, its outputs and the texts of the documents that were retrieved in it."""

Where = Callable[[str, Sequence[str], Mapping[str, object]], bool]
"""Says of a run, by its name, tags and metadata, whether it is to be a sample."""

Kind = Literal["chain", "step", "tool", "retriever", "model"]
"""What a run is. A step is a chain that only words or parses (a prompt, a parser), and never a sample."""

CONTEXTS_EVENT = "ragstone.contexts"
"""The name of the custom event by which an app names what it retrieved."""

_CANCELLED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_ERROR_LENGTH = 200  # characters of an error's message
_RUN_FACTS = ("name", "tags", "error")  # under these the sample's metadata says what the run was


@dataclass(slots=True, eq=False)
class LiveRun(OpenSample):
    """What is known of a run that will be a sample; its inputs are None where it is streamed, until its end."""

    run_id: UUID = field(kw_only=True)
    name: str = ""
    tags: tuple[str, ...] = ()
    inputs: object = None
    interrupted: bool = False


class Recorder:
    """Follows runs from their start to their end, and hands their samples to a monitor; see `MonitorHandler`."""

    def __init__(
        self, monitor: "Monitor", extract: Extract | None, where: Where | None, retriever_tools: frozenset[str]
    ) -> None:
        self._monitor = monitor
        self._extract = extract
        self._where = where
        self._retriever_tools = retriever_tools
        self.runs = RunTree[LiveRun]()

    def __reduce__(self) -> tuple[object, ...]:  # without what is open
        return type(self), (self._monitor, self._extract, self._where, self._retriever_tools)

    def begin(self, kind: Kind, run_id: UUID, event: Mapping[str, Any], name: str = "", inputs: object = None) -> None:
        """Follow a run that starts."""
        runs, key = self.runs, run_id.int  # Python hashes numbers faster than ids
        tags, parent_id = event.get("tags"), event.get("parent_run_id")
        parent = self._parent_in_context() if parent_id is None else runs.get(parent_id.int, ended=True)
        within = None if parent is None or parent.root.over else parent
        sample: LiveRun | None = None
        transparent = False
        if tags and JUDGE_TAG in tags:
            within = None
        elif parent is not None and not parent.root.transparent:
            pass  # a part of what it is in; what is still started below a sample that has ended is part of none
        elif kind == "chain":
            if runs.get(key) is not None:
                return  # the handler was given twice
            run = LiveRun(run_id=run_id, name=name, tags=tuple(tags or ()), metadata=dict(event.get("metadata") or {}))
            try:
                transparent = self._where is not None and not self._where(name, run.tags, run.metadata)
            except Exception as error:
                self._monitor.failed("langchain", error)
                within = None  # a tree of no interest, lest the function be asked, and fail, for each run below
            else:
                if not transparent:
                    within, sample = None, self._sample(run, inputs)
        elif kind in ("model", "retriever"):
            within = None  # the chains in it, such as one that words a query, are no samples either
        else:
            transparent = True
        for _ in runs.start(key, within, kind=kind, sample=sample, transparent=transparent):
            self._monitor.skip("never_ended")

    def _parent_in_context(self) -> Run[LiveRun] | None:
        """Return the open run that LangChain's context names: what `RunnableWithFallbacks` runs has no parent's id."""
        from langchain_core.runnables.config import var_child_runnable_config  # most of langchain-core's import time

        config = var_child_runnable_config.get()
        run_id = getattr(config and config.get("callbacks"), "parent_run_id", None)
        return self.runs.get(run_id.int) if isinstance(run_id, UUID) else None

    def _sample(self, run: LiveRun, inputs: object) -> LiveRun:
        if not _is_placeholder(inputs):
            run.inputs = inputs
            if self._extract is None:
                run.question = if_readable(find_text, "user_input", inputs, "inputs", lone=False)
        return run

    def end_chain(self, run_id: UUID, outputs: object, streamed: object) -> None:
        """Close a chain that ended well; `streamed` are the inputs that came piece by piece."""
        run, sample = self.runs.end(run_id.int)
        if sample is None:
            self._collect_passed(run, outputs)
        elif sample.unfinished:
            self._monitor.skip("abandoned")
        elif sample.interrupted or waits_for_tools(outputs, "thread_id" in sample.metadata):
            self._monitor.skip("interrupted")
        else:
            sample.leave_out_failed()
            self._submit(sample, streamed, outputs)

    def _collect_passed(self, run: Run[LiveRun] | None, outputs: object) -> None:
        sample = run.root.sample if run is not None and not isinstance(outputs, str) else None
        if run is None or sample is None:
            return
        if any(texts and not searched.in_vain for searched, texts in sample.items("search")):
            return
        texts = documents_passed(outputs)
        if texts and not any(above.kind == "retriever" for above in run.lineage()):
            self.runs.collect(run, "step", texts)

    def fail_chain(self, run_id: UUID, error: BaseException, streamed: object) -> None:
        """Close a chain that failed, was cancelled or interrupted."""
        run, sample = self.runs.end(run_id.int)
        if sample is None:
            _note_interrupt(run, error)
            if run is not None and not isinstance(error, GeneratorExit) and not _is_langgraph_s("GraphBubbleUp", error):
                run.failed = True
        elif isinstance(error, _CANCELLED):
            self._monitor.skip("cancelled")
        elif _is_langgraph_s("GraphBubbleUp", error):
            self._monitor.skip("interrupted")
        else:
            self._submit(sample, streamed, None, error)

    def _submit(self, run: LiveRun, streamed: object, outputs: object, error: BaseException | None = None) -> None:
        if streamed is not None:
            run.inputs, run.question = streamed, None
        if self._extract is None:
            sample = live_sample(run, outputs, self._retriever_tools, error)
        else:
            sample = to_sample(self._extract(run.inputs, outputs, tuple(_contexts(run, None, None, ()))), "extract")
            if sample is not None:
                metadata = {**_about(run, error), **sample.metadata}
                sample = sample.model_copy(update={"id": sample.id or str(run.run_id), "metadata": metadata})
        if sample is not None:
            self._monitor.submit(sample)
        else:
            self._monitor.skip("nothing_found" if self._extract is None else "declined")

    def end_retriever(self, run_id: UUID, documents: Sequence[object]) -> None:
        """Close a retriever; what it returned counts if it is inside of no other one."""
        run, _ = self.runs.end(run_id.int)
        if run is not None and run.root.sample is not None and not _in_retriever(run):
            self._collect_search(run, context_texts(documents, "a retriever's result") or ())

    def end_tool(self, run_id: UUID, output: object, name: object) -> None:
        """Close a tool; the Documents that it returned count instead of what retrievers inside of it found."""
        run, _ = self.runs.end(run_id.int)
        sample = run.root.sample if run is not None else None
        if run is None or sample is None or _in_retriever(run):
            return
        texts = tool_documents(output)
        if texts:
            self.runs.discard(run, "search")
            self._collect_search(run, texts)
        elif name in self._retriever_tools and not any(texts for _, texts in sample.items("search", run)):
            text = tool_text(output)
            self._collect_search(run, () if text is None else (text,))

    def _collect_search(self, run: Run[LiveRun], texts: Sequence[str]) -> None:
        if self.runs.collect(run, "search", texts) > MOST_COLLECTED:  # it is the app's main loop, and no answer
            _, sample = self.runs.end(run.root.key)
            if sample is not None:
                self._monitor.skip("never_ended")

    def end(self, run_id: UUID, error: BaseException | None = None) -> None:
        """Close a run of which nothing is kept: a model, or one that failed."""
        run, _ = self.runs.end(run_id.int)
        if error is not None:
            _note_interrupt(run, error)

    def collect_named(self, run_id: UUID, event: str, data: object) -> None:
        """Take the contexts that the app names by its event."""
        run = self.runs.get(run_id.int, ended=True) if event == CONTEXTS_EVENT else None
        if run is not None and run.root.sample is not None:
            self.runs.collect(run, "event", named_contexts(data, CONTEXTS_EVENT))


def live_sample(
    run: LiveRun, outputs: object, retriever_tools: frozenset[str], error: BaseException | None = None
) -> Sample | None:
    """Return the sample of a run that has ended, or failed with an error; None where there is nothing in it at all."""
    question = if_readable(find_question, run.inputs, outputs) if run.question is None else run.question
    contexts = _contexts(run, run.inputs, outputs, retriever_tools)
    answer = None if error is not None else if_readable(find_text, "response", outputs, "outputs")
    if error is None and question is None and answer is None and not contexts:
        return None
    return Sample(
        user_input=question,
        retrieved_contexts=contexts,
        response=answer,
        id=str(run.run_id),
        metadata=_about(run, error),
    )


def _contexts(run: LiveRun, inputs: object, outputs: object, tools: Collection[str]) -> Sequence[str]:
    """Return the contexts of a run: the first of the places, named in docs/langchain.md, that holds any."""
    named = run.items("event")
    if named:
        return once_each(text for _, texts in named for text in texts)
    searches = sorted(run.items("search"), key=lambda item: item[0].order)
    # An artifact in this turn's messages may also be of a run before, which an interrupt has stopped.
    artifacts = if_readable(tool_texts, state_messages(outputs)) or ()
    passed: list[str] = []
    for _, texts in run.items("step"):  # one that passes on some of those before has chosen
        passed = once_each(texts if set(texts) <= set(passed) else [*passed, *texts])
    return (
        stated_contexts(outputs)
        or once_each([*(text for _, texts in searches for text in texts), *artifacts])
        or passed
        or any_contexts(outputs, tools)
        or any_contexts(inputs, tools)
    )


def _about(run: LiveRun, error: BaseException | None = None) -> dict[str, object]:
    """Return a sample's metadata: the run's name, tags and what JSON can hold of its metadata, and the app's error."""
    about: dict[str, object] = {}
    for name, value in run.metadata.items():
        if name not in _RUN_FACTS:
            with suppress(TypeError, ValueError, RecursionError):
                about[name] = json.loads(json.dumps(value, allow_nan=False, default=_id_text))
    about |= {"name": run.name, "tags": list(run.tags)}
    if error is not None:
        about["error"] = describe(error, most=_ERROR_LENGTH)
    return about


def _id_text(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    raise TypeError


def _in_retriever(run: Run[LiveRun]) -> bool:
    return any(above.kind == "retriever" for above in run.lineage() if above is not run)


def _note_interrupt(run: Run[LiveRun] | None, error: BaseException) -> None:
    sample = run.root.sample if run is not None else None
    if sample is not None and _is_langgraph_s("GraphInterrupt", error):
        sample.interrupted = True


def _is_langgraph_s(name: str, error: BaseException) -> bool:
    """Say whether an error is one of those with which LangGraph steers graphs, without importing it."""
    return any(each.__name__ == name and each.__module__.startswith("langgraph.") for each in type(error).__mro__)


def _is_placeholder(inputs: object) -> bool:
    """Say whether these are the inputs that a chain is said to have when it is streamed and they are not there yet."""
    text = inputs.get("input") if is_mapping(inputs) and len(inputs) == 1 else None
    return isinstance(text, str) and not text
