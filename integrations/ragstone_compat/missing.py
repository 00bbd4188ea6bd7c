"""What ragas and DeepEval have and this package has not, what to use in its place, and where their modules are."""

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn, Union

from ragstone.errors import RagstoneError

_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(
        ("AgentGoalAccuracy", "AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference",
         "TaskCompletionMetric", "ToolCallAccuracy", "ToolCallF1", "ToolCorrectnessMetric",
         "TopicAdherence", "TopicAdherenceScore"),
        "ragstone scores answers and retrieval, not the calls of agents",
    ),
    **dict.fromkeys(
        ("BiasMetric", "DiscreteMetric", "DomainSpecificRubrics", "InstanceRubrics", "InstanceSpecificRubrics",
         "LabelledRubricsScore", "RankingMetric", "ReferenceFreeRubricsScore", "RubricsScoreWithReference",
         "RubricsScoreWithoutReference", "labelled_rubrics_score", "reference_free_rubrics_score",
         "MisuseMetric", "NonAdviceMetric", "NumericMetric", "PIILeakageMetric", "PromptAlignmentMetric",
         "RoleViolationMetric", "RubricsScore", "ToxicityMetric", "discrete_metric", "numeric_metric",
         "ranking_metric"),
        "write the question as an AspectCritic (ragas) or a GEval (DeepEval), or natively as a ragstone.Criterion with "
        "choices of your own",
    ),
    **dict.fromkeys(
        ("BleuScore", "CHRFScore", "ChrfScore", "DistanceMeasure", "ExactMatch", "ExactMatchMetric",
         "DataCompyScore", "JsonCorrectnessMetric", "NonLLMStringSimilarity", "RougeScore", "StringPresence"),
        "compare texts by an own subclass of ragstone.Metric, whose score needs no judge",
    ),
    **dict.fromkeys(
        ("BaseConversationalMetric", "ConversationSimulator", "ConversationalGEval", "ConversationalGolden",
         "ConversationalTestCase", "MultiTurnMetric", "MultiTurnSample",
         "TurnContextualPrecisionMetric", "TurnContextualRecallMetric",
         "TurnContextualRelevancyMetric", "TurnFaithfulnessMetric",
         "TurnRelevancyMetric", "messages", "multi_turn_ascore", "multi_turn_score"),
        "score each answer as an LLMTestCase or a SingleTurnSample; natively, a ragstone.Sample has a history",
    ),
    **dict.fromkeys(
        ("TestsetGenerator", "multi_context", "reasoning", "simple", "testset"),
        "ragstone makes no test sets: make one with ragas in an environment of its own, and load its file here",
    ),
    **dict.fromkeys(
        ("CacheInterface", "DiskCacheBackend", "cache", "cacher"),
        "natively, ragstone.evaluate(..., journal=PATH) keeps replies and outcomes",
    ),
    **dict.fromkeys(("pull", "push", "queue"), "ragstone has no hosted platform; keep your data set in a file"),
    **dict.fromkeys(
        ("Synthesizer", "generate_goldens_from_contexts", "generate_goldens_from_docs",
         "generate_goldens_from_scratch"),
        "write Goldens yourself, or take questions that people asked",
    ),
    **dict.fromkeys(("LLMSQLEquivalence", "SQLSemanticEquivalence"), "ragstone has nothing for SQL"),
    **dict.fromkeys(
        ("MLLMTestCase", "MLLMTestCaseParams", "MultiModalFaithfulness", "MultiModalRelevance",
         "multimodal_faithness", "multimodal_relevance"),
        "ragstone scores texts, not images",
    ),
    **dict.fromkeys(
        ("BaseMetric", "EvaluationMode", "LLMMetric", "MetricOutputType", "MetricType"),
        "a metric of your own is a subclass of ragstone.Metric; a question of your own is an AspectCritic",
    ),
    **dict.fromkeys(("Experiment", "version_experiment"), "use ragstone.evaluate, whose report is kept by its `save`"),
    **dict.fromkeys(("DataTable", "Dataset", "backends"), "pass a list of dicts, a DataFrame or a file of rows"),
    **dict.fromkeys(("FaithfulnesswithHHEM", "FaithulnesswithHHEM"), "use Faithfulness"),
    **dict.fromkeys(
        ("noise_sensitivity", "noise_sensitivity_irrelevant", "noise_sensitivity_relevant"),
        "use faithfulness and context_precision",
    ),
    **dict.fromkeys(
        ("ContextRelevance", "context_relevance"),
        "use ContextRelevancy: the share of the contexts' sentences that the question needs",
    ),
    **dict.fromkeys(
        ("Prompt", "PydanticPrompt", "adapt", "optimizers", "prompt"), "pass instructions= to a metric of ragstone"
    ),
    **dict.fromkeys(
        ("ContextEntityRecall", "NonLLMContextRecall"),
        "use LLMContextRecall: the share of the reference that the contexts support",
    ),
    "NonLLMContextPrecisionWithReference": "use LLMContextPrecisionWithReference",
    "AmazonBedrockModel": 'pass model="langchain:bedrock_converse:MODEL"',
    "AnswerAccuracy": "use FactualCorrectness or AnswerCorrectness, which compare with the reference, too",
    "AnthropicModel": 'pass model="langchain:anthropic:MODEL"',
    "ArenaGEval": "score both apps and compare them by ragstone.compare(report_a, report_b)",
    "CallbackHandler": "use ragstone_langchain.MonitorHandler",
    "DAGMetric": "write a subclass of ragstone.Metric",
    "FactualConsistencyMetric": "use FaithfulnessMetric, with retrieval_context in the place of context",
    "GoogleEmbeddings": "pass LangchainEmbeddingsWrapper(GoogleGenerativeAIEmbeddings(...)) of langchain_google_genai",
    "GoogleVertexAI": 'pass model="langchain:google_vertexai:MODEL"',
    "HaystackEmbeddingsWrapper": "write a subclass of ragstone.BaseEmbedder with `embed`",
    "HaystackLLMWrapper": "write a subclass of ragstone.BaseLLM with `generate`, and pass it as llm=",
    "HallucinationMetric": "use FaithfulnessMetric, with retrieval_context in the place of context; the direction "
    "turns, from lower is better with a highest threshold to higher is better with a least one",
    **dict.fromkeys(("InstructorBaseRagasLLM", "InstructorLLM"), "use llm_factory(MODEL, client=...)"),
    "LiteLLMEmbeddings": "pass OpenAIEmbeddings(client=OpenAI(base_url=...)) of a LiteLLM proxy",
    "LiteLLMModel": "pass OpenAIModel(MODEL, base_url=...) of a LiteLLM proxy, or a LangChain model",
    "LiteLLMStructuredLLM": "pass llm_factory(MODEL, client=OpenAI(base_url=...)) of a LiteLLM proxy",
    "NoiseSensitivity": "use Faithfulness and ContextPrecision; what each claim rests on is in their verdicts",
    "QuotedSpansAlignment": "use ragstone.CitationSupport",
    "OCIGenAIWrapper": "pass a LangChain model of OCI in a LangchainLLMWrapper",
    "RagasMetric": "use ragstone_compat.ragas",
    "ResponseGroundedness": "use Faithfulness: the share of the response's claims that the contexts support",
    "answer_accuracy": "use factual_correctness or answer_correctness",
    "compare": "use ragstone.compare(report_a, report_b)",
    "context_entity_recall": "use context_recall: the share of the reference that the contexts support",
    "evals_iterator": "its scores come from traces: loop over dataset.goldens, add an LLMTestCase of each answer, and "
    "call evaluate; or score live answers by a ragstone.Monitor",
    "experiment": "use ragstone.evaluate",
    "helicone_config": "name the proxy's address as base_url of your client",
    "instrument_llama_index": "use ragstone_llama_index.instrument",
    "observe": "score live answers by a ragstone.Monitor",
    "save_as": "write each golden.model_dump() to a file",
    "settings": "nothing here needs settings: no telemetry is sent",
}  # fmt: skip
"""By the libraries' names, of classes, functions or modules. There is nothing for another."""
_ALIKE = 0.9


