"""What DeepEval has and this package has not, and what to use in its place."""

from collections.abc import Callable, Mapping
from functools import partial

from ragstone_compat.shared import refuse

_CRITERION = "write the question as a GEval, or natively as a ragstone.Criterion"
_AGENTS = "ragstone scores answers and retrieval, not the calls of agents"
_TEXTS = "compare texts by an own subclass of BaseMetric, or natively of ragstone.Metric"
_CONVERSATION = "score each answer as an LLMTestCase; natively a ragstone.Sample has a history"
INSTEAD: Mapping[str, str] = {
    "AnthropicModel": 'pass model="langchain:anthropic:MODEL"',
    "AmazonBedrockModel": 'pass model="langchain:bedrock_converse:MODEL"',
    "LiteLLMModel": "pass OpenAIModel(MODEL, base_url=...) of a LiteLLM proxy, or a LangChain model",
    "ArenaGEval": "score both apps and compare them by ragstone.compare(report_a, report_b)",
    "BiasMetric": _CRITERION,
    "BaseConversationalMetric": _CONVERSATION,
    "CallbackHandler": "use ragstone_langchain.MonitorHandler",
    "ConversationalGEval": _CONVERSATION,
    "ConversationalGolden": _CONVERSATION,
    "ConversationalTestCase": _CONVERSATION,
    "ConversationSimulator": _CONVERSATION,
    "DAGMetric": "write a subclass of ragstone.Metric",
    "ExactMatchMetric": _TEXTS,
    "FactualConsistencyMetric": "use FaithfulnessMetric, with retrieval_context in the place of context",
    "GoogleVertexAI": 'pass model="langchain:google_vertexai:MODEL"',
    "HallucinationMetric": "use FaithfulnessMetric, with retrieval_context in the place of context",
    "JsonCorrectnessMetric": _TEXTS,
    "MisuseMetric": _CRITERION,
    "NonAdviceMetric": _CRITERION,
    "PIILeakageMetric": _CRITERION,
    "PromptAlignmentMetric": _CRITERION,
    "RagasMetric": "use ragstone_compat.ragas",
    "RoleViolationMetric": _CRITERION,
    "TaskCompletionMetric": _AGENTS,
    "ToolCall": _AGENTS,
    "ToolCorrectnessMetric": _AGENTS,
    "ToxicityMetric": _CRITERION,
    "TurnFaithfulnessMetric": _CONVERSATION,
    "TurnRelevancyMetric": _CONVERSATION,
    "compare": "use ragstone.compare(report_a, report_b)",
    "instrument_llama_index": "use ragstone_llama_index.instrument",
    "Synthesizer": "write Goldens yourself, or take questions that people asked",
    "observe": "score live answers by a ragstone.Monitor",
}
"""By DeepEval's name. There is nothing for another class."""


__getattr__ = partial(refuse, INSTEAD, "ragstone_compat.deepeval")  # of the modules that are not there


def missing(module: str) -> Callable[[str], object]:
    """Return a module's `__getattr__`."""
    return partial(refuse, INSTEAD, module)
