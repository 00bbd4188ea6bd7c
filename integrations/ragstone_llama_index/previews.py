"""`preview`: one run of an app, with each field of its sample, where it came from, and the line to paste."""

from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import StartEvent, Workflow

from ragstone.adapters.collector import Collector, arun_once, run_once
from ragstone.adapters.preview import UNREAD, Preview, Wording
from ragstone.adapters.runs import UNDER_WAY, Draft, Run
from ragstone_llama_index.asking import App, ask, check_app
from ragstone_llama_index.forms import FORMS
from ragstone_llama_index.handler import Live
from ragstone_llama_index.read import Mode, NamedFields, Reading, read_run

if TYPE_CHECKING:
    from ragstone.live import Monitor

AppInput = str | Mapping[str, object] | StartEvent
"""What an app is asked: a question, or what starts a workflow."""

_WORDING = Wording(
    handler="instrument(monitor, fields=FIELDS)",
    nothing="No engine, agent or workflow ran, but for what ran in a thread of the app's own. "
    "Where the app answers, call: monitor.submit(Sample(...))",
    tools="instrument(monitor, context_tools=TOOLS)",
    several="Each outermost run is a sample of its own. To have one, let a workflow or a CustomQueryEngine run them.",
)


class _CallCollector(Live):
    """Hands the runs of a preview to a collector, each with what it is read into."""

    def begins(self, run: Run, instance: object, tags: Mapping[str, object]) -> bool:
        return UNDER_WAY.get() is self.monitor and super().begins(run, instance, tags)

    def ended(self, run: Run) -> None:
        if not run.kind:
            return
        with cast("Collector", self.monitor).reading(run) as collected:
            super().ended(run)
            if collected.skipped in UNREAD and not callable(self.reading.fields):
                collected.read = cast("Draft", read_run(run, self.reading))


def preview(
    app: App,
    input: AppInput,  # noqa: A002 - the same word in both packages
    *,
    fields: NamedFields | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
    context_tools: Collection[str] = (),
    id_key: str | None = None,
) -> Preview:
    """Run an app once and print the sample that a monitor would get of it, before you score it live.

    Each field stands with where it came from and how it begins. Behind "?" stands a guess at a missing field, by name
    or kind. Only a preview guesses. Below are the lines to paste. No judge is
    asked, and no monitor of this process counts the run. A chat engine remembers it.

    Args:
        app: A query engine; a chat engine; an agent or another workflow, which gets an event loop of its own; or a
            function, plain or async, that runs some. A response that streams is read to its end.
        input: What to ask. For a workflow also what starts it: an event, or a mapping of the arguments of `run`; a
            text stands under the first usual name of its start event, else under `query`.
        fields: As of `instrument`.
        metadata_mode: As of `instrument`.
        context_tools: As of `instrument`.
        id_key: As of `instrument`; the ids of sources are then a row of the table.

    Returns:
        What was printed. Its `fields` can be passed on, and a test can look at `sample`, `skipped`, `read_from` and
        `missing`.

    Raises:
        TypeError: `app` is no app.
        ValueError: As of `instrument`.
        RuntimeError: The app is asynchronous, and an event loop runs here: `await apreview(app, input)`.
        Exception: The app's own error, below the fields that were read before it.

    Example:
        >>> from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
        >>> class Guide(Workflow):
        ...     @step
        ...     async def answer(self, event: StartEvent) -> StopEvent:
        ...         return StopEvent(result={"belege": ["Jane wrote Emma."], "antwort": "Jane did."})
        >>> seen = preview(Guide(), "Who wrote Emma?")
        Guide.run: no sample (no_answer)
          user_input          <-  inputs.query  Who wrote Emma?
          retrieved_contexts  ?   belege        1 text: Jane wrote Emma.
          response            ?   antwort       Jane did.
          not read: belege, antwort
        If what stands behind ? is right, paste:
            instrument(monitor, fields={"retrieved_contexts": "belege", "response": "antwort"})
        >>> seen.fields
        {'retrieved_contexts': 'belege', 'response': 'antwort'}
    """
    reading = _checked(app, fields, metadata_mode, context_tools, id_key)

    async def answer() -> object:
        given = ask(app, input, reading, awaited=True)
        return await given if isawaitable(given) else given

    with _installed(reading) as collector:
        call = answer if isinstance(app, Workflow) else partial(ask, app, input, reading, awaited=False)
        return run_once(collector, call, _stream_in)


async def apreview(
    app: App,
    input: AppInput,  # noqa: A002
    *,
    fields: NamedFields | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
    context_tools: Collection[str] = (),
    id_key: str | None = None,
) -> Preview:
    """Run an app once on the running event loop; otherwise as `preview`."""
    reading = _checked(app, fields, metadata_mode, context_tools, id_key)
    with _installed(reading) as collector:
        return await arun_once(collector, partial(ask, app, input, reading, awaited=True), _stream_in)


def _checked(
    app: object, fields: NamedFields | None, metadata_mode: Mode, context_tools: Collection[str], id_key: str | None
) -> Reading:
    check_app("app", app)
    return Reading.of(metadata_mode, context_tools, fields, id_key)


@contextmanager
def _installed(reading: Reading) -> Generator[Collector, None, None]:
    """A collector, to which LlamaIndex' calls are handed over meanwhile."""
    collector = Collector(FORMS, _WORDING, reading.fields, _tool_name, wants_ids=reading.id_key is not None)
    recorder = _CallCollector(cast("Monitor", collector), reading, None)
    recorder.install()
    try:
        yield collector
    finally:
        recorder.remove()


def _tool_name(run: Run) -> str:
    return str(getattr(run.output, "tool_name", run.name))


def _stream_in(answer: object) -> object:
    """The stream of a response; anything else as it is."""
    if isinstance(answer, StreamingAgentChatResponse):
        return answer.response_gen if answer.achat_stream is None else answer.async_response_gen()
    return answer.response_gen if isinstance(answer, StreamingResponse | AsyncStreamingResponse) else answer
