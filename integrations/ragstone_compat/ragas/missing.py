"""What ragas has and this package has not, and what to use in its place."""

from collections.abc import Callable, Mapping
from functools import partial

from ragstone_compat import shared

_TEXTS = "compare texts by an own subclass of ragstone.Metric, whose score needs no judge"
_CRITERION = "write the question as an AspectCritic, or natively as a ragstone.Criterion with choices of your own"
_AGENTS = "ragstone scores answers and retrieval, not the calls of agents"
_IMAGES = "ragstone scores texts, not images"
_TESTSET = "ragstone makes no test sets: make one with ragas in an environment of its own, and load its file here"
_CACHE = "natively, ragstone.evaluate(..., journal=PATH) keeps replies and outcomes"
_LLM = "write a subclass of ragstone.BaseLLM with `generate`, and pass it as llm="
_OWN = "a metric of your own is a subclass of ragstone.Metric; a question of your own is an AspectCritic"
PROMPTS = "pass instructions= to a metric of ragstone"
INSTEAD: Mapping[str, str] = {
    "AgentGoalAccuracy": _AGENTS,
    "AgentGoalAccuracyWithReference": _AGENTS,
    "AgentGoalAccuracyWithoutReference": _AGENTS,
    "AnswerAccuracy": "use FactualCorrectness or AnswerCorrectness, which compare with the reference, too",
    "BleuScore": _TEXTS,
    "CHRFScore": _TEXTS,
    "CacheInterface": _CACHE,
    "ChrfScore": _TEXTS,
    "ContextEntityRecall": "use LLMContextRecall: the share of the reference that the contexts support",
    "ContextRelevance": "use ContextRelevancy: the share of the contexts' sentences that the question needs",
    "DiscreteMetric": _CRITERION,
    "DiskCacheBackend": _CACHE,
    "DistanceMeasure": _TEXTS,
    "DomainSpecificRubrics": _CRITERION,
    "ExactMatch": _TEXTS,
    "Experiment": "use ragstone.evaluate, whose report is kept by its `save` and compared by ragstone.compare",
    "FaithfulnesswithHHEM": "use Faithfulness",
    "GoogleEmbeddings": "pass LangchainEmbeddingsWrapper(GoogleGenerativeAIEmbeddings(...)) of langchain_google_genai",
    "HaystackEmbeddingsWrapper": "write a subclass of ragstone.BaseEmbedder with `embed`",
    "HaystackLLMWrapper": _LLM,
    "IDBasedContextPrecision": "use LLMContextPrecisionWithReference",
    "IDBasedContextRecall": "use LLMContextRecall",
    "InstanceRubrics": _CRITERION,
    "InstanceSpecificRubrics": _CRITERION,
    "LLMSQLEquivalence": "ragstone has nothing for SQL",
    "LiteLLMEmbeddings": "pass OpenAIEmbeddings(client=OpenAI(base_url=...)) of a LiteLLM proxy",
    "LiteLLMStructuredLLM": "pass llm_factory(MODEL, client=OpenAI(base_url=...)) of a LiteLLM proxy",
    "MetricType": _OWN,
    "MultiModalFaithfulness": _IMAGES,
    "MultiModalRelevance": _IMAGES,
    "MultiTurnSample": "score each answer as a SingleTurnSample; natively, a ragstone.Sample has a history",
    "NoiseSensitivity": "use Faithfulness and ContextPrecision; what each claim rests on is in their verdicts",
    "NonLLMContextPrecisionWithReference": "use LLMContextPrecisionWithReference",
    "NonLLMContextRecall": "use LLMContextRecall",
    "NonLLMStringSimilarity": _TEXTS,
    "NumericMetric": _CRITERION,
    "PydanticPrompt": PROMPTS,
    "QuotedSpansAlignment": "use ragstone.CitationSupport",
    "ResponseGroundedness": "use Faithfulness: the share of the response's claims that the contexts support",
    "RougeScore": _TEXTS,
    "RubricsScore": _CRITERION,
    "SQLSemanticEquivalence": "ragstone has nothing for SQL",
    "StringPresence": _TEXTS,
    "TestsetGenerator": _TESTSET,
    "ToolCallAccuracy": _AGENTS,
    "ToolCallF1": _AGENTS,
    "TopicAdherence": _AGENTS,
    "TopicAdherenceScore": _AGENTS,
    "adapt": PROMPTS,
    "answer_accuracy": "use factual_correctness or answer_correctness",
    "context_entity_recall": "use context_recall: the share of the reference that the contexts support",
    "discrete_metric": _CRITERION,
    "experiment": "use ragstone.evaluate",
    "helicone_config": "name the proxy's address as base_url of your client",
    "messages": "score each answer as a SingleTurnSample; natively, a ragstone.Sample has a history",
    "multi_context": _TESTSET,
    "noise_sensitivity": "use faithfulness and context_precision",
    "numeric_metric": _CRITERION,
    "ranking_metric": _CRITERION,
    "reasoning": _TESTSET,
    "settings": "nothing here needs settings: no telemetry is sent",
    "simple": _TESTSET,
}
"""By ragas' name. There is nothing for another class."""
refuse: Callable[[str], object] = partial(shared.refuse, INSTEAD, "ragstone_compat.ragas")
"""The `__getattr__` of all modules."""
__getattr__ = refuse
