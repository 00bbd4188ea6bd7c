"""What a preview runs an app with: a collector in the stead of a monitor, which keeps what a handler hands over."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutine
from operator import attrgetter
from typing import cast

from ragstone.adapters.guesses import Candidate, candidates, entries_in
from ragstone.adapters.preview import UNREAD, WANTED, Preview, PreviewedRun, Wording
from ragstone.adapters.runs import UNDER_WAY, Draft, Run
from ragstone.background import running_loop
from ragstone.errors import describe
from ragstone.fields.read import Forms
from ragstone.plain import is_mapping
from ragstone.sample import Sample

# What may be said of a run after it was read: how a stream ended, or that reading failed.
_ENDS = ("abandoned", "cancelled", "no_answer", "fields_failed")
# Where a field is that nobody looks for in the app's inputs or output.
_BY_APP = ("contexts(...)", "fields=")


@dataclass(slots=True, eq=False)
class Collected:
    """What came of a run. Without a sample or a reason it is a stream that is yet to be read.

    Attributes:
        run: The run.
        sample: Its sample, if it is one.
        skipped: The reason why it is none.
        read: What was read of it, whether or not it is one.
    """

    run: Run
    sample: Sample | None = None
    skipped: str | None = None
    read: Draft = field(default_factory=lambda: Draft(Sample()))


class Collector:
    """Has a monitor's methods that handlers call, and judges nothing.

    Args:
        forms: How the app's values are read.
        wording: How its users write what a preview prints.
        given: What fields= is.
        tool_name: The name of a tool that a run called.
        wants_ids: Whether the ids of sources were asked for.
    """

    def __init__(
        self,
        forms: Forms,
        wording: Wording,
        given: object = None,
        tool_name: Callable[[Run], str] = attrgetter("name"),
        *,
        wants_ids: bool = False,
    ) -> None:
        self._tool_name = tool_name
        self._wants_ids = wants_ids
        self._forms = forms
        self._wording = wording
        self._given = {str(name): str(key) for name, key in given.items()} if is_mapping(given) else {}
        self._advice: Mapping[str, str] = {}
        self._collected: list[Collected] = []
        self._reading: Collected | None = None
        self._latest: Collected | None = None
        self._problems: list[str] = []

    @contextmanager
    def reading(self, run: Run) -> Generator[Collected, None, None]:
        """What is handed over meanwhile is of this run."""
        self._reading = Collected(run)
        self._collected.append(self._reading)
        try:
            yield self._reading
        finally:
            self._reading = None

    def advise(self, advice: Mapping[str, str]) -> None:
        """Note what to do about runs that gave no sample."""
        self._advice = advice

    def submit(self, sample: Sample) -> None:
        """Keep a sample, which may be that of a stream that was read meanwhile."""
        self._latest = self._next()
        self._latest.sample = sample

    def count_fields(self, read_from: Mapping[str, str], *_: object, **__: object) -> None:
        """Keep where a sample's fields came from."""
        seen = self._reading or self._latest or self._next()
        seen.read = Draft(Sample(), read_from)

    def skip(self, reason: str, runs: int = 1, **_: object) -> None:
        """Keep why a run is no sample, or take it back."""
        if runs > 0:
            self._next(reason in _ENDS).skipped = reason
            return
        for each in [each for each in self._collected if each.skipped == reason][-1:]:
            self._collected.remove(each)

    def failed(self, _: str, error: BaseException) -> None:
        """Keep what could not be read."""
        self._problems.append(describe(error, most=300))

    def _next(self, ends_stream: bool = True) -> Collected:
        """The run that is being read, else a stream that has ended, else one of which nothing is known."""
        streams = [each for each in self._collected if each.sample is None and each.skipped is None]
        if self._reading is not None:
            return self._reading
        if not (streams and ends_stream):
            streams = [Collected(Run(None, ""))]
            self._collected += streams
        return streams[0]

    def preview(self) -> Preview:
        """What was kept."""
        runs = [self._previewed(each) for each in self._collected]
        return Preview(runs, self._wording, self._given, self._problems)

    def _previewed(self, each: Collected) -> PreviewedRun:
        run, read_from = each.run, each.read.read_from
        # Of a stream nobody has said yet how it ended.
        skipped = None if each.sample is not None else each.skipped or "abandoned"
        inputs = entries_in(run.inputs, self._forms)
        # Of an answer by itself nothing is another field.
        answers = run.output is not None and self._forms.value("response", run.output) is not None
        output: Mapping[str, object] = {} if answers else entries_in(run.output, self._forms)
        used = {*self._given.values(), *[name.removeprefix("inputs.") for name in read_from.values()]}
        said = {name: value for name, value in output.items() if name not in used}
        values: Mapping[str, object] = dict(each.sample or each.read.sample)
        readable = skipped in (None, *UNREAD)
        return PreviewedRun(
            run.name or "a run",
            each.sample,
            values,
            skipped,
            read_from,
            self._candidates(inputs, said, used, values, read_from) if readable else {},
            [name for name in said if "." not in name and name not in inputs],
            "what it returned" if run.output is None else f"the {type(run.output).__name__} that it returned",
            [*dict.fromkeys(self._tool_name(one) for one in run.walk() if one.kind == "tool")],
            "" if run.error is None else describe(run.error, most=200),
            "" if skipped is None or readable else self._advice.get(skipped, ""),
            wants_ids=self._wants_ids,
        )

    def _candidates(
        self,
        inputs: Mapping[str, object],
        said: Mapping[str, object],
        used: Collection[str],
        values: Mapping[str, object],
        read_from: Mapping[str, str],
    ) -> Mapping[str, Sequence[Candidate]]:
        """The entries that may be meant, by field."""
        asked = {name: value for name, value in inputs.items() if name not in used}
        # What the output repeats of the inputs is no answer.
        repeated = [self._forms.value("response", value) for value in inputs.values()]
        pools = {"user_input": asked, "retrieved_contexts": {**asked, **said}, "response": said}
        found: dict[str, Sequence[Candidate]] = {}
        for wanted in WANTED:
            if read_from.get(wanted) not in _BY_APP:
                others = [values[name] for name in WANTED if name != wanted and values.get(name)]
                known = repeated if wanted == "response" else others
                found[wanted] = candidates(wanted, pools[wanted], self._forms, known, values.get(wanted))
        return {name: meant for name, meant in found.items() if meant}


