"""Scoring live traffic: the monitor, its budget and its counters."""

from ragstone.limits.budget import Budget, Entry, Ledger, MemoryLedger
from ragstone.monitor.monitor import Monitor
from ragstone.monitor.tally import FlushResult, SinkStats, Stats

__all__ = ["Budget", "Entry", "FlushResult", "Ledger", "MemoryLedger", "Monitor", "SinkStats", "Stats"]
