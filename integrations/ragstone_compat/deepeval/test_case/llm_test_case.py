"""`LLMTestCase` and its fields, where DeepEval has them."""

from ragstone_compat.deepeval.test_case import LLMTestCase, LLMTestCaseParams, SingleTurnParams

__all__ = ["LLMTestCase", "LLMTestCaseParams", "SingleTurnParams"]
