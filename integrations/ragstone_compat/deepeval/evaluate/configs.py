"""The groups of options, where DeepEval has them."""

from ragstone_compat.deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig

__all__ = ["AsyncConfig", "CacheConfig", "DisplayConfig", "ErrorConfig"]
