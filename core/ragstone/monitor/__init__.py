"""Scoring live traffic: the monitor, its budget and its counters."""

from ragstone.limits.budget import Budget, Entry, Ledger, MemoryLedger
from ragstone.monitor.counters import FlushResult, SinkStats, Stats
from ragstone.monitor.monitor import Monitor
from ragstone.monitor.trace import trace_id

__all__ = ["Budget", "Entry", "FlushResult", "Ledger", "MemoryLedger", "Monitor", "SinkStats", "Stats", "trace_id"]
