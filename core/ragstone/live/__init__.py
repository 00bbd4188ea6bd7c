"""Scoring live traffic: the monitor, its budget and counters, and where its outcomes go."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.live.alarms import Alarm as Alarm, LowScore as LowScore
    from ragstone.live.alerts import Alert as Alert
    from ragstone.live.budget import Budget as Budget
    from ragstone.live.counters import FlushResult as FlushResult, SinkStats as SinkStats, Stats as Stats
    from ragstone.live.database import SQLiteSink as SQLiteSink, SQLSink as SQLSink
    from ragstone.live.health import Health as Health
    from ragstone.live.monitor import Monitor as Monitor
    from ragstone.live.otel import OpenTelemetrySink as OpenTelemetrySink
    from ragstone.live.sampling import Sampling as Sampling
    from ragstone.live.settings import Queue as Queue
    from ragstone.live.sink import CallableSink as CallableSink, Sink as Sink
    from ragstone.live.trace import trace_id as trace_id
    from ragstone.results.record import Record as Record
    from ragstone.results.traffic import Feedback as Feedback
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone.live.alarms": "Alarm LowScore",
            "ragstone.live.alerts": "Alert",
            "ragstone.live.budget": "Budget",
            "ragstone.live.counters": "FlushResult SinkStats Stats",
            "ragstone.live.database": "SQLSink SQLiteSink",
            "ragstone.live.health": "Health",
            "ragstone.live.monitor": "Monitor",
            "ragstone.live.otel": "OpenTelemetrySink",
            "ragstone.live.sampling": "Sampling",
            "ragstone.live.settings": "Queue",
            "ragstone.live.sink": "CallableSink Sink",
            "ragstone.live.trace": "trace_id",
            "ragstone.results.record": "Record",
            "ragstone.results.traffic": "Feedback",
        },
    )