@contextmanager
def _under_way(collector: Collector) -> Generator[None, None, None]:
    """Have handlers hand over to a collector what runs meanwhile, and print the preview, also where the app raises."""
    token, ended = UNDER_WAY.set(collector), False
    try:
        yield
        ended = True
    finally:
        UNDER_WAY.reset(token)
        preview = collector.preview()
        if ended or preview.runs:
            print(preview)  # noqa: T201 - that is what it is for


def _as_it_is(answer: object) -> object:
    """An answer that is read as it is."""
    return answer


def run_once(
    collector: Collector, call: Callable[[], object], stream_in: Callable[[object], object] = _as_it_is
) -> Preview:
    """Call an app, read its stream to the end, and print the preview.

    Args:
        collector: What handlers hand over to.
        call: Calls the app.
        stream_in: What to read of an answer: its stream, if it has one.

    Raises:
        RuntimeError: The app is asynchronous, and an event loop runs here.
    """
    with _under_way(collector):
        answer = stream_in(_called(call))
        if isawaitable(answer) or isinstance(answer, AsyncIterator):
            if running_loop() is not None:
                if iscoroutine(coroutine := cast("object", answer)):
                    coroutine.close()
                raise RuntimeError("preview: an event loop runs here, and the app needs one: await apreview(app, ...)")
            asyncio.run(_read(cast("object", answer), stream_in))
        else:
            _pass_by(answer)
    return collector.preview()


def _called(call: Callable[[], object]) -> object:
    try:
        return call()
    except RuntimeError as error:
        if "no running event loop" in str(error):
            raise RuntimeError("preview: the app needs a running event loop: await apreview(app, ...)") from error
        raise


async def arun_once(
    collector: Collector, call: Callable[[], object], stream_in: Callable[[object], object] = _as_it_is
) -> Preview:
    """Call an app on the running event loop; otherwise as `run_once`."""
    with _under_way(collector):
        await _read(call(), stream_in)
    return collector.preview()


async def _read(answer: object, stream_in: Callable[[object], object]) -> None:
    stream = stream_in(await answer if isawaitable(answer) else answer)
    if isinstance(stream, AsyncIterator):
        async for _ in cast("AsyncIterator[object]", stream):
            pass
    else:
        _pass_by(stream)


def _pass_by(answer: object) -> None:
    """Read a stream to its end; what is none stays as it is."""
    if isinstance(answer, Iterator):
        deque(cast("Iterator[object]", answer), maxlen=0)
