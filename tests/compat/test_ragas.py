"""Scripts for ragas, as people write them, run with `ragas` replaced in their import lines and nothing else."""

import ast
import asyncio
import inspect
import math
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ragstone import LLMReply, Score, Unscored
from ragstone.errors import RagstoneError
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_compat.ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
from ragstone_compat.ragas import integrations as ragas_integrations
from ragstone_compat.ragas.embeddings import (
    BaseRagasEmbedding,
    BaseRagasEmbeddings,
    HuggingfaceEmbeddings,
    LangchainEmbeddingsWrapper,
    OpenAIEmbeddings,
    embedding_factory,
)
from ragstone_compat.ragas.llms import LangchainLLMWrapper, llm_factory
from ragstone_compat.ragas.metrics import (
    AnswerCorrectness,
    AspectCritic,
    ContextPrecision,
    ContextRelevancy,
    FactualCorrectness,
    Faithfulness,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    MetricWithEmbeddings,
    MetricWithLLM,
    ResponseRelevancy,
    SemanticSimilarity,
    SingleTurnMetric,
    SummarizationScore,
)

from ..support.openai_server import OpenAIServer  # noqa: TID252 - under importlib mode tests are no package
from .judging import changed

NEEDS = {
    "integrations": "datasets",
    "v1_dataset": "datasets",
    "set_on_objects": "datasets",
    "contexts_as_text": "datasets",
}
EXPECTED = {
    "v1_dataset": [
        "{'context_precision': 1.0000, 'faithfulness': 1.0000, 'answer_relevancy': 1.0000, 'context_recall': 1.0000}",
        "(2, 4)",
        "Faithfulness: 1.0000 1.0 100.0",
    ],
    "v2_dataset": [
        "{'context_recall': 1.0000, 'faithfulness': 1.0000, 'factual_correctness(mode=f1)': 1.0000, 'answer_relevancy'",
        "['user_input', 'retrieved_contexts', 'response', 'reference', 'context_recall', 'faithfulness', 'factual_",
        "[1.0, 1.0] True",
    ],
    "samples": [
        "2 When does it open? At six.",
        "llm_context_precision_with_reference 1.0\nllm_context_precision_without_reference 1.0",
        "{'llm_context_precision_with_reference': nan, 'llm_context_precision_without_reference': 1.0}]",
        "['It rains.', 'It opens at six.']",
    ],
    "set_on_objects": ["{'faithfulness': 1.0, 'answer_relevancy': 1.0, 'harmfulness': 1.0}"],
    "one_by_one": ["async 1.0", "sync 1.0", "critic 1.0", "grade 8.0", "mean 1.0", "row 1.0"],
    "collections": [
        "faithfulness 1.0 1 of 1 claims supported",
        "relevancy 1.0",
        "context_precision 1.0",
        "context_recall 1.0",
        "correctness 1.0",
        "similarity 1.0",
        "summary 0.97",
    ],
    "in_a_loop": ["{'faithfulness': 1.0000, 'context_utilization': 1.0000}", "{'answer_relevancy': 1.0000}"],
    "columns": ["{'faithfulness': 1.0000, 'context_recall': 1.0000}", "{'faithfulness': 1.0000} (2, 3)"],
    "failures": [
        '{"faithfulness": 1.0, "context_recall": 1.0} 1.0',
        "[False, True] True",
        "{'faithfulness': 1.0, 'context_recall': 1.0}",
        "['missing_input']",
        "raised context_recall, row 2: reference: is missing",
    ],
    "jsonl": [
        "Features in dataset: ['user_input', 'retrieved_contexts', 'response', 'reference'] Total samples: 2",
        "{'answer_correctness': 1.0000, 'factual_correctness(mode=precision)': 1.0000, "
        "'factual_correctness(mode=recall)': 1.0000, 'semantic_similarity': 1.0000, 'answer_similarity': 1.0000}",
        "[1.0, 1.0] True",
    ],
    "defaults": ["['answer_relevancy', 'context_precision', 'faithfulness', 'context_recall'] nightly True"],
    "inner_modules": [
        "own {'answer_relevancy': 1.0000}",
        "others {'faithfulness': 1.0000, 'context_precision': 1.0000, 'conciseness': 1.0000}",
    ],
    "contexts_as_text": [
        "{'faithfulness': 1.0000, 'context_relevancy': 0.3333} ['Ann did it. It rains.', 'At six.']",
        "{'summary_score': 0.88",
    ],
    "integrations": [
        "chain {'faithfulness': 1.0} 1.0",
        "awaited {'answer_relevancy': 1.0}",
        "{'context_precision': 1.0000}",
        "[['It opens at six.']]",
        "cost 25",
        "in order 1.0 1.0",
        "upload: ragstone sends nothing anywhere",
    ],
    "summarization": ["0.76"],
    "relevancy": ["1.0"],
    "context_relevancy": ["0.3333333333333333"],
}


