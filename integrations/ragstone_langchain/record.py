"""What LangChain's events come to: a tree of runs for each topmost one, read into a sample when that has ended."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from uuid import UUID
from weakref import WeakKeyDictionary

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.fields_by_user import attempt
from ragstone.adapters.narrowing import submit
from ragstone.adapters.open_runs import ADVICE_FOR_ALL, OpenRuns
from ragstone.adapters.runs import PERSONAL, UNDER_WAY, Draft, Run, Skipped, Unreadable
from ragstone.adapters.shared_model import JUDGE_TAG
from ragstone.errors import describe
from ragstone.live.trace import TRACE_KEY, current_trace, own_id
from ragstone.plain import is_mapping, to_plain
from ragstone_langchain.forms import contexts_of
from ragstone_langchain.inside import Inside, RunKind
from ragstone_langchain.messages import prompt_of, said_by
from ragstone_langchain.read import Ended, ReadingOptions, holds_memory, sample_of_run
from ragstone_langchain.searches import FINDING, found_by

if TYPE_CHECKING:
    from ragstone.live import Monitor

RunFilter = Callable[[str, Sequence[str], Mapping[str, object]], bool]
"""Says of a run, by its name, tags and metadata, whether it is to be a sample."""
RunId = UUID | str
"""LangChain takes a text for a run's id, too, as LangServe gives it."""
D = TypeVar("D")

ADVICE = ADVICE_FOR_ALL | {
    "interrupted": "the run waits for a person; it becomes a sample when it is resumed and ends",
    "never_ended": "no event came for an hour, or 10,000 other runs were open",
    "no_answer": 'Name it: MonitorHandler(monitor, fields={"response": "NAME"})',
    "no_contexts": "Name them by contexts(...) where they are found, or "
    'MonitorHandler(monitor, fields={"retrieved_contexts": "NAME"})',
    "no_question": 'Name it: MonitorHandler(monitor, fields={"user_input": "NAME"})',
    "nothing_found": "return question, contexts and answer from fields=",
    "only_model": "a model was called outside of any chain: call monitor.submit(Sample(...)) there",
    "only_step": "a prompt, a parser or a tool ran outside of any chain, without an answer",
    "too_large": "10,000 runs or 10,000,000 characters in one: of a main loop, pass the handler to the chains inside",
}
"""Advice on runs that gave no sample, by reason."""

# The run of `chain.map()`: each run inside of it is one of the app's.
_MANY = "RunnableEach<"
_ALONE = {"model": "only_model", "retriever": "only_retrieval", "step": "only_step", "tool": "only_step"}
# Under these names a sample's metadata says what the run was.
_RUN_FACTS = ("name", "tags", "error", "run_id")
# How many runs wait for a person, and for how many seconds.
_MOST_WAITING, _LONGEST_WAIT = 1_000, 3_600.0
# After these a thread is resumed: a breakpoint leaves no answer.
_WAITS = ("interrupted", "no_answer")


def safely(monitor: "Monitor", step: Callable[..., object], *args: object) -> None:
    """Call a function of the recorder; its error is counted by the monitor and never reaches the app."""
    try:
        step(*args)
    except Exception as error:
        monitor.failed("langchain", error)


