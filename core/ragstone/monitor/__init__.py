"""Scoring live traffic: the monitor, its budget and its counters."""

from ragstone.limits.budget import Budget, Entry, Ledger, MemoryLedger
from ragstone.monitor.alerts import Alert
from ragstone.monitor.counters import FlushResult, SinkStats, Stats
from ragstone.monitor.monitor import Monitor
from ragstone.monitor.trace import trace_id
from ragstone.store.alerts import Alarm, LowScore

__all__ = [
    "Alarm",
    "Alert",
    "Budget",
    "Entry",
    "FlushResult",
    "Ledger",
    "LowScore",
    "MemoryLedger",
    "Monitor",
    "SinkStats",
    "Stats",
    "trace_id",
]
