"""Scoring live traffic: the monitor, its budget and counters, and where its outcomes go."""

from ragstone.limits.budget import Budget, Entry, Ledger, MemoryLedger
from ragstone.live.alarms import Alarm, LowScore
from ragstone.live.alerts import Alert
from ragstone.live.counters import FlushResult, SinkStats, Stats
from ragstone.live.database import SQLiteSink, SQLSink
from ragstone.live.jsonl import JSONLSink
from ragstone.live.monitor import Monitor
from ragstone.live.otel import OpenTelemetrySink
from ragstone.live.sink import CallableSink, Sink
from ragstone.live.trace import trace_id
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback, Health

__all__ = [
    "Alarm",
    "Alert",
    "Budget",
    "CallableSink",
    "Entry",
    "Feedback",
    "FlushResult",
    "Health",
    "JSONLSink",
    "Ledger",
    "LowScore",
    "MemoryLedger",
    "Monitor",
    "OpenTelemetrySink",
    "Record",
    "SQLSink",
    "SQLiteSink",
    "Sink",
    "SinkStats",
    "Stats",
    "trace_id",
]
