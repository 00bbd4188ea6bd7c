"""ragstone for LangChain: bring your model, and score wherever LangChain evaluates or serves."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.adapters.preview import Preview as Preview
    from ragstone_langchain.decisions import LangChainDecisions as LangChainDecisions
    from ragstone_langchain.evaluator import RagEvaluator as RagEvaluator
    from ragstone_langchain.handler import MonitorHandler as MonitorHandler
    from ragstone_langchain.models import LangChainEmbedder as LangChainEmbedder, LangChainLLM as LangChainLLM
    from ragstone_langchain.previews import apreview as apreview, preview as preview
    from ragstone_langchain.record import contexts as contexts
else:
    from ragstone._front_door import front_door

    # Models, runnables and agents take seconds to import: each is loaded with what needs it.
    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone.adapters.preview": "Preview",
            "ragstone_langchain.decisions": "LangChainDecisions",
            "ragstone_langchain.evaluator": "RagEvaluator",
            "ragstone_langchain.handler": "MonitorHandler",
            "ragstone_langchain.models": "LangChainEmbedder LangChainLLM",
            "ragstone_langchain.previews": "apreview preview",
            "ragstone_langchain.record": "contexts",
        },
        framework="langchain_core",
        extra="langchain",
    )
