"""What the events of live runs come to: samples for the monitor, and counts of the runs that gave none."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from ragstone.errors import describe
from ragstone.live.run_tree import MOST_COLLECTED, OpenSample, Run, RunTree
from ragstone.live.trace import TRACE_KEY, Trace, current_trace, own_id
from ragstone.plain import is_list, is_mapping
from ragstone.sample import Sample, Turn
from ragstone_langchain.extraction import (
    any_contexts,
    documents_passed,
    find_question,
    find_text,
    if_readable,
    readable_texts,
    state_messages,
    stated_contexts,
    to_sample,
    tool_result,
    waits_for_tools,
)
from ragstone_langchain.messages import (
    JUDGE_TAG,
    MEMORIES,
    earlier_turns,
    once_each,
    read_messages,
    text_of,
    tool_texts,
)

if TYPE_CHECKING:
    from ragstone.live import Monitor

Extract = Callable[[object, object, Sequence[str]], Sample | Mapping[str, object] | None]
"""A user's own reading of a run: its inputs, its outputs and the texts of the documents that were retrieved in it."""

Where = Callable[[str, Sequence[str], Mapping[str, object]], bool]
"""Says of a run, by its name, tags and metadata, whether it is to be a sample."""

Kind = Literal["chain", "step", "tool", "retriever", "model"]
"""What a run is. A step is a chain that only words or parses (a prompt, a parser), and never a sample."""

_CANCELLED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_ERROR_LENGTH = 200  # characters of an error's message
_RUN_FACTS = ("name", "tags", "error", "run_id")  # under these the sample's metadata says what the run was
_WHO = ("user_id", "thread_id", "session_id", "conversation_id")  # of the config's `configurable`
# By its kind, what a topmost run is counted as that is no sample, and has none inside.
ADVICE = {
    "abandoned": "the app stopped reading the stream before its end: the answer is incomplete",
    "cancelled": "the app or its user cancelled the run",
    "declined": "your extract= returned None",
    "excluded": "your where= rejected it",
    "extract_failed": "your extract= raised, or did not return a sample: see errors and the log",
    "interrupted": "the run waits for a person; it becomes a sample when it is resumed and ends",
    "never_ended": "no event came for an hour, or it is the app's main loop: exclude that with where=",
    "no_question": "return the question from extract=",
    "nothing_found": "return question, contexts and answer from extract=",
    "only_model": "a model was called outside of any chain: call monitor.submit(Sample(...)) there",
    "only_retrieval": "no answer followed the retrieval: call monitor.submit(Sample(...)) where the app answers",
    "only_step": "a prompt, a parser or a tool ran outside of any chain, without an answer",
    "where_failed": "your where= raised: see errors and the log",
}
"""What to do about runs that gave no sample, by reason."""

_ALONE = {"model": "only_model", "retriever": "only_retrieval", "step": "only_step", "tool": "only_step"}
RunId = UUID | str
"""LangChain takes a text for a run's id, too, as LangServe gives it."""

D = TypeVar("D")


def key_of(run_id: RunId) -> int | str:
    """Return a run's key: Python hashes numbers faster than ids."""
    return run_id if isinstance(run_id, str) else run_id.int


def safely(monitor: "Monitor", step: Callable[..., object], *args: object) -> None:
    """Take a step; its error is counted by the monitor and never reaches the app."""
    try:
        step(*args)
    except Exception as error:
        monitor.failed("langchain", error)


