"""`GEval` and `Rubric`, where DeepEval has them."""

from ragstone_compat.deepeval.metrics import GEval as GEval
from ragstone_compat.deepeval.metrics import Rubric as Rubric