def run(name: str) -> None:
    """Run a script, with `await` at its top level as a notebook has it."""
    code = compile(changed("ragas", name), f"{name}.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done: Any = eval(code, {"__name__": "__main__"})
    if inspect.iscoroutine(done):
        asyncio.run(done)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_script_runs(name: str, server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    run(name)
    printed = capsys.readouterr()
    for expected in EXPECTED[name]:
        assert expected in printed.out
    assert printed.err.count("NaN") == {"samples": 1, "failures": 1}.get(name, 0)


SAMPLE = SingleTurnSample(
    user_input="When?",
    response="At six. Daily.",
    reference="At six.",
    retrieved_contexts=["It opens at six. It is red.", "Ann owns it."],
)


def claims(request: Any) -> Any:
    """Three claims of the response, of which the reference supports two; of its own three the response supports one."""
    yes, no = {"evidence": [1], "verdict": "supported"}, {"evidence": [], "verdict": "not_in_source"}
    if request.task.endswith(".claims"):
        return {name: [f"{name} {i}." for i in range(3)] for name in ("response", "reference")}
    return {"response": {"1": yes, "2": yes, "3": no}, "reference": {"1": yes, "2": no, "3": no}}


@pytest.mark.parametrize(
    ("options", "score"),
    [
        ({}, 4 / 7),  # 2 right, 1 wrong, 2 missing
        ({"mode": "precision"}, 2 / 3),
        ({"mode": "recall"}, 0.5),
        ({"beta": 2.0}, 10 / 19),
    ],
)
def test_factual_correctness_has_ragas_modes(options: dict[str, Any], score: float) -> None:
    result = FactualCorrectness(llm=FakeLLM(claims), **options).single_turn_score(SAMPLE)
    assert result == pytest.approx(score)
    assert isinstance(result.outcome, Score)
    assert sum(verdict.verdict == "supported" for verdict in result.outcome.verdicts) == 3


@pytest.mark.parametrize("weights", [(0.75, 0.25), (1, 3), (1, 0)])
def test_answer_correctness_weighs_claims_and_similarity(weights: tuple[float, float]) -> None:
    embedder = FakeEmbedder()
    first, second = np.asarray(embedder.embed(["At six.", "At six. Daily."]), dtype=float)
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    metric = AnswerCorrectness(llm=FakeLLM(claims), embeddings=embedder, weights=list(weights))
    expected = np.average([4 / 7, cosine], weights=weights)
    assert metric.single_turn_score(SAMPLE) == pytest.approx(expected)
    assert SemanticSimilarity(embeddings=embedder).single_turn_score(SAMPLE) == pytest.approx(cosine)


def test_with_probabilities_the_modes_and_weights_are_of_expected_shares() -> None:
    shares = {"yes": 0.75, "no": 0.25}
    judge = FakeLLM(
        lambda request: LLMReply("yes", probabilities=shares), asking="one_by_one", gives_probabilities=True
    )
    embedder = FakeEmbedder()
    both = [FactualCorrectness(llm=judge, mode=mode).single_turn_score(SAMPLE) for mode in ("precision", "recall")]
    parts = both[0].outcome.breakdown  # of two sentences and one
    precision, missing = parts["precision_expected"], (1 - parts["precision_expected"]) / 2
    assert both == pytest.approx([precision, precision / (precision + missing)])
    correct = AnswerCorrectness(llm=judge, embeddings=embedder).single_turn_score(SAMPLE)
    f1 = FactualCorrectness(llm=judge).single_turn_score(SAMPLE)
    cosine = SemanticSimilarity(embeddings=embedder).single_turn_score(SAMPLE)
    assert correct == pytest.approx(0.75 * f1 + 0.25 * cosine)
    assert f1 < 1.0


@pytest.mark.parametrize(("needed", "score"), [([1], 1 / 3), ([1, 3], 2 / 3), ([], 0.0)])
def test_context_relevancy_is_the_share_of_needed_sentences(needed: list[int], score: float) -> None:
    result = ContextRelevancy(llm=FakeLLM({"ids": needed})).single_turn_score(SAMPLE)
    assert result == pytest.approx(score)


def test_a_summary_is_of_the_reference_contexts_where_there_are_some() -> None:
    judge = FakeLLM(
        lambda request: (
            {"items": [{"keyphrase": "Ten", "question": "Is it?"}]}
            if request.task.endswith("questions")
            else {"answers": {"1": "yes"}}
        )
    )
    source = "Ten words that stand here are the source of it."
    metric = SummarizationScore(llm=judge, coeff=0.25)
    given = SingleTurnSample(response="Ten words.", reference_contexts=[source], retrieved_contexts=["Other."])
    conciseness = 1 - len("Ten words.") / (len(source) + 1e-10)
    assert metric.single_turn_score(given) == pytest.approx(0.75 + 0.25 * conciseness)
    assert all(source in request.user for request in judge.requests if request.task.endswith("questions"))
    for retrieved in (
        {"response": "Ten words."},
        {"summary": "Ten words."},
        {"answer": "Ten words.", "summary": "No."},
    ):
        assert metric.score(retrieved | {"contexts": [source]}) == pytest.approx(0.75 + 0.25 * conciseness)


def test_a_critic_sees_the_fields_that_a_sample_has() -> None:
    judge = FakeLLM({"evidence": [1], "verdict": "no"})
    metric = AspectCritic(name="kind", definition="Is it kind?", llm=judge)
    report = evaluate([SAMPLE, SingleTurnSample(response="Only this.")], [metric]).report
    assert report["kind"].scored == 2  # one version
    assert [("Ann owns it." in request.user) for request in judge.requests] == [True, False]


def test_a_single_sample_without_a_score_is_nan_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    result = Faithfulness(llm=FakeLLM(claims)).single_turn_score(SingleTurnSample(response="At six."))
    assert math.isnan(result)
    assert isinstance(result.outcome, Unscored)
    assert result.reason == result.outcome.detail
    assert "faithfulness is NaN (missing_input): retrieved_contexts: is missing" in capsys.readouterr().err


def test_a_model_that_is_set_on_a_metric_is_asked_from_then_on() -> None:
    judges = [FakeLLM({"ids": []}) for _ in range(2)]
    metric = ContextRelevancy()
    for judge in judges:
        metric.llm = judge
        metric.single_turn_score(SAMPLE)
    assert [len(judge.requests) for judge in judges] == [1, 1]


def test_a_hugging_face_model_embeds(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("sentence_transformers")
    package.SentenceTransformer = lambda name: SimpleNamespace(encode=FakeEmbedder().embed)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    for embedder in (HuggingfaceEmbeddings(model_name="small"), embedding_factory("huggingface", model="small")):
        assert embedder.model == "small"
        assert SemanticSimilarity(embeddings=embedder).single_turn_score(SAMPLE) > -1


def test_a_client_of_another_package_is_refused() -> None:
    with pytest.raises(TypeError, match="client: is anthropic; pass a client of the package openai"):
        llm_factory("claude", provider="anthropic")
    with pytest.raises(TypeError, match="client: is FakeLLM; pass a client"):
        llm_factory("any", client=FakeLLM(claims))


def test_a_metric_of_ones_own_is_refused_where_it_is_written() -> None:
    with pytest.raises(TypeError, match=r"Exact: a metric of your own is a subclass of ragstone\.Metric"):

        class Exact(SingleTurnMetric):
            name = "exact"

    with pytest.raises(TypeError, match="Other: a metric of your own"):

        class Other(Faithfulness):
            async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: object) -> float:
                return 1.0


@pytest.mark.parametrize(
    "bases",
    [
        (MetricWithLLM, SingleTurnMetric),
        (SingleTurnMetric, MetricWithEmbeddings),
        (MetricWithLLM, MetricWithEmbeddings),
    ],
)
def test_bases_of_a_metric_of_ones_own_can_be_combined(bases: tuple[type, ...]) -> None:
    assert isinstance(Faithfulness(), bases[0])
    with pytest.raises(TypeError, match=r"Mine: a metric of your own is a subclass of ragstone\.Metric"):
        type(SingleTurnMetric)("Mine", bases, {"name": "mine"})


class OwnEmbedder(BaseRagasEmbeddings, BaseRagasEmbedding):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text)] for text in texts]


