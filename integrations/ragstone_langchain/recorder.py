"""What the events of live runs come to: samples for the monitor, and counts of the runs that gave none."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from uuid import UUID

from ragstone_langchain.documents import context_texts
from ragstone_langchain.found import (
    contexts_told,
    documents_passed,
    question_given,
    this_turn,
    tool_documents,
    tool_text,
    waits_for_tools,
)
from ragstone_langchain.interrupts import is_interrupt, is_steering
from ragstone_langchain.judge_tag import JUDGE_TAG
from ragstone_langchain.live_samples import Ended, Extract, sample_of
from ragstone_langchain.open_runs import Gathered, Kind, OpenRuns, Run, Top

if TYPE_CHECKING:
    from ragstone.monitor import Monitor

Where = Callable[[str, Sequence[str], Mapping[str, object]], bool]
"""Says of a run, by its name, tags and metadata, whether it is to be a sample."""

_CANCELLED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose; see `ragstone_langchain.MonitorHandler`."""

    extract: Extract | None = None
    where: Where | None = None
    retriever_tools: frozenset[str] = frozenset()


class Recorder:
    """Follows runs from their start to their end.

    Args:
        monitor: Takes the samples.
        options: What the user chose.
    """

    def __init__(self, monitor: "Monitor", options: Options) -> None:
        self._monitor = monitor
        self._options = options
        self.runs = OpenRuns()

    def begin(
        self,
        what: Kind,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: Sequence[str] | None,
        metadata: Mapping[str, object] | None = None,
        name: str = "",
        inputs: object = None,
    ) -> None:
        """Follow a run that starts."""
        known, parent = self.runs.look_up(run_id, parent_run_id)
        if known:
            return  # the handler was given twice
        if parent_run_id is None:
            parent = self._parent_in_context()
        top = parent.top if parent is not None and parent.top.open else None
        if tags and JUDGE_TAG in tags:
            top = Top(run_id, "buried")
        elif parent is not None and parent.top.standing != "undecided":
            # What is still started below a sample that has ended is part of none.
            top = top or Top(run_id, "buried")
        elif what == "chain":
            top = self._chosen(Gathered(run_id, name, tuple(tags or ()), dict(metadata or {})), inputs) or top
        elif what in ("model", "retriever"):
            top = Top(run_id, "buried")  # the chains in it, such as one that words a query, are no samples either
        for _ in range(self.runs.start(run_id, what, parent, top or Top(run_id, "undecided"))):
            self._monitor.skip("never_ended")

    def _parent_in_context(self) -> Run | None:
        """Return the open run that LangChain's context names as the parent of what starts here.

        `RunnableWithFallbacks` gives what it runs its own config, which names no parent.
        """
        from langchain_core.runnables.config import var_child_runnable_config  # most of langchain-core's import time

        config = var_child_runnable_config.get()
        run_id = getattr(config and config.get("callbacks"), "parent_run_id", None)
        return self.runs.get_open(run_id) if isinstance(run_id, UUID) else None

    def _chosen(self, gathered: Gathered, inputs: object) -> Top | None:
        if self._options.where is not None:
            try:
                if not self._options.where(gathered.name, gathered.tags, gathered.metadata):
                    return None
            except Exception as error:
                self._monitor.failed("langchain", error)
                return Top(gathered.run_id, "buried")  # lest it be asked, and fail, for each run below
        if not _is_placeholder(inputs):
            gathered.inputs = inputs
            if self._options.extract is None:
                gathered.question = question_given(this_turn(inputs))
        return Top(gathered.run_id, "sample", gathered)

    def end_chain(self, run_id: UUID, outputs: object, streamed: object) -> None:
        """Close a chain that ended well; `streamed` is what it was given, where that came piece by piece."""
        run, gathered = self.runs.end(run_id)
        if gathered is None:
            self._note_passed(run, outputs)
        elif gathered.unfinished:
            self._monitor.skip("abandoned")
        elif gathered.interrupted or waits_for_tools(outputs, "thread_id" in gathered.metadata):
            self._monitor.skip("interrupted")
        else:
            gathered.leave_out_failed()
            self._hand_over(gathered, streamed, outputs)

    def _note_passed(self, run: Run | None, outputs: object) -> None:
        gathered = run.top.gathered if run is not None else None
        if run is not None and gathered is not None and not run.retrieving and not gathered.has_found:
            texts = documents_passed(outputs)
            if texts:
                self.runs.add_passed(run, texts)

    def fail_chain(self, run_id: UUID, error: BaseException, streamed: object) -> None:
        """Close a chain that failed, was cancelled or interrupted."""
        run, gathered = self.runs.end(run_id)
        if gathered is None:
            self._note_interrupt(run, error)
            if run is not None and not isinstance(error, GeneratorExit) and not is_steering(error):
                run.failed = True
        elif isinstance(error, _CANCELLED):
            self._monitor.skip("cancelled")
        elif is_steering(error):
            self._monitor.skip("interrupted")
        else:
            self._hand_over(gathered, streamed, None, error)

    def _hand_over(
        self, gathered: Gathered, streamed: object, outputs: object, error: BaseException | None = None
    ) -> None:
        if streamed is None:
            ended = Ended(gathered.inputs, outputs, gathered.question, error)
        else:
            ended = Ended(streamed, outputs, None, error)
        sample = sample_of(gathered, ended, self._options.extract, self._options.retriever_tools)
        if sample is None:
            self._monitor.skip("nothing_found" if self._options.extract is None else "declined")
        else:
            self._monitor.submit(sample)

    def end_retriever(self, run_id: UUID, documents: Sequence[object]) -> None:
        """Close a retriever; what it returned counts if it is inside of no other one."""
        run, _ = self.runs.end(run_id)
        if run is not None and run.top.gathered is not None and not (run.parent and run.parent.retrieving):
            self.runs.add_found(run, _texts(documents))

    def end_tool(self, run_id: UUID, output: object, name: object) -> None:
        """Close a tool; the Documents that it returned count instead of what retrievers inside of it found."""
        run, _ = self.runs.end(run_id)
        if run is None or run.top.gathered is None:
            return
        texts = tool_documents(output)
        if texts:
            self.runs.add_found(run, texts, instead=True)
        elif name in self._options.retriever_tools and not self.runs.has_found(run):
            text = tool_text(output)
            self.runs.add_found(run, () if text is None else (text,))

    def end(self, run_id: UUID, error: BaseException | None = None) -> None:
        """Close a run of which nothing is kept: a model, or one that failed."""
        run, _ = self.runs.end(run_id)
        if error is not None:
            self._note_interrupt(run, error)

    def _note_interrupt(self, run: Run | None, error: BaseException) -> None:
        gathered = run.top.gathered if run is not None else None
        if gathered is not None and is_interrupt(error):
            gathered.interrupted = True

    def take_told(self, run_id: UUID, data: object) -> None:
        """Take the contexts that the app names."""
        run = self.runs.get(run_id)
        if run is not None and run.top.gathered is not None:
            self.runs.add_told(run, contexts_told(data))


def _texts(documents: Sequence[object]) -> Sequence[str]:
    contents = [getattr(document, "page_content", None) for document in documents]
    texts = [content for content in contents if type(content) is str]
    if len(texts) < len(contents):  # not what a retriever should return: read with care
        return context_texts(cast("object", documents), "a retriever's result") or ()
    return texts


def _is_placeholder(inputs: object) -> bool:
    """Say whether these are the inputs that a chain is said to have when it is streamed and they are not there yet."""
    if type(inputs) is not dict:
        return False
    entries = cast("dict[object, object]", inputs)
    text = entries.get("input")
    return len(entries) == 1 and isinstance(text, str) and not text
