"""Tracing suppression: the app sees nothing of what a judge asks its model.

LlamaIndex reports a model's call in three ways. Its instrumentation calls every handler, so events and spans of a
judge carry a tag and hang from none of the app's spans. OpenTelemetry's instrumentations heed a key in the context.
Legacy callbacks come from the model object's own manager, so a judge calls a copy of the object that has a silent one.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags
from llama_index_instrumentation.span import active_span_id

JUDGE_TAG = "ragstone:judge"
"""Stands in the tags of every event and span of a judge, so that handlers can tell it from the app's."""


@contextmanager
def suppress_tracing(*, trace: bool = False) -> Generator[None, None, None]:
    """Hide the calls that are made in here from the app, whose own tags stay.

    `trace=True` only tags the calls: OpenTelemetry records them, within the app's spans.
    """
    with instrument_tags({**active_instrument_tags.get(), JUDGE_TAG: True}):  # it replaces what was there
        if trace:
            yield
            return
        span = active_span_id.set(None)
        try:
            with _without_telemetry():
                yield
        finally:
            active_span_id.reset(span)


@contextmanager
def _without_telemetry() -> Generator[None, None, None]:
    telemetry: Any = sys.modules.get("opentelemetry.context")  # where nobody has loaded it, nobody traces
    if telemetry is None:
        yield
        return
    context = telemetry.set_value("suppress_instrumentation", True)  # older instrumentations look for the bare word
    key = getattr(telemetry, "_SUPPRESS_INSTRUMENTATION_KEY", None)
    if isinstance(key, str):
        context = telemetry.set_value(key, True, context)
    token = telemetry.attach(context)
    try:
        yield
    finally:
        telemetry.detach(token)


class SilentCallbacks(CallbackManager):
    """A manager that has no handlers and keeps nothing.

    `CallbackManager([])` would take the global handler and those of `Settings`, and remember every event.
    """

    def __init__(self) -> None:
        self.handlers = []
        self._trace_map = {}

    def on_event_start(self, *args: Any, **kwargs: Any) -> str:  # noqa: ANN401, ARG002 - as CallbackManager has it
        """Tell nobody."""
        return ""

    def on_event_end(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Tell nobody."""

    start_trace = end_trace = on_event_end