def test_what_looks_like_an_embedder_or_a_client_embeds() -> None:
    looks = SimpleNamespace(embed_documents=OwnEmbedder().embed_documents)
    replies = SimpleNamespace(
        create=lambda **request: SimpleNamespace(
            data=[SimpleNamespace(embedding=each) for each in looks.embed_documents(request["input"])]
        )
    )
    embedders = [
        OwnEmbedder(),
        LangchainEmbeddingsWrapper(looks),
        OpenAIEmbeddings(client=SimpleNamespace(embeddings=replies)),
    ]
    scores = [SemanticSimilarity(embeddings=each).single_turn_score(SAMPLE) for each in embedders]
    assert scores[0] == scores[1] == scores[2] > 0
    assert LangchainEmbeddingsWrapper(looks).embeddings is looks
    with pytest.raises(TypeError, match=r"LangchainEmbeddingsWrapper\(init_embeddings"):
        OpenAIEmbeddings(client=object())


def test_what_ragas_objects_hold() -> None:
    critic = AspectCritic("kind", "Is it kind?")
    critic.definition += "!"
    assert critic.definition == "Is it kind?!"
    assert RunConfig(max_retries=2, seed=1).max_retries == 2
    named = EvaluationDataset([SAMPLE], name="nightly", backend="local/csv")
    assert (named.name, named.backend, len(named)) == ("nightly", "local/csv", 1)


