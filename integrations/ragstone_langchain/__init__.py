"""ragstone for LangChain: bring your model, and score wherever LangChain evaluates or serves."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone_langchain.evaluator import RagEvaluator
    from ragstone_langchain.handler import MonitorHandler
    from ragstone_langchain.langsmith import LangSmithFeedbackSink
    from ragstone_langchain.middleware import MonitorMiddleware
    from ragstone_langchain.models import LangChainEmbedder, LangChainLLM
    from ragstone_langchain.recorder import contexts

__all__ = [
    "LangChainEmbedder",
    "LangChainLLM",
    "LangSmithFeedbackSink",
    "MonitorHandler",
    "MonitorMiddleware",
    "RagEvaluator",
    "contexts",
]

if not TYPE_CHECKING:  # else a checker would take any name for one that there is
    _MODULES = {
        "LangChainEmbedder": "models",
        "LangChainLLM": "models",
        "LangSmithFeedbackSink": "langsmith",
        "MonitorHandler": "handler",
        "MonitorMiddleware": "middleware",
        "RagEvaluator": "evaluator",
        "contexts": "recorder",
    }

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Models, runnables and agents take seconds to import: each is loaded with what needs it.
        try:
            return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("langchain_core"):
                raise
            raise ImportError(f'{__name__} needs langchain-core: pip install "ragstone[langchain]"') from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
