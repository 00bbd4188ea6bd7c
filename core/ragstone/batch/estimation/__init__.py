"""What a run would take, without a judge being called."""

from ragstone.batch.estimation.estimate import estimate
from ragstone.batch.estimation.estimated import Estimate, MetricEstimate

__all__ = ["Estimate", "MetricEstimate", "estimate"]