@dataclass(slots=True, eq=False, kw_only=True)
class TopRun(Run):
    """A topmost run, and what its recorder knows of it.

    Attributes:
        recorder: What began it.
        skipped: Why it is no sample; None: it is one, "": it is not counted.
        own_id: The id that the app gives the sample.
    """

    recorder: "RunRecorder"
    tags: Sequence[str] = ()
    skipped: str | None = None
    own_id: str | None = None
    configurable: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run was asked and has found that waits for a person, since then. It names no monitor, which may go."""

    since: float
    inputs: object
    inside: Inside


# Handlers of one monitor share the runs that they follow, so that each counts once, and those that wait.
_OPEN: WeakKeyDictionary[Any, OpenRuns[TopRun]] = WeakKeyDictionary()
_WAITING: WeakKeyDictionary[Any, OrderedDict[str, Waiting]] = WeakKeyDictionary()


def _followed(key: Hashable) -> list[TopRun]:
    """Return the samples that a run is part of, one for each monitor."""
    tops = [runs.top_of(key) for runs in list(_OPEN.values())]
    return [top for top in tops if top is not None and top.skipped is None]


def _own_id(run: TopRun) -> str | None:
    """Return the id that the app gives a sample that begins now, which has one id in all monitors."""
    # One of a block is numbered.
    twins = () if current_trace() is None else _followed(run.id)
    for twin in twins:
        return twin.own_id
    metadata = run.metadata
    for tag in run.tags:
        if tag.startswith(f"{TRACE_KEY}:"):
            metadata = {TRACE_KEY: tag.partition(":")[2], **metadata}
    return own_id(metadata)


def contexts(docs: D) -> D:
    """Name the passages that the app has retrieved, as contexts of the current run's sample.

        docs = contexts(vector_store.similarity_search(question))

    Of the sample these are the contexts then, whatever else was retrieved; several calls add up. Outside of any run
    nothing happens.

    Args:
        docs: Documents, with scores or without, or texts: one, or a list of them.

    Returns:
        `docs` itself. It never raises; `monitor.stats().errors` counts unreadable values.

    Example:
        >>> contexts(["Emma is a novel by Jane Austen."])
        ['Emma is a novel by Jane Austen.']
    """
    with suppress(Exception):
        key = _run_in_context()
        for sample in _followed(key):
            safely(sample.recorder.monitor, sample.recorder.collect_named, key, docs)
    return docs


def _in_context(key: Literal["callbacks", "configurable"]) -> Any:  # noqa: ANN401 - as LangChain has it
    # Most of langchain-core's import time goes here.
    from langchain_core.runnables.config import var_child_runnable_config

    return (var_child_runnable_config.get() or {}).get(key)


def _run_in_context() -> Hashable:
    """Return the run that LangChain's context names."""
    parent_run_id = getattr(_in_context("callbacks"), "parent_run_id", None)
    key: Hashable = getattr(parent_run_id, "int", parent_run_id)
    return key


