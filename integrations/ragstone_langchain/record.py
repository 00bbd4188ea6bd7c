"""What LangChain's events come to: a tree of runs for each topmost one, read into a sample when that has ended."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from ragstone.errors import describe
from ragstone.live.trace import TRACE_KEY, Trace, current_trace, own_id
from ragstone.open_runs import ADVICE_FOR_ALL, OpenRuns
from ragstone.plain import as_dict, is_list, is_mapping
from ragstone.run import Run
from ragstone.sample import Sample
from ragstone_langchain.messages import JUDGE_TAG, Unreadable, read_messages, text_of
from ragstone_langchain.read import Kind, Reading, found_by, holds_memory, joined, readable_texts, sample_of

if TYPE_CHECKING:
    from ragstone.live import Monitor

Where = Callable[[str, Sequence[str], Mapping[str, object]], bool]
"""Says of a run, by its name, tags and metadata, whether it is to be a sample."""
RunId = UUID | str
"""LangChain takes a text for a run's id, too, as LangServe gives it."""
D = TypeVar("D")

ADVICE = ADVICE_FOR_ALL | {
    "interrupted": "the run waits for a person; it becomes a sample when it is resumed and ends",
    "never_ended": "no event came for an hour, or 10,000 other runs were open",
    "no_answer": 'Name it: MonitorHandler(monitor, fields={"response": "NAME"})',
    "no_question": "return the question from fields=",
    "nothing_found": "return question, contexts and answer from fields=",
    "only_model": "a model was called outside of any chain: call monitor.submit(Sample(...)) there",
    "only_step": "a prompt, a parser or a tool ran outside of any chain, without an answer",
    "too_large": "10,000 runs or 10,000,000 characters in one: if it is the app's main loop, exclude it with where=",
}
"""What to do about runs that gave no sample, by reason."""

_ALONE = {"model": "only_model", "retriever": "only_retrieval", "step": "only_step", "tool": "only_step"}
_ENDS = ("finish_reason", "stop_reason", "done_reason")  # of a message, by provider
_WHO = ("user_id", "thread_id", "session_id", "conversation_id")  # of the config's `configurable`
_RUN_FACTS = ("name", "tags", "error", "run_id")  # under these the sample's metadata says what the run was
_MOST_WAITING, _LONGEST_WAIT = 1_000, 3_600.0  # runs that a person is to resume, and for how many seconds


def key_of(run_id: object) -> int | str | None:
    """Return a run's key: Python hashes numbers faster than ids."""
    return run_id.int if isinstance(run_id, UUID) else run_id if isinstance(run_id, str) else None


def safely(monitor: "Monitor", step: Callable[..., object], *args: object) -> None:
    """Take a step; its error is counted by the monitor and never reaches the app."""
    try:
        step(*args)
    except Exception as error:
        monitor.failed("langchain", error)


@dataclass(slots=True, eq=False, kw_only=True)
class LiveRun(Run):
    """A run, and what its recorder knows of it.

    Attributes:
        recorder: What began it.
        around: The transparent run that it is inside of.
        alone: As what it is counted where it is topmost, no sample, and has none inside.
        is_sample: Whether it will be one.
        block: The contexts that the app named for it in a `trace_id` block, before it began.
        said: What a model has said so far, where it is streamed.
    """

    recorder: "Recorder"
    tags: tuple[str, ...] = ()
    around: "LiveRun | None" = None
    alone: str | None = None
    is_sample: bool = False
    own_id: str | None = None
    trace: Trace | None = None
    block: list[str] = field(default_factory=list[str])
    configurable: Mapping[str, object] | None = None
    said: list[str] = field(default_factory=list[str])

    def enter_block(self, within: Hashable) -> None:
        """Take the id that the app gives a sample that begins now, and the contexts that it has named for it."""
        for twin in _followed(within):  # another monitor has taken them for its sample of the run
            self.own_id, self.trace, self.block = twin.own_id, twin.trace, twin.block
            return
        tagged = [tag.partition(":")[2] for tag in self.tags if tag.startswith(f"{TRACE_KEY}:")]
        self.own_id = own_id({TRACE_KEY: tagged[0], **self.metadata} if tagged else self.metadata)
        self.trace = current_trace()
        if self.trace is not None:
            self.block, self.trace.contexts[:] = [*self.trace.contexts], ()

    def leave_block(self) -> None:
        """Give the block's id and contexts back, for the first of the runs inside."""
        if self.trace is not None:
            self.trace.samples -= 1
            self.trace.contexts += self.block

    def count_no_more(self) -> None:
        """Take note that there is a sample inside, so that none of what is around it is counted."""
        run: LiveRun | None = self
        while run is not None:
            run.alone, run = None, run.around

    def sample_above(self) -> "LiveRun | None":
        """Return the topmost run where it will be a sample."""
        top: Run = self
        while top.parent is not None:
            top = top.parent
        return top if isinstance(top, LiveRun) and top.is_sample else None


_OPEN: WeakKeyDictionary[Any, OpenRuns] = WeakKeyDictionary()


