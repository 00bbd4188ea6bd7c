"""Where a monitor's outcomes go: databases, files, OpenTelemetry, a function of yours."""

from ragstone.sinks.base import Sink
from ragstone.sinks.call import CallableSink
from ragstone.sinks.health import Health
from ragstone.sinks.jsonl import JSONLSink
from ragstone.sinks.otel import OpenTelemetrySink
from ragstone.sinks.record import Record
from ragstone.sinks.sql import SQLSink
from ragstone.sinks.sqlite import SQLiteSink

__all__ = [
    "CallableSink",
    "Health",
    "JSONLSink",
    "OpenTelemetrySink",
    "Record",
    "SQLSink",
    "SQLiteSink",
    "Sink",
]