@pytest.mark.parametrize(
    ("retrieved", "reference", "scores"),
    [(["a", "b", "a"], ["a", "c", "d"], [1 / 2, 1 / 3]), ([1, 2], [2, 2], [1 / 2, 1.0]), ([], ["a"], [math.nan, 0.0])],
)
def test_metrics_by_id_need_no_judge(retrieved: list[Any], reference: list[Any], scores: list[float]) -> None:
    row = {"retrieved_context_ids": retrieved, "reference_context_ids": reference}
    metrics = [IDBasedContextPrecision(), IDBasedContextRecall()]
    for sample in (row, SingleTurnSample(**row)):
        result = evaluate([sample], metrics)
        assert list(result) == ["id_based_context_precision", "id_based_context_recall"]
        assert list(result.values()) == pytest.approx(scores, nan_ok=True)
    assert metrics[1].single_turn_score(SingleTurnSample(**row)) == pytest.approx(scores[1])


@pytest.mark.parametrize("ids", ["['a.md', 'b.md']", '["a.md", "b.md"]', np.array(["a.md", "b.md"])])
def test_ids_in_a_cell_of_text_are_a_list(ids: object) -> None:
    sample = EvaluationDataset.from_list([{"reference_context_ids": ids, "retrieved_context_ids": "a.md"}])[0]
    assert (sample.reference_context_ids, sample.retrieved_context_ids) == (["a.md", "b.md"], ["a.md"])
    with pytest.raises(ValueError, match="reference_context_ids"):
        EvaluationDataset.from_list([{"reference_context_ids": {"id": 7}}])


def test_a_name_of_ragas_comes_before_others_that_mean_the_same() -> None:
    row = {"user_input": "Who?", "context": ["All of it."], "retrieved_contexts": ["Ann."], "docs": ["Bob."]}
    assert EvaluationDataset.from_list([row])[0].retrieved_contexts == ["Ann."]
    assert EvaluationDataset.from_list([row], {"contexts": "docs"})[0].retrieved_contexts == ["Bob."]


def test_a_row_that_holds_no_sample_is_refused() -> None:
    rows = [{"question": "Who?"}, {"question": "Who?", "contexts": ["Ann.", 3]}]
    with pytest.raises(ValueError, match=r"row 2: contexts\[1\]: is int"):
        evaluate(rows, [Faithfulness(llm=FakeLLM(claims))])


def test_a_column_that_only_ragstone_would_read_is_not_read() -> None:
    judge = FakeLLM({"ids": []})
    row = {"question": "Who?", "contexts": ["Ann."], "history": "none", "metadata": 3, "id": 7.5}
    assert evaluate([row], [ContextRelevancy(llm=judge)]).to_pandas().loc[0, "history"] == "none"


