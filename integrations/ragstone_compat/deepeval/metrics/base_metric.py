"""`BaseMetric`, where DeepEval has it."""

from ragstone_compat.deepeval.metrics import BaseMetric as BaseMetric