@dataclass(slots=True, eq=False)
class LiveRun(OpenSample):
    """What is known of a run that will be a sample; its inputs are None where it is streamed, until its end.

    `recorder` began it, `own_id` is the id that the app gives it, `trace` the block that it began in and `block` the
    contexts that were named there before. `history` was loaded inside of it. `last` is the last piece of a stream.
    """

    run_id: RunId = field(kw_only=True)
    recorder: "Recorder" = field(kw_only=True)
    name: str = ""
    tags: tuple[str, ...] = ()
    inputs: object = None
    interrupted: bool = False
    own_id: str | None = None
    trace: Trace | None = None
    block: list[str] = field(default_factory=list[str])
    history: tuple[Turn, ...] = ()
    configurable: Mapping[str, object] | None = None
    last: str = ""

    def begin(self, inputs: object) -> None:
        """Take what is known of a chain that begins."""
        self.enter_block(self.run_id)
        lone = inputs.get("input") if is_mapping(inputs) and len(inputs) == 1 else None
        if not isinstance(lone, str) or lone:  # a streamed chain is said to have {"input": ""} until its own are there
            self.inputs = inputs
            if self.recorder.extract is None:
                self.question = if_readable(find_question, inputs, None, lone=False)

    def enter_block(self, within: RunId | None) -> None:
        """Take the id that the app gives a sample that begins now, and the contexts that it has named for it."""
        for _, twin in _followed(within):  # another monitor has taken them for its sample of the run
            self.own_id, self.trace, self.block = twin.own_id, twin.trace, twin.block
            return
        tagged = [tag.partition(":")[2] for tag in self.tags if tag.startswith(f"{TRACE_KEY}:")]
        self.own_id = own_id({TRACE_KEY: tagged[0], **self.metadata} if tagged else self.metadata)
        self.trace = current_trace()
        if self.trace is not None:
            self.block, self.trace.contexts[:] = [*self.trace.contexts], ()


_TREES: WeakKeyDictionary[Any, RunTree[LiveRun]] = WeakKeyDictionary()


def _followed(run_id: RunId | None) -> list[tuple[Run[LiveRun], LiveRun]]:
    """Return a run as each monitor follows it that will have a sample of it, and that sample."""
    if run_id is None:
        return []
    trees = [_TREES.get(monitor) for reference in _TREES.keyrefs() if (monitor := reference()) is not None]
    runs = [run for tree in trees if tree is not None and (run := tree.get(key_of(run_id))) is not None]
    return [(run, run.root.sample) for run in runs if run.root.sample is not None]


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
        run_id = _run_in_context()
        followed = _followed(run_id)
        for _, sample in followed:
            safely(sample.recorder.monitor, sample.recorder.collect_named, run_id, docs, "contexts(docs)")
        if not followed and (trace := current_trace()) is not None:
            trace.contexts += readable_texts(docs, "contexts(docs)")[0]
    return docs


def _in_context(key: Literal["callbacks", "configurable"]) -> Any:  # noqa: ANN401 - as LangChain has it
    from langchain_core.runnables.config import var_child_runnable_config  # most of langchain-core's import time

    return (var_child_runnable_config.get() or {}).get(key)


def _run_in_context() -> RunId | None:
    """Return the run that LangChain's context names."""
    run_id = getattr(_in_context("callbacks"), "parent_run_id", None)
    return run_id if isinstance(run_id, (UUID, str)) else None