class Missing:
    """What a library has and this package has not: scripts may import and name it; where it is used, it says so."""

    _sentence = ""

    def __init__(self, sentence: str) -> None:
        vars(self)["_sentence"] = sentence

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise NotImplementedError(self._sentence)

    # A subclass asks its bases for their entries.
    __mro_entries__ = __iter__ = __setattr__ = __call__

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(self._sentence)

    def __getitem__(self, _: object) -> "Missing":
        return self

    def __instancecheck__(self, _: object) -> bool:
        return False

    __subclasscheck__ = __instancecheck__

    def __or__(self, other: Any) -> Any:  # noqa: ANN401 - of annotations
        return Union[self, other]  # noqa: UP007

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<{self._sentence}>"


class _MissingModule(ModuleType):
    """A module of a library's that is not there, or a function of its that was imported from one."""

    def __getattr__(self, name: str) -> object:
        return missing_name(self.__name__, name)

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError(_sentence(*self.__name__.rsplit(".", 1)))

    def __repr__(self) -> str:
        return f"<{_sentence(*self.__name__.rsplit('.', 1))}>"


class _Finder(MetaPathFinder, Loader):
    """It is asked last, and finds modules of the library below one package only: no other import sees it."""

    def __init__(self, package: str) -> None:
        self._below = f"{package}."

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if not fullname.startswith(self._below):
            return None
        parent, name = fullname.rsplit(".", 1)
        if name.startswith("__"):
            return None
        if meant := _misspelt(parent, name):
            raise ImportError(f"{parent} has no {name}; did you mean {meant}?", name=parent)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _MissingModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: its names are made when they are imported."""


def missing_name(module: str, name: str) -> object:
    """The placeholder of a name that a module has not, and a library's may have.

    Raises:
        AttributeError: It is misspelt, or tools ask all modules for such a name. An import goes on to the finder.
    """
    known = name in _INSTEAD or name[0].isupper()
    if not known or _misspelt(module, name):
        raise AttributeError(_sentence(module, name))
    return _placeholder(module, name)


def register(package: str, modules: Mapping[str, ModuleType]) -> None:
    """Make modules of a package importable by the names that a library has for them, as scripts import from inside.

    Args:
        package: The package.
        modules: The modules by the library's names. What they lack, and any other module, is `Missing`.
    """
    for name, module in modules.items():
        sys.modules[f"{package}.{name}"] = module
        vars(module).setdefault("__getattr__", partial(missing_name, module.__name__))
        # Without it nothing could be imported from below.
        vars(module).setdefault("__path__", [])
    sys.meta_path.append(_Finder(package))


def _misspelt(module: str, name: str) -> str:
    """The name of a module that one which nobody knows is nearly the same as, or an empty one."""
    if name in _INSTEAD or name.startswith("_"):
        return ""
    there = [each for each, value in vars(sys.modules[module]).items() if not isinstance(value, _MissingModule)]
    return next(iter(get_close_matches(name, there, 1, _ALIKE)), "")


def _sentence(module: str, name: str) -> str:
    """What to use in the place of a name, else of the modules that it is in."""
    instead = "ragstone has nothing for it"
    for part in f"{module}.{name}".split("."):
        instead = _INSTEAD.get(part, instead)
    return f"{module} has no {name}: {instead}"


@cache
def _placeholder(module: str, name: str) -> object:
    # Nothing here raises it, and what scripts catch has to be an exception.
    if name.endswith(("Error", "Exception")) or module.endswith((".errors", ".exceptions")):
        return type(name, (RagstoneError,), {"__module__": module})
    return Missing(_sentence(module, name))