def test_what_is_no_metric_is_refused() -> None:
    with pytest.raises(TypeError, match="metrics: has 'faithfulness', which is none of"):
        evaluate([SAMPLE], ["faithfulness"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("make", "given", "said"),
    [
        (Faithfulness, {"lm": 1}, "Faithfulness() got an unexpected keyword argument 'lm'"),
        (Faithfulness, {"embeddings": 1}, "unexpected keyword argument 'embeddings'"),
        (ResponseRelevancy, {"embedings": 1}, "ResponseRelevancy() got an unexpected keyword argument 'embedings'"),
        (ContextPrecision, {"against": "response"}, "unexpected keyword argument 'against'"),
        (SemanticSimilarity, {"llm": 1}, "SemanticSimilarity: asks no judge; name its model as embeddings="),
        (AspectCritic, {"name": "a", "definition": "b", "question": "c"}, "unexpected keyword argument 'question'"),
        (evaluate, {"dataset": [SAMPLE], "raise_exception": True}, "unexpected keyword argument 'raise_exception'"),
        (RunConfig, {"timeuot": 3}, "RunConfig() got an unexpected keyword argument 'timeuot'"),
        (LangchainLLMWrapper, {"lm": 1}, "unexpected keyword argument 'lm'"),
        (LangchainLLMWrapper, {"llm": None}, "LangchainLLMWrapper: is None; pass a model of LangChain or LlamaIndex"),
        (LangchainEmbeddingsWrapper, {"embeddings": 1, "chache": 1}, "unexpected keyword argument 'chache'"),
        (llm_factory, {"base_ulr": "http://127.0.0.1:9/v1"}, "unexpected keyword argument 'base_ulr'"),
        (embedding_factory, {"base_ulr": "http://127.0.0.1:9/v1"}, "unexpected keyword argument 'base_ulr'"),
        (OpenAIEmbeddings, {"clinet": 1}, "unexpected keyword argument 'clinet'"),
    ],
)
def test_a_name_that_ragas_has_not_is_refused(make: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        make(**given)


def test_names_that_ragas_has_are_taken() -> None:
    Faithfulness(name="own", max_retries=2, output_type=None, sentence_segmenter=None)
    AnswerCorrectness(answer_similarity=None, beta=2.0, embeddings=None, max_retries=2, weights=[1, 1])
    FactualCorrectness(atomicity="high", coverage="high", language="english")
    AspectCritic("a", "b", None, required_columns={}, strictness=3, max_retries=2)
    SemanticSimilarity(is_cross_encoder=False, threshold=0.5)
    RunConfig(seed=1, log_tenacity=True)
    LangchainLLMWrapper(FakeLLM(claims), run_config=RunConfig(), bypass_temperature=True)
    llm_factory("m", base_url="http://127.0.0.1:9/v1", temperature=0, max_tokens=9)


def test_a_judge_in_the_fourth_place_is_asked() -> None:
    judge = FakeLLM({"ids": []})
    node = SimpleNamespace(node=SimpleNamespace(get_content=lambda: "It rains."))
    engine = SimpleNamespace(query=lambda question: SimpleNamespace(source_nodes=[node]))
    ragas_integrations.evaluate(engine, [{"user_input": "When?"}], [ContextRelevancy()], judge)
    assert judge.requests


def _assign_to_a_class() -> None:
    Faithfulness.statement_generator_prompt = "\u00bfQu\u00e9?"


@pytest.mark.parametrize(
    "assign",
    [
        lambda: setattr(Faithfulness(), "statement_generator_prompt", "\u00bfQu\u00e9?"),
        lambda: setattr(ResponseRelevancy(), "question_generation", "\u00bfQu\u00e9?"),
        lambda: Faithfulness(nli_statements_prompt="\u00bfQu\u00e9?"),
        lambda: AspectCritic("a", "b", single_turn_prompt="\u00bfQu\u00e9?"),
        lambda: type("Mine", (Faithfulness,), {"nli_statements_prompt": "\u00bfQu\u00e9?"}),
        _assign_to_a_class,
        lambda: Faithfulness().set_prompts(nli_statements_prompt="\u00bfQu\u00e9?"),
    ],
)
def test_a_prompt_is_refused_wherever_it_is_assigned(assign: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"its prompts are ragstone's; pass instructions= to a metric of"):
        assign()
    with pytest.raises(AttributeError, match="Faithfulness.statement_generator_prompt: its prompts are ragstone's"):
        Faithfulness().statement_generator_prompt.instruction = "\u00bfQu\u00e9?"


def test_the_default_judge_is_said_before_it_is_asked(server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    reply = server.reply
    server.reply = lambda body: said.append(capsys.readouterr().err) or reply(body)
    Faithfulness().single_turn_score(SAMPLE)
    assert said[0] == "ragstone: no judge is named; openai:gpt-5-mini answers\n"


def test_no_judge_is_an_error_that_names_both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path))
    with pytest.raises(RagstoneError, match=r"OPENAI_API_KEY.*ragstone pull"):
        evaluate([SAMPLE], [Faithfulness()])


def test_an_embedder_that_nobody_named_is_said(server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert SemanticSimilarity().single_turn_score(SAMPLE) == 1.0
    assert "no embeddings are named; openai:text-embedding-3-small" in capsys.readouterr().err
    assert server.bodies[-1]["model"] == "text-embedding-3-small"
