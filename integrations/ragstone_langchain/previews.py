"""`preview`: one run of an app, with each field of its sample, where it came from, and the line to paste."""

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks.base import BaseCallbackHandler

from ragstone.adapters.collector import Collector, arun_once, run_once
from ragstone.adapters.preview import UNREAD, Preview, Wording
from ragstone.adapters.runs import Fields
from ragstone_langchain.forms import FORMS
from ragstone_langchain.handler import MonitorHandler
from ragstone_langchain.inside import Inside
from ragstone_langchain.read import Ended, ReadingOptions, draft_of_run, fields_of_run
from ragstone_langchain.record import RunRecorder, TopRun

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable, RunnableConfig

    from ragstone.adapters.fields_by_user import FoundFields
    from ragstone.live import Monitor

    RunnableOrFunction = Runnable[Any, Any] | Callable[[Any], object]

_WORDING = Wording(
    handler="MonitorHandler(monitor, fields=FIELDS)",
    nothing="No chain, graph or agent ran, but for what ran in a thread of the app's own. "
    "Where the app answers, call: monitor.submit(Sample(...))",
    tools="MonitorHandler(monitor, retriever_tools=TOOLS)",
    several="Each outermost run is a sample of its own. To have one, run the function as a chain: RunnableLambda(app)",
)
_HANDLER: ContextVar[BaseCallbackHandler | None] = ContextVar("ragstone_preview_handler", default=None)


class _RunCollector(RunRecorder):
    """Hands runs to a collector, each with what it is read into."""

    def submit(self, run: TopRun) -> None:
        collector = cast("Collector", self.monitor)
        with collector.reading(run) as collected:
            super().submit(run)
            if collected.skipped in UNREAD and not callable(self.reading.fields):
                ended = Ended(run, Inside().note(run), self.reading)
                found = fields_of_run(ended)
                collected.read = draft_of_run(cast("FoundFields", found), ended)


def preview(
    app: "RunnableOrFunction",
    input: object,  # noqa: A002 - as LangChain calls it
    config: "RunnableConfig | None" = None,
    *,
    fields: Fields[object] | None = None,
    retriever_tools: Collection[str] = (),
    id_key: str | None = None,
) -> Preview:
    """Run an app once and print the sample that a monitor would get of it, before you monitor it.

    Each field stands with where it came from and how it begins. Behind "?" stands a guess at a missing field, by name
    or kind. Only a preview guesses. Below are the lines to paste. No judge is
    asked, and no monitor of this process counts the run. A checkpointer keeps it.

    Args:
        app: A chain, a graph or an agent; or a function, plain or async, that runs some. A stream that it returns is
            read to its end.
        input: The app's input.
        config: As of `app.invoke`; a function takes none.
        fields: As of `MonitorHandler`.
        retriever_tools: As of `MonitorHandler`.
        id_key: As of `MonitorHandler`; the ids of sources are then a row of the table.

    Returns:
        What was printed. Its `fields` can be passed on, and a test can look at `sample`, `skipped`, `read_from` and
        `missing`.

    Raises:
        TypeError: `app` is neither, or a config was passed with a function.
        ValueError: As of `MonitorHandler`.
        RuntimeError: A function is async and an event loop runs here: `await apreview(app, input)`.
        Exception: The app's own error, below the fields that were read before it.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> chain = RunnableLambda(lambda asked: {**asked, "fund": ["Jane wrote Emma."], "antwort": "Jane did."})
        >>> seen = preview(chain, {"question": "Who wrote Emma?"})
        RunnableLambda: no sample (no_answer)
          user_input          <-  inputs.question  Who wrote Emma?
          retrieved_contexts  ?   fund             1 text: Jane wrote Emma.
          response            ?   antwort          Jane did.
          not read: fund, antwort
        If what stands behind ? is right, paste:
            MonitorHandler(monitor, fields={"retrieved_contexts": "fund", "response": "antwort"})
        >>> seen.fields
        {'retrieved_contexts': 'fund', 'response': 'antwort'}
    """
    call = _call(app, "invoke", input, config)
    with _collecting(fields, retriever_tools, id_key) as collector:
        return run_once(collector, call)


async def apreview(
    app: "RunnableOrFunction",
    input: object,  # noqa: A002
    config: "RunnableConfig | None" = None,
    *,
    fields: Fields[object] | None = None,
    retriever_tools: Collection[str] = (),
    id_key: str | None = None,
) -> Preview:
    """Run an app once on the running event loop, by `ainvoke`; otherwise as `preview`."""
    call = _call(app, "ainvoke", input, config)
    with _collecting(fields, retriever_tools, id_key) as collector:
        return await arun_once(collector, call)


def _call(app: object, method: str, asked: object, config: object) -> Callable[[], object]:
    """The call of an app, by one of its methods if it is no function."""
    method_of_app = getattr(app, method, None)
    if method_of_app is not None:
        return partial(method_of_app, asked, config)
    if not callable(app):
        raise TypeError(f"app: is {type(app).__name__}; pass a chain, a graph, an agent or a function")
    if config is not None:
        raise TypeError("config: the app is a function, which takes none")
    return partial(app, asked)


@contextmanager
def _collecting(
    fields: Fields[object] | None, retriever_tools: Collection[str], id_key: str | None
) -> Generator[Collector, None, None]:
    """A collector, to which LangChain hands over what runs in this context, whatever the config is."""
    _register()
    collector = Collector(FORMS, _WORDING, fields, wants_ids=id_key is not None)
    monitor = cast("Monitor", collector)
    handler = MonitorHandler(monitor)
    handler.recorder = _RunCollector(monitor, ReadingOptions(fields, retriever_tools, id_key))
    token = _HANDLER.set(handler)
    try:
        yield collector
    finally:
        _HANDLER.reset(token)


@cache
def _register() -> None:
    from langchain_core.tracers.context import register_configure_hook

    register_configure_hook(_HANDLER, inheritable=True)
