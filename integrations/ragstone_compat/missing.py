"""What ragas and DeepEval have and this package has not, what to use in its place, and where their modules are."""

import sys
from collections.abc import Iterable, Mapping
from functools import partial
from types import ModuleType

_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(
        ("AgentGoalAccuracy", "AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference",
         "TaskCompletionMetric", "ToolCall", "ToolCallAccuracy", "ToolCallF1", "ToolCorrectnessMetric",
         "TopicAdherence", "TopicAdherenceScore"),
        "ragstone scores answers and retrieval, not the calls of agents",
    ),
    **dict.fromkeys(
        ("BiasMetric", "DiscreteMetric", "DomainSpecificRubrics", "InstanceRubrics", "InstanceSpecificRubrics",
         "MisuseMetric", "NonAdviceMetric", "NumericMetric", "PIILeakageMetric", "PromptAlignmentMetric",
         "RoleViolationMetric", "RubricsScore", "ToxicityMetric", "discrete_metric", "numeric_metric",
         "ranking_metric"),
        "write the question as an AspectCritic (ragas) or a GEval (DeepEval), or natively as a ragstone.Criterion with "
        "choices of your own",
    ),
    **dict.fromkeys(
        ("BleuScore", "CHRFScore", "ChrfScore", "DistanceMeasure", "ExactMatch", "ExactMatchMetric",
         "JsonCorrectnessMetric", "NonLLMStringSimilarity", "RougeScore", "StringPresence"),
        "compare texts by an own subclass of ragstone.Metric, whose score needs no judge",
    ),
    **dict.fromkeys(
        ("BaseConversationalMetric", "ConversationSimulator", "ConversationalGEval", "ConversationalGolden",
         "ConversationalTestCase", "MultiTurnSample", "TurnFaithfulnessMetric", "TurnRelevancyMetric", "messages"),
        "score each answer as an LLMTestCase or a SingleTurnSample; natively, a ragstone.Sample has a history",
    ),
    **dict.fromkeys(
        ("TestsetGenerator", "multi_context", "reasoning", "simple"),
        "ragstone makes no test sets: make one with ragas in an environment of its own, and load its file here",
    ),
    **dict.fromkeys(
        ("CacheInterface", "DiskCacheBackend"),
        "natively, ragstone.evaluate(..., journal=PATH) keeps replies and outcomes",
    ),
    **dict.fromkeys(
        ("FactualConsistencyMetric", "HallucinationMetric"),
        "use FaithfulnessMetric, with retrieval_context in the place of context",
    ),
    **dict.fromkeys(("LLMSQLEquivalence", "SQLSemanticEquivalence"), "ragstone has nothing for SQL"),
    **dict.fromkeys(("MultiModalFaithfulness", "MultiModalRelevance"), "ragstone scores texts, not images"),
    **dict.fromkeys(("PydanticPrompt", "adapt"), "pass instructions= to a metric of ragstone"),
    **dict.fromkeys(
        ("ContextEntityRecall", "IDBasedContextRecall", "NonLLMContextRecall"),
        "use LLMContextRecall: the share of the reference that the contexts support",
    ),
    **dict.fromkeys(
        ("IDBasedContextPrecision", "NonLLMContextPrecisionWithReference"), "use LLMContextPrecisionWithReference"
    ),
    "AmazonBedrockModel": 'pass model="langchain:bedrock_converse:MODEL"',
    "AnswerAccuracy": "use FactualCorrectness or AnswerCorrectness, which compare with the reference, too",
    "AnthropicModel": 'pass model="langchain:anthropic:MODEL"',
    "ArenaGEval": "score both apps and compare them by ragstone.compare(report_a, report_b)",
    "CallbackHandler": "use ragstone_langchain.MonitorHandler",
    "ContextRelevance": "use ContextRelevancy: the share of the contexts' sentences that the question needs",
    "DAGMetric": "write a subclass of ragstone.Metric",
    "Experiment": "use ragstone.evaluate, whose report is kept by its `save` and compared by ragstone.compare",
    "FaithfulnesswithHHEM": "use Faithfulness",
    "GoogleEmbeddings": "pass LangchainEmbeddingsWrapper(GoogleGenerativeAIEmbeddings(...)) of langchain_google_genai",
    "GoogleVertexAI": 'pass model="langchain:google_vertexai:MODEL"',
    "HaystackEmbeddingsWrapper": "write a subclass of ragstone.BaseEmbedder with `embed`",
    "HaystackLLMWrapper": "write a subclass of ragstone.BaseLLM with `generate`, and pass it as llm=",
    "LiteLLMEmbeddings": "pass OpenAIEmbeddings(client=OpenAI(base_url=...)) of a LiteLLM proxy",
    "LiteLLMModel": "pass OpenAIModel(MODEL, base_url=...) of a LiteLLM proxy, or a LangChain model",
    "LiteLLMStructuredLLM": "pass llm_factory(MODEL, client=OpenAI(base_url=...)) of a LiteLLM proxy",
    "MetricType": "a metric of your own is a subclass of ragstone.Metric; a question of your own is an AspectCritic",
    "NoiseSensitivity": "use Faithfulness and ContextPrecision; what each claim rests on is in their verdicts",
    "QuotedSpansAlignment": "use ragstone.CitationSupport",
    "RagasMetric": "use ragstone_compat.ragas",
    "ResponseGroundedness": "use Faithfulness: the share of the response's claims that the contexts support",
    "Synthesizer": "write Goldens yourself, or take questions that people asked",
    "answer_accuracy": "use factual_correctness or answer_correctness",
    "compare": "use ragstone.compare(report_a, report_b)",
    "context_entity_recall": "use context_recall: the share of the reference that the contexts support",
    "experiment": "use ragstone.evaluate",
    "helicone_config": "name the proxy's address as base_url of your client",
    "instrument_llama_index": "use ragstone_llama_index.instrument",
    "noise_sensitivity": "use faithfulness and context_precision",
    "observe": "score live answers by a ragstone.Monitor",
    "settings": "nothing here needs settings: no telemetry is sent",
}  # fmt: skip
"""By the libraries' names. There is nothing for another class."""


def refuse_name(package: str, name: str) -> object:
    """Raise the error for a name that a library's package has not, which says what to use in its place."""
    if name in _INSTEAD or name[0].isupper():
        raise ImportError(f"{package} has no {name}: {_INSTEAD.get(name, 'ragstone has nothing for it')}", name=package)
    # Tools ask so for options that a module may have.
    raise AttributeError(f"{package} has no attribute {name!r}")


def register(package: str, modules: Mapping[str, ModuleType], not_there: Iterable[str]) -> None:
    """Make modules of a package importable by the names that a library has for them, as scripts import from inside.

    Args:
        package: The package.
        modules: The modules by the library's names; what they lack is an error that says what to use.
        not_there: The library's modules that have no counterpart.
    """
    absent = ModuleType(package)
    for name, module in {**modules, **dict.fromkeys(not_there, absent)}.items():
        sys.modules[f"{package}.{name}"] = module
        vars(module).setdefault("__getattr__", partial(refuse_name, package))