@dataclass(eq=False, repr=False)
class RunRecorder:
    """Follows runs from their start to their end, and hands their samples to a monitor; see `MonitorHandler`."""

    monitor: "Monitor"
    reading: ReadingOptions
    where: RunFilter | None = None

    def __post_init__(self) -> None:
        self.runs = _OPEN.setdefault(self.monitor, OpenRuns(_give_up))
        self.waiting = _WAITING.setdefault(self.monitor, OrderedDict())
        self.monitor.advise(ADVICE)

    # A copy has none of the open runs.
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.monitor, self.reading, self.where)

    def begin(
        self, kind: RunKind, run_id: RunId, event: Mapping[str, Any], serialized: object = None, inputs: object = None
    ) -> None:
        """Follow a run that starts."""
        if JUDGE_TAG in (event.get("tags") or ()) or UNDER_WAY.get() not in (None, self.monitor):
            return
        # Python hashes numbers faster than ids.
        key, parent_key = getattr(run_id, "int", run_id), event.get("parent_run_id")
        parent, top = self.runs.with_top(getattr(parent_key, "int", parent_key))
        if parent is None:
            # `RunnableWithFallbacks` names no parent; a function that LangSmith traces names one of LangSmith's.
            parent, top = self.runs.with_top(_run_in_context())
        name = str(event.get("name") or (serialized.get("name") if is_mapping(serialized) else None) or "")
        if parent is None or top is None or top.kind == "tool" or top.name.startswith(_MANY):
            if top is not None and kind == "chain":
                # The chain inside is counted instead.
                top.skipped = ""
            self._begin_topmost(key, kind, name, event, inputs, None if top else parent_key)
            return
        if top.configurable is None:
            top.configurable = _in_context("configurable")
        given = as_it_stands(inputs) if kind != "model" and holds_memory(inputs) else None
        if self.runs.begin(Run(key, kind, name, given), parent.id) and kind == "model" and top.skipped is None:
            self.runs.note_call(key, ModelCall(prompt_of(inputs)))

    def _begin_topmost(
        self,
        key: Hashable,
        kind: RunKind,
        name: str,
        event: Mapping[str, Any],
        inputs: object,
        below: RunId | None,
    ) -> None:
        known = self.runs.get(key)
        if isinstance(known, TopRun) and known.skipped == "excluded":
            # Another handler of the monitor has rejected the run.
            self.runs.end(key)
        elif known is not None:
            # The handler was given twice, or there are two of one monitor.
            return
        metadata, tags = dict(event.get("metadata") or {}), event.get("tags") or ()
        run = TopRun(id=key, kind=kind, name=name, metadata=metadata, recorder=self, tags=tags)
        if kind != "chain" or name.startswith(_MANY):
            run.skipped = _ALONE.get(kind, "") if event.get("parent_run_id") is None else ""
        else:
            try:
                run.skipped = None if self.where is None or self.where(name, tags, metadata) else "excluded"
            except Exception as error:
                self.monitor.failed("langchain", error)
                run.skipped = "where_failed"
        if run.skipped is None:
            # A streamed chain is said to have {"input": ""} until its own are there.
            run.inputs = None if is_mapping(inputs) and inputs == {"input": ""} else as_it_stands(inputs)
            run.own_id = _own_id(run)
        self.runs.begin(run, getattr(below, "int", below))

    def end(self, run_id: RunId, streamed: object, output: object, error: BaseException | None = None) -> None:
        """Close a run, with its error if it failed; hand over its sample where it is the topmost one.

        `streamed` are the inputs of a topmost run that came piece by piece.
        """
        key = getattr(run_id, "int", run_id)
        run, top = self.runs.with_top(key)
        if run is None or top is None:
            return
        result = output
        if run is top:
            run.inputs = run.inputs if streamed is None else streamed
        elif error is None:
            finds = top.skipped is None and run.kind in FINDING
            reading = top.recorder.reading
            output = found_by(run, output, reading.retriever_tools, reading.id_key) if finds else None
        if self.runs.end(key, output, error) is top:
            if top.skipped is None:
                top.recorder.submit(top)
            elif top.skipped:
                self.monitor.skip(top.skipped)
        elif run.call is not None and error is None:
            self.runs.note_call(key, ModelCall(run.call.prompt, said_by(result)))
        if isinstance(output, Unreadable):
            raise output

    def submit(self, run: TopRun) -> None:
        """Hand over the sample of a run that has ended, or failed with an error; count it where it is none."""
        thread = str(run.metadata.get("thread_id") or (run.configurable or {}).get("thread_id") or "")
        inside, before = Inside().note(run), self.waiting.pop(thread, None)
        if before is not None and not _resumes(run, before):
            before = None
        elif before is not None:
            # It has not been told its question again.
            run.inputs = before.inputs
            inside.go_on(before.inside)
        about = _about(run)
        try:
            own = {"id": run.own_id or about["run_id"], "metadata": about}
            read = sample_of_run(Ended(run, inside, self.reading), own)
        except Unreadable:
            self.monitor.skip("fields_failed")
            raise
        if isinstance(read, Skipped) and read.reason in _WAITS:
            # Prompts are not kept so long.
            inside.calls.clear()
            before = Waiting(time.monotonic(), run.inputs, inside)
        elif isinstance(read, Draft) and run.error is None:
            before = None
        if thread and before is not None:
            self.waiting[thread] = before
            if len(self.waiting) > _MOST_WAITING:
                self.waiting.popitem(last=False)
        if isinstance(read, Skipped):
            self.monitor.skip(read.reason, names=read.names, likely=read.likely)
        else:
            submit(self.monitor, read)

    def collect_named(self, key: Hashable, docs: object) -> None:
        """Keep the texts of contexts that the app names; raise `Unreadable` where they are none."""
        texts = attempt(contexts_of, docs, "contexts(docs)")
        self.runs.begin(Run(object(), "named", output=texts, open=False), key)
        if isinstance(texts, Unreadable):
            raise texts


def _give_up(run: TopRun, reason: str) -> None:
    if run.skipped is None:
        run.recorder.monitor.skip(reason)


def _resumes(run: Run, before: Waiting) -> bool:
    """Whether a run goes on where another one of its thread waits."""
    in_time = before.since > time.monotonic() - _LONGEST_WAIT
    return in_time and (run.inputs is None or type(run.inputs).__name__ == "Command")


def as_it_stands(inputs: object) -> object:
    """Copy what a run was given so far that the app cannot change it: it may add the answer to a list of messages."""
    if isinstance(inputs, list):
        return [*cast("list[object]", inputs)]
    return {name: as_it_stands(value) for name, value in inputs.items()} if is_mapping(inputs) else inputs


def _about(run: TopRun) -> dict[str, object]:
    """Return a sample's metadata: the run's name, tags and metadata, as JSON has it, and the app's error."""
    # LangChain writes an id so.
    run_id = str(UUID(int=run.id)) if isinstance(run.id, int) else str(run.id)
    configurable = run.configurable or {}
    who = {name: str(configurable[name]) for name in PERSONAL if configurable.get(name)}
    kept = {name: value for name, value in run.metadata.items() if name not in _RUN_FACTS}
    about: dict[str, object] = {**who, **kept, "name": run.name, "tags": run.tags, "run_id": run_id}
    if run.error is not None:
        about["error"] = describe(run.error, most=200)
    value: Any = to_plain(about)
    plain: dict[str, object] = value
    return plain
