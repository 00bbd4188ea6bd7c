"""A results database as one page: scores over time, their spread, what cost the lowest, failures, cost, queues."""

from ragstone.report.making import report
from ragstone.report.read import DatabaseError

__all__ = ["DatabaseError", "report"]
