"""Where a monitor's outcomes go: databases, files, OpenTelemetry, a function of yours. See `ragstone.store`."""

from ragstone.store import CallableSink, Health, JSONLSink, OpenTelemetrySink, Record, Sink, SQLiteSink, SQLSink

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
