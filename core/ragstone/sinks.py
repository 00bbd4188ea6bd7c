"""Where a monitor's outcomes go: databases, files, OpenTelemetry, a function of yours."""

from ragstone.store.alerts import Alarm, LowScore
from ragstone.store.base import CallableSink, Feedback, Health, Sink
from ragstone.store.database import SQLiteSink, SQLSink
from ragstone.store.jsonl import JSONLSink
from ragstone.store.otel import MLflowSink, OpenTelemetrySink
from ragstone.store.record import Record

__all__ = [
    "Alarm",
    "CallableSink",
    "Feedback",
    "Health",
    "JSONLSink",
    "LowScore",
    "MLflowSink",
    "OpenTelemetrySink",
    "Record",
    "SQLSink",
    "SQLiteSink",
    "Sink",
]