@dataclass(eq=False, repr=False)
class Recorder:
    """Follows runs from their start to their end, and hands their samples to a monitor; see `MonitorHandler`."""

    monitor: "Monitor"
    retriever_tools: frozenset[str]
    extract: Extract | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        # Handlers of one monitor share the runs that they follow, so that each run counts once.
        self.runs = _TREES.setdefault(self.monitor, RunTree[LiveRun]())
        self.monitor.advise(ADVICE)

    def __reduce__(self) -> tuple[object, ...]:  # without what is open
        return type(self), (self.monitor, self.retriever_tools, self.extract, self.where)

    def begin(self, kind: Kind, run_id: RunId, event: Mapping[str, Any], name: str = "", inputs: object = None) -> None:
        """Follow a run that starts."""
        runs, key = self.runs, key_of(run_id)
        known = runs.get(key)
        if known is not None and known.kind != "excluded":
            return  # the handler was given twice, or two of one monitor
        tags = event.get("tags") or ()
        parent = self._parent(event.get("parent_run_id"))
        within = None if parent is None or parent.root.over else parent
        sample: LiveRun | None = None
        as_what, transparent = "", False
        if JUDGE_TAG in tags:
            within = None
        elif parent is not None and not _stands_alone(parent, kind, inputs):
            as_what = "" if within is None else kind  # what starts below a sample that has ended is part of none
            _learn(parent.root.sample, inputs)
        elif kind == "chain":
            metadata = dict(event.get("metadata") or {})
            run = LiveRun(run_id=run_id, recorder=self, name=name, tags=tuple(tags), metadata=metadata)
            excluded = self._is_excluded(run)
            if excluded:
                as_what, transparent = "excluded", True
            else:
                within = None  # nor is any run below a sample where the function failed, lest it fail for each
                if parent is not None:
                    *_, top = parent.lineage()
                    top.kind = "around"
            if excluded is False:
                runs.end(key)  # where another handler of the monitor has said no
                as_what, sample = kind, run
                run.begin(inputs)
        elif kind in ("model", "retriever"):
            # The chains in it, such as one that words a query, are no samples either.
            within, as_what = None, kind if parent is None else ""
        else:
            as_what, transparent = kind, True
        for _ in runs.start(key, within, kind=as_what, sample=sample, transparent=transparent):
            self.monitor.skip("never_ended")

    def _parent(self, run_id: RunId | None) -> Run[LiveRun] | None:
        parent = None if run_id is None else self.runs.get(key_of(run_id), ended=True)
        # `RunnableWithFallbacks` names no parent; a function that LangSmith traces names one of LangSmith's.
        if parent is None and (run_id := _run_in_context()) is not None:
            parent = self.runs.get(key_of(run_id))
        return parent

    def _is_excluded(self, run: LiveRun) -> bool | None:
        try:
            return self.where is not None and not self.where(run.name, run.tags, run.metadata)
        except Exception as error:
            self.monitor.failed("langchain", error)
            self.monitor.skip("where_failed")
            return None

    def end(self, run_id: RunId, error: BaseException | None = None) -> tuple[Run[LiveRun] | None, LiveRun | None]:
        """Close a run, with its error if it failed; return it, and its sample where it is the topmost one."""
        run, sample = self.runs.end(key_of(run_id))
        if run is not None and run.parent is None and (run.kind in _ALONE or run.kind == "excluded"):
            self.monitor.skip(_ALONE.get(run.kind, run.kind))
        if run is not None and run.root.sample is not None and _is_langgraph_s("GraphInterrupt", error):
            run.root.sample.interrupted = True
        return run, sample

    def end_chain(self, run_id: RunId, outputs: object, streamed: object) -> None:
        """Close a chain that ended well; `streamed` are the inputs that came piece by piece."""
        kinds = self._open_kinds(run_id)
        run, sample = self.end(run_id)
        if sample is None:
            if run is not None and run.root.sample is not None:
                self._collect_passed(run, run.root.sample, outputs)
        elif sample.unfinished and ("model" in kinds or "model at its end" not in kinds):
            self.monitor.skip("abandoned")
        elif sample.interrupted or waits_for_tools(outputs, "thread_id" in sample.metadata):
            self.monitor.skip("interrupted")
        else:
            if sample.unfinished:  # closed at the last piece, which is the one that LangChain leaves out
                outputs = (if_readable(find_text, "response", outputs, "outputs") or "") + sample.last
            sample.leave_out_failed()
            sample.recorder.submit(sample, outputs, streamed)

    def _open_kinds(self, root: RunId) -> list[str]:
        run = self.runs.get(key_of(root))
        keys = () if run is None or run.parent is not None else (*run.root.open,)
        return [inner.kind for key in keys if (inner := self.runs.get(key)) is not None]

    def hear(self, run_id: RunId, chunk: object) -> None:
        """Note the last piece that a model says."""
        message: Any = getattr(chunk, "message", None)
        last = getattr(message, "chunk_position", None) == "last"
        if last and (run := self.runs.get(key_of(run_id))) is not None and run.root.sample is not None:
            run.kind, run.root.sample.last = "model at its end", text_of(message)

    def _collect_passed(self, run: Run[LiveRun], sample: LiveRun, outputs: object) -> None:
        if any(texts and not searched.in_vain for searched, texts in sample.items("search")):
            return
        texts = documents_passed(outputs)
        if texts and not _in_retriever(run):
            self.runs.collect(run, "step", texts)

    def fail_chain(self, run_id: RunId, error: BaseException, streamed: object) -> None:
        """Close a chain that failed, was cancelled or interrupted."""
        run, sample = self.end(run_id, error)
        steers = _is_langgraph_s("GraphBubbleUp", error)
        if sample is None:
            if run is not None:
                run.failed = not steers and not isinstance(error, GeneratorExit)
        elif steers or isinstance(error, _CANCELLED):
            self.monitor.skip("interrupted" if steers else "cancelled")
        else:
            sample.recorder.submit(sample, None, streamed, error)

    def submit(
        self, run: LiveRun, outputs: object, streamed: object = None, error: BaseException | None = None
    ) -> None:
        """Hand over the sample of a run that has ended, or failed with an error; count it where it is none."""
        if streamed is not None:
            run.inputs, run.question = streamed, None
        name, about = run.own_id or str(run.run_id), _about(run, error)
        if self.extract is None:
            question = if_readable(find_question, run.inputs, outputs) if run.question is None else run.question
            answer = None if error is not None else if_readable(find_text, "response", outputs, "outputs")
            texts = _contexts(run, run.inputs, outputs, self.retriever_tools)
            if error is None and question is None and answer is None:
                self.monitor.skip("no_question" if texts else "nothing_found")
                return
            history = earlier_turns(run.inputs, question, asked=True) or earlier_turns(outputs, question) or run.history
            fields = {"user_input": question, "retrieved_contexts": texts, "response": answer, "history": history}
            self.monitor.submit(Sample.model_validate({**fields, "id": name, "metadata": about}))
            return
        try:
            made = to_sample(self.extract(run.inputs, outputs, tuple(_contexts(run, None, None, ()))), "extract")
        except Exception:
            self.monitor.skip("extract_failed")
            raise
        if made is None:
            self.monitor.skip("declined")
        else:
            own = {"id": made.id or name, "metadata": {**about, **made.metadata}}
            self.monitor.submit(made.model_copy(update=own))

    def end_retriever(self, run_id: RunId, documents: Sequence[object]) -> None:
        """Close a retriever; what it returned counts if it is inside of no other one."""
        run, _ = self.end(run_id)
        if run is not None and run.root.sample is not None and not _in_retriever(run):
            texts, problem = readable_texts(documents, "a retriever's result")
            self._collect_search(run, texts)
            if problem is not None:
                raise problem

    def end_tool(self, run_id: RunId, output: object, name: object) -> None:
        """Close a tool; the Documents that it returned count instead of what retrievers inside of it found."""
        run, _ = self.end(run_id)
        sample = run.root.sample if run is not None else None
        if run is None or sample is None or _in_retriever(run):
            return
        documents, text = tool_result(output)
        tools = sample.recorder.retriever_tools
        if documents:
            self.runs.discard(run, "search")
            self._collect_search(run, documents)
        elif text is not None and name in tools and not any(texts for _, texts in sample.items("search", run)):
            self._collect_search(run, [text])

    def _collect_search(self, run: Run[LiveRun], texts: Sequence[str]) -> None:
        if self.runs.collect(run, "search", texts) > MOST_COLLECTED:  # it is the app's main loop, and no answer
            _, sample = self.runs.end(run.root.key)
            if sample is not None:
                self.monitor.skip("never_ended")

    def collect_named(self, run_id: RunId, data: object, where: str) -> None:
        """Keep what can be read of contexts that the app names; raise `Unreadable` if that is not all."""
        run = self.runs.get(key_of(run_id), ended=True)
        if run is None or run.root.sample is None:
            return
        texts, problem = readable_texts(data, where)
        if texts or problem is None:
            self.runs.collect(run, "named", texts)
        if problem is not None:
            raise problem


