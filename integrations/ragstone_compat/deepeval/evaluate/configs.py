"""The groups of options, where DeepEval has them."""

from ragstone_compat.deepeval.evaluate import AsyncConfig as AsyncConfig
from ragstone_compat.deepeval.evaluate import CacheConfig as CacheConfig
from ragstone_compat.deepeval.evaluate import DisplayConfig as DisplayConfig
from ragstone_compat.deepeval.evaluate import ErrorConfig as ErrorConfig