def _followed(key: Hashable) -> list[LiveRun]:
    """Return the samples that a run is part of, one for each monitor."""
    runs = [tree.get(key) for tree in list(_OPEN.values())]
    tops = [run.sample_above() for run in runs if isinstance(run, LiveRun)]
    return [top for top in tops if top is not None]


def contexts(docs: D) -> D:
    """Name what the app has retrieved, wherever it did, for the sample of the run that the call is made in.

        docs = contexts(vector_store.similarity_search(question))

    Of the sample these are the contexts then, whatever else was retrieved; several calls add up. Outside of any run,
    but in a `ragstone.trace_id` block, the next sample that begins there takes them. Anywhere else nothing happens.

    Args:
        docs: Documents, with scores or without, or texts: one, or a list of them.

    Returns:
        `docs` itself. Nothing is ever raised; what cannot be read is counted in `monitor.stats().errors`.

    Example:
        >>> contexts(["Emma is a novel by Jane Austen."])
        ['Emma is a novel by Jane Austen.']
    """
    with suppress(Exception):
        key = _run_in_context()
        followed = _followed(key)
        for sample in followed:
            safely(sample.recorder.monitor, sample.recorder.collect_named, key, docs)
        if not followed and (trace := current_trace()) is not None:
            trace.contexts += readable_texts(docs, "contexts(docs)")[0]
    return docs


def _in_context(key: Literal["callbacks", "configurable"]) -> Any:  # noqa: ANN401 - as LangChain has it
    from langchain_core.runnables.config import var_child_runnable_config  # most of langchain-core's import time

    return (var_child_runnable_config.get() or {}).get(key)


def _run_in_context() -> int | str | None:
    """Return the run that LangChain's context names."""
    return key_of(getattr(_in_context("callbacks"), "parent_run_id", None))


@dataclass(eq=False, repr=False)
class Recorder:
    """Follows runs from their start to their end, and hands their samples to a monitor; see `MonitorHandler`."""

    monitor: "Monitor"
    reading: Reading
    where: Where | None = None

    def __post_init__(self) -> None:
        # Handlers of one monitor share the runs that they follow, so that each run counts once.
        self.runs = _OPEN.setdefault(self.monitor, OpenRuns(_give_up))
        self.waiting: OrderedDict[str, tuple[float, Run]] = OrderedDict()
        self.monitor.advise(ADVICE)

    def __reduce__(self) -> tuple[object, ...]:  # without what is open
        return type(self), (self.monitor, self.reading, self.where)

    def begin(self, kind: Kind, run_id: RunId, event: Mapping[str, Any], name: str = "", inputs: object = None) -> None:
        """Follow a run that starts."""
        key, tags = key_of(run_id), event.get("tags") or ()
        known = self.runs.get(key)
        if JUDGE_TAG in tags or (known is not None and not known.transparent):
            return  # the handler was given twice, or two of one monitor
        if known is not None:
            self.runs.end(key)  # where another handler of the monitor has said no
        parent_key = key_of(event.get("parent_run_id"))
        # `RunnableWithFallbacks` names no parent; a function that LangSmith traces names one of LangSmith's.
        parent = self.runs.get(parent_key) or self.runs.get(_run_in_context())
        if isinstance(parent, LiveRun) and _is_one_of_many(parent, inputs):
            parent.is_sample, parent.transparent, parent.alone = False, True, "excluded"
            parent.leave_block()
        run = LiveRun(id=key, kind=kind, name=name, tags=tuple(tags), recorder=self)
        if isinstance(parent, LiveRun) and not parent.transparent:
            run.inputs = as_it_stands(inputs) if holds_memory(inputs) else None
            top = parent.sample_above()
            if top is not None and top.configurable is None:
                top.configurable = _in_context("configurable")
        else:
            run.metadata = dict(event.get("metadata") or {})
            run.around = parent if isinstance(parent, LiveRun) else None
            self._begin_tree(run, inputs, inside=parent_key is not None)
        self.runs.begin(run, parent_key if parent is None else parent.id)

    def _begin_tree(self, run: LiveRun, inputs: object, *, inside: bool) -> None:
        """Begin a topmost run, whether or not it is inside of one that the handler was not told of."""
        try:
            run.is_sample = run.kind == "chain" and (
                self.where is None or bool(self.where(run.name, run.tags, run.metadata))
            )
        except Exception as error:  # lest it fail for each run inside, none of these is a sample
            self.monitor.failed("langchain", error)
            self.monitor.skip("where_failed")
            return
        if run.is_sample:
            if run.around is not None:
                run.around.count_no_more()
            # A streamed chain is said to have {"input": ""} until its own are there.
            lone = inputs.get("input") if is_mapping(inputs) and len(inputs) == 1 else None
            run.inputs = None if isinstance(lone, str) and not lone else as_it_stands(inputs)
            run.enter_block(run.id)
            return
        run.transparent = run.kind not in ("model", "retriever")
        if run.around is None and (run.kind == "chain" or not inside):
            run.alone = _ALONE.get(run.kind, "excluded")

    def end(self, run_id: RunId, output: object, error: BaseException | None = None, streamed: object = None) -> None:
        """Close a run, with its error if it failed; hand over its sample where it is the topmost one.

        `streamed` are the inputs of a topmost run that came piece by piece.
        """
        run = self.runs.get(key := key_of(run_id))
        if not isinstance(run, LiveRun):
            return
        problem: Unreadable | None = None
        if run.kind == "model":
            output = run.output
        elif run.parent is None:
            run.inputs = run.inputs if streamed is None else streamed
        elif error is None:
            try:
                output = found_by(run, output, run.recorder.reading.retriever_tools)
            except Unreadable:
                output, problem = readable_texts(output, "a retriever's result")
        if self.runs.end(key, output, error) is not None and run.parent is None:
            if run.is_sample:
                run.recorder.submit(run)
            elif run.alone is not None:
                self.monitor.skip(run.alone)
        if problem is not None:
            raise problem

    def piece(self, run_id: RunId, text: object, chunk: object) -> None:
        """Keep what a model says piece by piece; with its last piece it is the model's output."""
        run, message = self.runs.get(key_of(run_id)), getattr(chunk, "message", None)
        if isinstance(run, LiveRun):
            run.said.append(str(text) if message is None else text_of(message))
            about = as_dict(getattr(message, "response_metadata", None))
            if getattr(message, "chunk_position", None) == "last" or any(map(about.get, _ENDS)) or run.output:
                run.output = "".join(run.said)

    def submit(self, run: LiveRun) -> None:
        """Hand over the sample of a run that has ended, or failed with an error; count it where it is none."""
        block = [*run.block, *(run.trace.contexts if run.trace is not None else ())]
        if block and not any(each.kind == "named" for each in run.walk()):
            run.inside.append(Run("", "named", output=block, open=False))
        thread = str(run.metadata.get("thread_id") or (run.configurable or {}).get("thread_id") or "")
        before = self._resumed(run, thread)
        try:
            sample = sample_of(run, self.reading, before)
        except Unreadable:
            self.monitor.skip("fields_failed")
            raise
        if isinstance(sample, Sample):
            own = {"id": sample.id or run.own_id or id_of(run), "metadata": {**_about(run), **sample.metadata}}
            self.monitor.submit(sample.model_copy(update=own))
            return
        if thread and sample.reason in ("interrupted", "no_answer"):
            self.waiting[thread] = time.monotonic(), run if before is None else joined(before, run)
            if len(self.waiting) > _MOST_WAITING:
                self.waiting.popitem(last=False)
        if sample.names:
            self.monitor.skip(sample.reason, names=sample.names)
        else:
            self.monitor.skip(sample.reason)

    def _resumed(self, run: LiveRun, thread: str) -> Run | None:
        """Return the run of the same thread that this one resumes."""
        since, before = self.waiting.pop(thread, (0.0, None))
        resumes = run.inputs is None or type(run.inputs).__name__ == "Command"
        return before if resumes and since > time.monotonic() - _LONGEST_WAIT else None

    def collect_named(self, key: Hashable, docs: object) -> None:
        """Keep what can be read of contexts that the app names; raise `Unreadable` if that is not all."""
        texts, problem = readable_texts(docs, "contexts(docs)")
        if texts or problem is None:
            self.runs.begin(Run(object(), "named", output=texts, open=False), key)
        if problem is not None:
            raise problem