def _stands_alone(parent: Run[LiveRun], kind: Kind, inputs: object) -> bool:
    """Say whether a run is no part of the sample around it; as `chain.map()` is around one for each input."""
    root, around = parent.root, parent.root.sample
    if around is not None and kind == "chain" and parent.parent is None:
        each = around.inputs
        named_so = around.name.startswith("RunnableEach<")
        if is_list(each) and any(item is inputs for item in each) and (named_so or not read_messages(each)):
            if around.trace is not None:  # the first of them takes the block's id
                around.trace.samples -= 1
                around.trace.contexts += around.block
            root.transparent, root.sample = True, None
            parent.kind = "excluded"
    return root.transparent


def _learn(run: LiveRun | None, inputs: object) -> None:
    """Take from a run inside what the topmost one was not told: the memory that was loaded, and who asks."""
    if run is None:
        return
    if not run.history and (is_list(inputs) or (is_mapping(inputs) and any(map(inputs.__contains__, MEMORIES)))):
        run.history = earlier_turns(inputs, run.question)
    if run.configurable is None:
        run.configurable = _in_context("configurable")


def _contexts(run: LiveRun, inputs: object, outputs: object, tools: Collection[str]) -> Sequence[str]:
    """Return the contexts of a run: the first of the places, named in docs/langchain.md, that holds any."""
    named = [texts for _, texts in run.items("named")]
    if not named and (block := [*run.block, *(run.trace.contexts if run.trace is not None else ())]):
        named = [block]
    if named:
        return once_each(text for texts in named for text in texts)
    if (stated := stated_contexts(outputs)) is not None:
        return stated
    searches = sorted(run.items("search"), key=lambda item: item[0].order)
    # An artifact in this turn's messages may also be of a run before, which an interrupt has stopped.
    artifacts = if_readable(tool_texts, state_messages(outputs)) or ()
    passed: list[str] = []
    for _, texts in run.items("step"):  # one that passes on some of those before has chosen
        passed = once_each(texts if set(texts) <= set(passed) else [*passed, *texts])
    return (
        once_each([*(text for _, texts in searches for text in texts), *artifacts])
        or passed
        or any_contexts(outputs, tools)
        or any_contexts(inputs, tools)
    )


def _about(run: LiveRun, error: BaseException | None) -> dict[str, object]:
    """Return a sample's metadata: the run's name, tags and what JSON can hold of its metadata, and the app's error."""
    about: dict[str, object] = {}
    for name, value in run.metadata.items():
        if name not in _RUN_FACTS:
            with suppress(TypeError, ValueError, RecursionError):
                about[name] = json.loads(json.dumps(value, allow_nan=False, default=_id_text))
    who = {name: str(run.configurable[name]) for name in _WHO if run.configurable and run.configurable.get(name)}
    about = {**who, **about, "name": run.name, "tags": list(run.tags), "run_id": str(run.run_id)}
    if error is not None:
        about["error"] = describe(error, most=_ERROR_LENGTH)
    return about


def _id_text(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    raise TypeError


def _in_retriever(run: Run[LiveRun]) -> bool:
    return any(above.kind == "retriever" for above in run.lineage() if above is not run)


def _is_langgraph_s(name: str, error: BaseException | None) -> bool:
    """Say whether an error is one of those with which LangGraph steers graphs, without importing it."""
    return any(each.__name__ == name and each.__module__.startswith("langgraph.") for each in type(error).__mro__)
