"""ragstone for LangChain: bring your model, and score wherever LangChain evaluates."""

try:
    import langchain_core as _  # noqa: F401
except ImportError as error:
    raise ImportError('ragstone_langchain needs langchain-core: pip install "ragstone[langchain]"') from error

from ragstone_langchain.embedder import LangChainEmbedder
from ragstone_langchain.evaluator import RagEvaluator
from ragstone_langchain.llm import LangChainLLM

__all__ = ["LangChainEmbedder", "LangChainLLM", "RagEvaluator"]