def _give_up(run: Run, reason: str) -> None:
    if isinstance(run, LiveRun) and run.is_sample:
        run.recorder.monitor.skip(reason)


def as_it_stands(inputs: object) -> object:
    """Copy what a run was given so far that the app cannot change it: it may add the answer to a list of messages."""
    if is_mapping(inputs):
        return {name: _copied(value) for name, value in inputs.items()}
    return _copied(inputs)


def _copied(value: object) -> object:
    return [*value] if is_list(value) and not isinstance(value, tuple) else value


def _is_one_of_many(parent: LiveRun, inputs: object) -> bool:
    """Say whether a run is one of those of `chain.map()`, each with one of the inputs."""
    each = parent.inputs
    if not parent.is_sample or parent.parent is not None or not is_list(each):
        return False
    named_so = parent.name.startswith("RunnableEach<")
    return any(item is inputs for item in each) and (named_so or not read_messages(each))


def id_of(run: LiveRun) -> str:
    """Return a run's id as LangChain writes it."""
    return str(UUID(int=run.id)) if isinstance(run.id, int) else str(run.id)


def _about(run: LiveRun) -> dict[str, object]:
    """Return a sample's metadata: the run's name, tags and what JSON can hold of its metadata, and the app's error."""
    about: dict[str, object] = {}
    for name, value in run.metadata.items():
        if name not in _RUN_FACTS:
            with suppress(TypeError, ValueError, RecursionError):
                about[name] = json.loads(json.dumps(value, allow_nan=False, default=_id_text))
    configurable = run.configurable or {}
    who = {name: str(configurable[name]) for name in _WHO if configurable.get(name)}
    about = {**who, **about, "name": run.name, "tags": list(run.tags), "run_id": id_of(run)}
    if run.error is not None:
        about["error"] = describe(run.error, most=200)
    return about


def _id_text(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    raise TypeError
