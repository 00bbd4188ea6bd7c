"""`BaseMetric`, where DeepEval has it."""

from ragstone_compat.deepeval.metrics import BaseMetric as BaseMetric
from ragstone_compat.deepeval.missing import missing

__getattr__ = missing(__name__)
