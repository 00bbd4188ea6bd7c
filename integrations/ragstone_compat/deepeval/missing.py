"""What DeepEval has and this package has not, and what to use in its place."""

from collections.abc import Callable, Mapping
from functools import partial

from ragstone_compat.shared import refuse

_CRITERION = "write the question as a GEval, or natively as a ragstone.Criterion"
_CONVERSATION = "score each answer as an LLMTestCase; natively a ragstone.Sample has a history"
INSTEAD: Mapping[str, str] = {
    "AnthropicModel": 'pass model="langchain:anthropic:MODEL"',
    "AmazonBedrockModel": 'pass model="langchain:bedrock_converse:MODEL"',
    "LiteLLMModel": "pass OpenAIModel(MODEL, base_url=...) of a LiteLLM proxy, or a LangChain model",
    "AzureOpenAIModel": 'pass OpenAIModel(DEPLOYMENT, base_url="https://RESOURCE.openai.azure.com/openai/v1")',
    "ArenaGEval": "score both apps and compare them by ragstone.compare(report_a, report_b)",
    "BiasMetric": _CRITERION,
    "CallbackHandler": "use ragstone_langchain.MonitorHandler",
    "ConversationalGEval": _CONVERSATION,
    "ConversationalTestCase": _CONVERSATION,
    "DAGMetric": "write a subclass of ragstone.Metric",
    "FactualConsistencyMetric": "use FaithfulnessMetric, with retrieval_context in the place of context",
    "HallucinationMetric": "use FaithfulnessMetric, with retrieval_context in the place of context",
    "MisuseMetric": _CRITERION,
    "NonAdviceMetric": _CRITERION,
    "PIILeakageMetric": _CRITERION,
    "PromptAlignmentMetric": _CRITERION,
    "RagasMetric": "use ragstone_compat.ragas",
    "RoleViolationMetric": _CRITERION,
    "ToxicityMetric": _CRITERION,
    "TurnFaithfulnessMetric": _CONVERSATION,
    "TurnRelevancyMetric": _CONVERSATION,
    "compare": "use ragstone.compare(report_a, report_b)",
    "instrument_llama_index": "use ragstone_llama_index.instrument",
    "login": "nothing is sent anywhere, so there is nothing to log in to: delete the call",
    "login_with_confident_api_key": "nothing is sent anywhere: delete the call",
    "Synthesizer": "write Goldens yourself, or take questions that people asked",
    "observe": "score live answers by a ragstone.Monitor",
}
"""By DeepEval's name. There is nothing for another class."""


def missing(module: str) -> Callable[[str], object]:
    """Return a module's `__getattr__`."""
    return partial(refuse, INSTEAD, module)
