"""Scripts for DeepEval, as people write them, run with `deepeval` replaced in their import lines and nothing else."""

import asyncio
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragstone
import ragstone_compat
from ragstone.errors import RagstoneError
from ragstone.judge import LLM
from ragstone.testing.contracts import LLMContract
from ragstone_compat.deepeval import evaluate
from ragstone_compat.deepeval.dataset import EvaluationDataset, Golden
from ragstone_compat.deepeval.metrics import FaithfulnessMetric, GEval, SummarizationMetric
from ragstone_compat.deepeval.models import AzureOpenAIModel, DeepEvalBaseLLM, OpenAIModel
from ragstone_compat.deepeval.test_case import LLMTestCase, LLMTestCaseParams, MLLMImage, ToolCall

from ..support.openai_server import OpenAIServer, error  # noqa: TID252 - under importlib mode tests are no package
from .judging import changed

EXPECTED = {
    "summarization": [
        "Summarization Score: 1.0",
        "Explanation: The original supports 1 of 1 claims",
        "'Coverage': 1.0",
    ],
    "correctness": ["Correctness [GEval]: 0.8 True True", "how far is it met? eight."],
    "steps_and_rubric": ["test_case_0 True [('Tone [GEval]', 0.8888888888888888), ('Grounded [GEval]', 1.0)]"],
    "rag": [
        "Answer Relevancy 1.0 0.7 True None True",
        "Faithfulness 1.0 0.7 True None True",
        "Contextual Precision 1.0",
        "Contextual Recall 1.0",
        "Contextual Relevancy 1.0",
    ],
    "own_model": ["Answer Relevancy 1.0 True", "Faithfulness 1.0 True"],
    "own_model_with_schema": ["1.0 True", "{'Alignment': 1.0, 'Coverage': 1.0} confined"],
    "many_at_once": ["{'Answer Relevancy': 1.0, 'Faithfulness': 1.0}\n" * 3],
    "goldens": ["pass rate 100% ['Seven.', None]", "\n0 1\n", "None ['Ann did.']"],
    "own_metric": ["True [1.0, 1.0]", "[(None, False, 'ValueError: no such file'), (1.0, True, None)]"],
    "models": ["gpt-4.1 0.8", "llama3.1:8b 0.8", "gemini-2.5-flash 0.8"],
    "inner_modules": [
        "[['Ann did.'], ['At six.', 'Daily.']]\n['test_case_0', 'test_case_1']\n['It is so.'] yes",
        "judge https://ours.example/openai/v1",
        "keep your data set in a file",
    ],
    "failures": [
        "[[(1.0, True, None), (1.0, True, None)], [(1.0, True, None), (None, False, 'retrieval_context: is missing",
        "[[(1.0, True, None), (1.0, True, None)], [(1.0, True, None)]]",
        "raised 1 of 4 could not be scored; first: Faithfulness (score: None",
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_script_runs(name: str, server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(changed("deepeval", name), f"{name}.py", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    for expected in EXPECTED[name]:
        assert expected in printed


def test_a_test_file_runs_under_pytest(server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(changed("deepeval", "in_pytest"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    path = os.pathsep.join(str(Path(package.__file__).parents[1]) for package in (ragstone, ragstone_compat))
    environ = os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environ)
    assert "1 failed, 2 passed" in done.stdout
    assert "Metrics: Right [GEval] (score: 0.8, threshold: 1.0, strict: False" in done.stdout


def test_criteria_and_steps_reach_the_judge_with_the_fields_that_they_name(server: OpenAIServer) -> None:
    params = [LLMTestCaseParams.ACTUAL_OUTPUT, LLMTestCaseParams.RETRIEVAL_CONTEXT]
    metric = GEval(name="Kind", criteria="Is it kind?", evaluation_steps=["Read it."], evaluation_params=params)
    metric.measure(LLMTestCase(input="unseen", actual_output="the answer", retrieval_context=["a chunk"]))
    asked = str(server.bodies[-1]["messages"])
    for part in ("Is it kind?", "Read it.", "the answer", "a chunk", "ten: fully"):
        assert part in asked
    assert "unseen" not in asked


def test_what_is_undefined_is_a_number_that_fails(
    openai_server: Callable[..., OpenAIServer], capsys: pytest.CaptureFixture[str]
) -> None:
    server = openai_server(lambda body: '{"claims": []}')
    metric = FaithfulnessMetric(model=OpenAIModel("any", base_url=server.url))
    case = LLMTestCase(input="Who?", actual_output="Hm.", retrieval_context=["Ann did it."])
    assert math.isnan(metric.measure(case))
    assert (f"{metric.score:.2f}", metric.score >= 0.0, metric.success, metric.is_successful()) == (
        "nan", False, False, False,
    )  # fmt: skip
    assert metric.error == "the judge found no claims in response (0 of 0)"
    assert capsys.readouterr().err == f"ragstone: Faithfulness is NaN: {metric.error}\n"
    (result,) = evaluate([case] * 2, [metric], show_indicator=False).test_results[:1]
    assert math.isnan(result.metrics_data[0].score)
    assert "ragstone: 2 scores are NaN; first: Faithfulness (score: nan" in capsys.readouterr().err


def test_a_metric_that_fails_keeps_no_score_of_another_test_case(server: OpenAIServer) -> None:
    metric = FaithfulnessMetric()
    case = LLMTestCase(input="Who?", actual_output="A.", retrieval_context=["A."])
    assert metric.measure(case) == 1.0
    server.reply = lambda body: error(400, "no such response")
    with pytest.raises(Exception, match="no such response"):
        metric.measure(case)
    assert (metric.score, metric.reason, metric.success, metric.outcome) == (None, None, None, None)


def test_a_missing_field_raises(server: OpenAIServer) -> None:
    with pytest.raises(RagstoneError, match="Summarization: actual_output: is missing"):
        SummarizationMetric().measure(LLMTestCase(input="A long text."))


@pytest.mark.parametrize(
    ("options", "score", "counted", "reasons"),
    [
        ({}, 2 / 3, "contradict 1 of 3 claims of the response", ["C.: contradicted."]),
        (
            {"penalize_ambiguous_claims": True},
            1 / 3,
            "1 of 3 claims supported",
            ["B.: not_in_source.", "C.: contradicted."],
        ),
        ({"strict_mode": True}, 0.0, "contradict 1 of 3 claims of the response", ["C.: contradicted."]),
    ],
)
def test_faithfulness(
    options: dict[str, Any], score: float, counted: str, reasons: list[str], server: OpenAIServer
) -> None:
    words = ("supported", "not_in_source", "contradicted")
    verdicts = {str(i): {"evidence": [], "verdict": word} for i, word in enumerate(words, 1)}

    def judged(body: dict[str, Any]) -> str:
        listing = "List the" in str(body["messages"])
        return json.dumps({"claims": ["A.", "B.", "C."]} if listing else {"verdicts": verdicts})

    server.reply = judged
    metric = FaithfulnessMetric(threshold=0.5, **options)
    metric.measure(LLMTestCase(input="Who?", actual_output="A. B. C.", retrieval_context=["A."]))
    assert metric.score == pytest.approx(score)
    assert metric.success == (score >= 0.5)
    assert str(metric.reason).endswith(f"{counted}. {' '.join(reasons)}")


class Waiting(DeepEvalBaseLLM):
    """Answers on the event loop, with an object of the schema where there is one."""

    async def a_generate(self, prompt: str, schema: Any = None) -> Any:
        await asyncio.sleep(0)
        return "yes" if schema is None else schema(answer="yes")

    def get_model_name(self) -> str:
        return "waiting"


class TestOwnModel(LLMContract):
    def llm(self) -> LLM:
        return FaithfulnessMetric(model=Waiting()).judge


class Sync(DeepEvalBaseLLM):
    """Answers by `generate` alone, with what its schema allows."""

    def generate(self, prompt: str, schema: Any) -> Any:
        if "claims" in schema.model_fields:
            return schema(claims=["A."])
        with pytest.raises(ValueError, match="greater than or equal to 1"):
            schema.model_validate({"verdicts": {"1": {"evidence": [0], "verdict": "supported"}}})
        return schema.model_validate({"verdicts": {"1": {"evidence": [1], "verdict": "supported"}}})

    async def a_generate(self, prompt: str, schema: Any) -> Any:
        raise NotImplementedError

    def get_model_name(self) -> str:
        return "sync"


def test_without_async_mode_generate_is_asked_by_a_schema_with_its_bounds() -> None:
    case = LLMTestCase(input="Who?", actual_output="A.", retrieval_context=["A."])
    metric = FaithfulnessMetric(model=Sync(), async_mode=False)
    assert metric.measure(case) == 1.0
    results = evaluate([case], [FaithfulnessMetric(model=Sync())], run_async=False, show_indicator=False)
    assert results.test_results[0].success
    metric.model = Waiting()
    assert metric.judge.model == "waiting"


@pytest.mark.parametrize(
    ("make", "given", "said"),
    [
        (FaithfulnessMetric, {"modle": 1}, "unexpected keyword argument 'modle'"),
        (
            evaluate,
            {"test_cases": [], "metrics": [], "ignore_error": True},
            "unexpected keyword argument 'ignore_error'",
        ),
        (OpenAIModel, {"model": "m", "base_ulr": "http://127.0.0.1:9/v1"}, "unexpected keyword argument 'base_ulr'"),
        (AzureOpenAIModel, {"deployment": "m"}, "unexpected keyword argument 'deployment'"),
    ],
)
def test_a_name_that_deepeval_has_not_is_refused(make: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make(**given)


def test_calls_of_tools_and_images_are_kept_and_no_metric_sees_them(server: OpenAIServer) -> None:
    call = ToolCall(name="search", input_parameters={"q": "shoes"})
    case = LLMTestCase(input="Who?", actual_output="A.", retrieval_context=["A."], tools_called=[call])
    assert FaithfulnessMetric().measure(case) == 1.0
    assert (case.tools_called, case.expected_tools, case.multimodal) == ([call], None, False)
    with pytest.raises(NotImplementedError, match="Tools .*: it sees input, .*, not tools_called: ragstone scores"):
        GEval(name="Tools", criteria="Right?", evaluation_params=[LLMTestCaseParams.TOOLS_CALLED])
    image = MLLMImage(url="https://a.example/car.png")
    case = LLMTestCase(input=f"What is {image}?", actual_output="A.", retrieval_context=["A."])
    assert case.multimodal
    with pytest.raises(NotImplementedError, match="Faithfulness: ragstone scores texts, not images"):
        FaithfulnessMetric().measure(case)


GOLDEN = {"input": "Who, then?", "expected_output": "Ann.", "context": ["A.", "B."]}
GOLDEN |= {"tools_called": [{"name": "search"}], "additional_metadata": {"from": "é"}}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", json.dumps([GOLDEN])),
        ("jsonl", f"{json.dumps(GOLDEN)}\n\n"),
        (
            "csv",
            "input,expected_output,context,tools_called,additional_metadata\n"
            '"Who, then?",Ann.,A.|B.,"[{""name"": ""search""}]","{""from"": ""é""}"\n',
        ),
    ],
)
def test_goldens_are_read_from_a_file(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "goldens").write_text(text, encoding="utf-8")
    dataset = EvaluationDataset()
    getattr(dataset, f"add_goldens_from_{kind}_file")(str(tmp_path / "goldens"))
    assert dataset.goldens == [Golden.model_validate(GOLDEN)]


def test_goldens_of_other_columns(tmp_path: Path) -> None:
    (tmp_path / "goldens.csv").write_text("query,context,tools_called\nWho?,A.;B.,\n")
    dataset = EvaluationDataset()
    dataset.add_goldens_from_csv_file(str(tmp_path / "goldens.csv"), input_col_name="query", context_col_delimiter=";")
    assert dataset.goldens == [Golden(input="Who?", context=["A.", "B."])]


def test_a_list_of_test_cases_is_for_evaluate() -> None:
    with pytest.raises(TypeError, match="Faithfulness: measures one LLMTestCase, not a list; evaluate takes a list of"):
        FaithfulnessMetric().measure([LLMTestCase(input="Who?")])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("evals_iterator", "loop over dataset.goldens, add an LLMTestCase of each answer, and call evaluate"),
        ("push", "keep your data set in a file"),
        ("save_as", "write each golden.model_dump"),
        ("generate_goldens_from_docs", "write Goldens yourself"),
    ],
)
def test_what_a_data_set_of_deepeval_has_more_is_refused_where_it_is_called(method: str, said: str) -> None:
    with pytest.raises(NotImplementedError, match=said):
        getattr(EvaluationDataset(), method)(metrics=[])
    assert not hasattr(EvaluationDataset(), "evals")


def test_prompts_of_deepeval_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="Faithfulness: its prompts are ragstone's; pass instructions= to a"):
        FaithfulnessMetric(evaluation_template=Waiting)
    metric = FaithfulnessMetric(model="gpt-5", evaluation_template=None)
    with pytest.raises(NotImplementedError, match="Faithfulness: its prompts are ragstone's"):
        metric.evaluation_template = Waiting


def test_the_default_judge_is_said(server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    FaithfulnessMetric().measure(LLMTestCase(input="Who?", actual_output="A.", retrieval_context=["A."]))
    assert capsys.readouterr().err == "ragstone: no judge is named; openai:gpt-5-mini answers\n"


def test_one_judge_serves_all_test_cases(server: OpenAIServer) -> None:
    cases = [LLMTestCase(input="Who?", actual_output=f"{i}.", retrieval_context=["A."]) for i in range(3)]
    metric = FaithfulnessMetric()
    results = evaluate(cases, [metric], show_indicator=False).test_results
    (judge,) = {id(result.metrics_data[0].judge) for result in results}
    assert judge == id(metric.judge)
    assert metric.score is None
