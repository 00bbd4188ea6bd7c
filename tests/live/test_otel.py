"""With the SDK's in-memory exporters, and through the OTLP encoder's eyes as far as the SDK has it."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from ragstone.live import Alarm, OpenTelemetrySink

from .cases import logs_in_memory, score, unscored


class Telemetry:
    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.logs, self._exporter = logs_in_memory()
        self.metrics = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer = TracerProvider(shutdown_on_exit=False).get_tracer("app")
        self.sink = OpenTelemetrySink(self.logs, self.metrics)

    def events(self) -> list[Any]:
        return [finished.log_record for finished in self._exporter.get_finished_logs()]

    def histogram(self) -> Any:
        (resource,) = self._reader.get_metrics_data().resource_metrics
        ((metric,),) = [scope.metrics for scope in resource.scope_metrics]
        return metric


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    telemetry = Telemetry()
    yield telemetry
    telemetry.logs.shutdown()
    telemetry.metrics.shutdown()


def test_the_event_of_a_score(telemetry: Telemetry) -> None:
    about = {"run_id": "r", "run_name": "rag", "tags": ("a", "\ud800"), "user_id": "u", "thread_id": "t"}
    telemetry.sink.write([score(rate=0.25, chosen_by="rule", **about)])
    (event,) = telemetry.events()
    assert event.event_name == "gen_ai.evaluation.result"
    assert event.timestamp == 1_001_500_000_000
    assert (event.severity_number.name, event.body) == ("INFO", None)
    assert dict(event.attributes) == {
        "gen_ai.evaluation.name": "demo",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "passed",
        "gen_ai.evaluation.explanation": "1 of 2.",
        "gen_ai.evaluation.evaluator.version": "1",
        "ragstone.sample.id": "run-1",
        "ragstone.judge.model": "judge-1",
        "ragstone.sampling.rate": 0.25,
        "ragstone.sampling.chosen_by": "rule",
        "ragstone.run.id": "r",
        "ragstone.run.name": "rag",
        "ragstone.run.tags": ("a", "\\ud800"),
        "user.id": "u",
        "gen_ai.conversation.id": "t",
    }


def test_the_event_of_a_lack(telemetry: Telemetry) -> None:
    telemetry.sink.write([unscored(detail="after 30 s"), unscored(detail="")])
    event, without_detail = telemetry.events()
    assert event.severity_number.name == "WARN"
    attributes = dict(event.attributes)
    assert attributes["error.type"] == "timeout"
    assert attributes["gen_ai.evaluation.explanation"] == "after 30 s"
    assert "gen_ai.evaluation.score.value" not in attributes
    assert "gen_ai.evaluation.score.label" not in attributes
    assert "gen_ai.evaluation.explanation" not in without_detail.attributes


def test_it_is_linked_to_the_span_of_the_submission(telemetry: Telemetry) -> None:
    with telemetry.tracer.start_as_current_span("chain") as span:
        origin = telemetry.sink.origin()
    with telemetry.tracer.start_as_current_span("another, when it is written"):
        telemetry.sink.write([score(origin=origin), score("elsewhere")])
    linked, unlinked = telemetry.events()
    expected = span.get_span_context()
    assert (linked.trace_id, linked.span_id, linked.trace_flags) == (
        expected.trace_id,
        expected.span_id,
        expected.trace_flags,
    )
    assert (unlinked.trace_id, unlinked.span_id) == (0, 0)
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_the_histogram(telemetry: Telemetry) -> None:
    telemetry.sink.write([score("a", 0.05), score("b", 1.0), unscored("c")])
    metric = telemetry.histogram()
    assert (metric.name, metric.unit) == ("gen_ai.evaluation.score", "1")
    (point,) = metric.data.data_points
    assert dict(point.attributes) == {"gen_ai.evaluation.name": "demo", "gen_ai.evaluation.score.label": "passed"}
    assert (point.count, point.sum) == (2, 1.05)
    assert point.explicit_bounds[0] == 0.0
    assert point.explicit_bounds[-1] == 1.0
    assert list(point.bucket_counts)[1] == 1  # 0 to 0.1: the default bounds would put all scores into one bucket


def test_pickle(telemetry: Telemetry) -> None:
    with pytest.raises(TypeError, match="its own providers cannot be pickled"):
        pickle.dumps(telemetry.sink)
    without_sdk = pickle.loads(pickle.dumps(OpenTelemetrySink()))
    without_sdk.write([score(), unscored()])
    assert (without_sdk.name, without_sdk.origin()) == ("opentelemetry", None)


def test_the_event_of_an_alarm(telemetry: Telemetry) -> None:
    alarm = Alarm(alert="a", slice="b", at=1.5, samples=9, mean=0.8, recent_samples=3, recent_mean=0.4, lowest=())
    telemetry.sink.alarm(alarm)
    (event,) = telemetry.events()
    assert (event.event_name, event.severity_number.name, event.body) == ("ragstone.alarm", "ERROR", str(alarm))
    assert dict(event.attributes) == {
        "ragstone.alert.name": "a",
        "ragstone.alert.slice": "b",
        "gen_ai.evaluation.score.value": 0.4,
    }
