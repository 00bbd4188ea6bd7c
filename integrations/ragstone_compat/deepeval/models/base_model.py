"""`DeepEvalBaseLLM`, where DeepEval has it."""

from ragstone_compat.deepeval.models import DeepEvalBaseLLM as DeepEvalBaseLLM
