"""ragstone: the touchstone for retrieval-augmented generation."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone._version import __version__ as __version__
    from ragstone.batch.evaluate import aevaluate as aevaluate, evaluate as evaluate
    from ragstone.clients import OpenAICompatible as OpenAICompatible
    from ragstone.judge import (
        LLM as LLM,
        BaseDecisionModel as BaseDecisionModel,
        BaseEmbedder as BaseEmbedder,
        BaseLLM as BaseLLM,
        DecisionModel as DecisionModel,
        DecisionReply as DecisionReply,
        DecisionRequest as DecisionRequest,
        Embedder as Embedder,
        LLMReply as LLMReply,
        LLMRequest as LLMRequest,
        Question as Question,
    )
    from ragstone.judging.checkers import BaseClaimChecker as BaseClaimChecker, ClaimChecker as ClaimChecker
    from ragstone.limits.limits import Limits as Limits
    from ragstone.live import Alert as Alert, Budget as Budget, Monitor as Monitor, trace_id as trace_id
    from ragstone.metrics import *  # noqa: F403 - so that a new metric is named in one place
    from ragstone.outcome import (
        Evidence as Evidence,
        Outcome as Outcome,
        Score as Score,
        Unscored as Unscored,
        Usage as Usage,
        Verdict as Verdict,
    )
    from ragstone.report import Report as Report, compare as compare
    from ragstone.sample import Sample as Sample, Turn as Turn
else:
    from ragstone import metrics
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone._version": "__version__",
            "ragstone.batch.evaluate": "aevaluate evaluate",
            "ragstone.clients": "OpenAICompatible",
            "ragstone.judge": "LLM BaseDecisionModel BaseEmbedder BaseLLM DecisionModel DecisionReply DecisionRequest "
            "Embedder LLMReply LLMRequest Question",
            "ragstone.judging.checkers": "BaseClaimChecker ClaimChecker",
            "ragstone.limits.limits": "Limits",
            "ragstone.live": "Alert Budget Monitor trace_id",
            "ragstone.metrics": " ".join(metrics.__all__),
            "ragstone.outcome": "Evidence Outcome Score Unscored Usage Verdict",
            "ragstone.report": "Report compare",
            "ragstone.sample": "Sample Turn",
        },
    )
