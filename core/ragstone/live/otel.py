"""Outcomes on the app's traces: as OpenTelemetry events and a histogram."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ragstone._version import __version__
from ragstone.live.sink import Sink
from ragstone.outcome import Score
from ragstone.results.clean import clean_real, clean_text

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider

    from ragstone.live.alarms import Alarm
    from ragstone.results.record import Record

# Names of OpenTelemetry's conventions for generative AI. They are still in development
# (github.com/open-telemetry/semantic-conventions-genai, read in November 2026), and the package that holds them in
# Python pins the API's version, so they are written down here.
# Of the run; the conventional names where there are any.
FACTS = {
    "run_id": "ragstone.run.id", "run_name": "ragstone.run.name", "tags": "ragstone.run.tags",
    "user_id": "user.id", "thread_id": "gen_ai.conversation.id",
}  # fmt: skip

_SCOPE = "ragstone"
# The default ones go up to 10,000.
_BOUNDARIES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class OpenTelemetrySink(Sink):
    """Sends each outcome as an event, linked to the span that its sample was submitted in, and scores to a histogram.

    The event is `gen_ai.evaluation.result`, a log record with the metric's name, value, passed or failed, explanation,
    or `error.type` where there is no score; the histogram is `gen_ai.evaluation.score`. A record counts as written
    once the app's OpenTelemetry has accepted it; its exporters deliver it.

    Args:
        logger_provider: Where the events go; by default the app's global one.
        meter_provider: Where the histogram goes; by default the app's global one.

    Attributes:
        name: "opentelemetry".

    Raises:
        ImportError: opentelemetry-api is not installed.

    Example:
        >>> from ragstone import Score
        >>> from ragstone.live import Record
        >>> score = Score(metric="demo", value=0.5, reason="1 of 2.", version="1")
        >>> sink = OpenTelemetrySink()
        >>> sink.write([Record("a", score, judge="j", scored_at=1.5)])
        >>> from contextvars import Context
        >>> Context().run(sink.origin) is None  # with no current span there is nothing to note
        True
    """

    name = "opentelemetry"

    def __init__(
        self, logger_provider: "LoggerProvider | None" = None, meter_provider: "MeterProvider | None" = None
    ) -> None:
        try:
            from opentelemetry._logs import get_logger
            from opentelemetry.metrics import get_meter
        except ImportError as error:
            needs = 'OpenTelemetrySink needs opentelemetry-api 1.37 or newer: pip install "ragstone[otel]"'
            raise ImportError(needs, name="opentelemetry") from error

        self._own_providers = logger_provider is not None or meter_provider is not None
        # The global ones need not be set up yet: what these return waits for them.
        self._logger = get_logger(_SCOPE, __version__, logger_provider=logger_provider)
        self._histogram = get_meter(_SCOPE, __version__, meter_provider).create_histogram(
            "gen_ai.evaluation.score",
            unit="1",
            description="Scores of ragstone's metrics.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )

    def __repr__(self) -> str:
        return "OpenTelemetrySink()"

    def __reduce__(self) -> "tuple[type[OpenTelemetrySink], tuple[()]]":
        if self._own_providers:
            raise TypeError(
                "an OpenTelemetrySink with its own providers cannot be pickled: they hold threads and connections. "
                "Without them it uses the process's global providers."
            )
        return type(self), ()

    def origin(self) -> Mapping[str, str] | None:
        """Return the current span's `trace_id`, `span_id` and `trace_flags` in hex; None where there is none."""
        from opentelemetry.trace import get_current_span

        span = get_current_span().get_span_context()
        if not span.is_valid:
            return None
        return {
            "trace_id": f"{span.trace_id:032x}",
            "span_id": f"{span.span_id:016x}",
            "trace_flags": f"{span.trace_flags:02x}",
        }

    def write(self, records: "Sequence[Record]") -> None:
        """Emit an event for each record, and record the scores."""
        from opentelemetry._logs import LogRecord, SeverityNumber

        for record in records:
            outcome, context = record.outcome, _span_context(record.origin)
            # The key of scores that may be averaged.
            labels: dict[str, str | float] = {
                "gen_ai.evaluation.name": clean_text(outcome.metric),
                "gen_ai.evaluation.evaluator.version": clean_text(outcome.version),
                "ragstone.judge.model": clean_text(record.judge),
                "ragstone.metric.setup": clean_text(record.setup),
            }
            attributes: dict[str, str | float | list[str]] = {
                "ragstone.sample.id": clean_text(record.sample_id),
                "ragstone.sampling.rate": clean_real(record.rate),
                "ragstone.sampling.chosen_by": clean_text(record.chosen_by),
            }
            for fact, name in FACTS.items():
                if value := getattr(record, fact):
                    attributes[name] = list(map(clean_text, value)) if fact == "tags" else clean_text(value)
            if isinstance(outcome, Score):
                if outcome.passed is not None:
                    labels["gen_ai.evaluation.score.label"] = "passed" if outcome.passed else "failed"
                self._histogram.record(outcome.value, labels, context)
                severity, explanation = SeverityNumber.INFO, outcome.reason
                attributes["gen_ai.evaluation.score.value"] = outcome.value
            else:
                severity, explanation = SeverityNumber.WARN, outcome.detail
                attributes["error.type"] = outcome.reason
            if explanation:
                attributes["gen_ai.evaluation.explanation"] = clean_text(explanation)
            self._logger.emit(
                LogRecord(
                    timestamp=max(0, int(clean_real(record.scored_at) * 1e9)),
                    context=context,
                    severity_number=severity,
                    # They are clean: an exporter drops one that it cannot encode.
                    attributes={**labels, **attributes},
                    event_name="gen_ai.evaluation.result",
                )
            )

    def alarm(self, alarm: "Alarm") -> None:
        """Emit an event for an alarm."""
        from opentelemetry._logs import LogRecord, SeverityNumber

        self._logger.emit(
            LogRecord(
                timestamp=int(alarm.at * 1e9),
                context=_span_context({}),
                severity_number=SeverityNumber.ERROR,
                body=str(alarm),
                attributes={
                    "gen_ai.evaluation.name": clean_text(alarm.metric),
                    "ragstone.alert.below": alarm.below,
                    "gen_ai.evaluation.score.value": alarm.recent_mean,
                },
                event_name="ragstone.alarm",
            )
        )


def _span_context(origin: Mapping[str, str]) -> "Context":
    """Return a context in which the app's span is the current one, or one without any."""
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        INVALID_SPAN_CONTEXT,
        NonRecordingSpan,
        SpanContext,
        TraceFlags,
        set_span_in_context,
    )

    # Whatever is current here is not the app's.
    span = INVALID_SPAN_CONTEXT
    with suppress(KeyError, ValueError):
        # There may be no span, or ids of another kind.
        flags = TraceFlags(int(origin["trace_flags"], 16))
        span = SpanContext(int(origin["trace_id"], 16), int(origin["span_id"], 16), is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(span), Context())
