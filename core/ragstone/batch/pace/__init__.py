"""How fast judges are asked: calls in flight, calls and tokens per minute, time-outs, and one call for one question."""

from ragstone.batch.pace.gate import Gate
from ragstone.batch.pace.lane import GateClosed

__all__ = ["Gate", "GateClosed"]
