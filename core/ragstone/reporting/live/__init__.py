"""A results database as one page: scores over time, their spread, what cost the lowest, failures, cost, queues."""

from ragstone.reporting.live.making import report
from ragstone.reporting.live.read import DatabaseError

__all__ = ["DatabaseError", "report"]
