"""A name that names nothing gets the right guess or none: judges, metrics, options and commands of other libraries."""

import pytest

from ragstone import evaluate
from ragstone.errors import without_keys
from ragstone.registry import RegistryError, make_llm, metric_class
from ragstone.testing import FakeLLM

ROWS = [{"question": "Who?", "contexts": ["Ann."], "answer": "Ann."}]


def guess(message):
    return message.partition(" Did you mean ")[2].removesuffix("?")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("opanai:gpt-4o", "openai:gpt-4o"),
        ("anthropic:claude-sonnet-4", "langchain:anthropic:claude-sonnet-4"),
        ("claude-sonnet-4", "langchain:anthropic:claude-sonnet-4"),
        ("llama3.1:8b", "llama3.1:8b@http://127.0.0.1:11434/v1 (Ollama)"),
        ("localhost:11434", "http://localhost:11434/v1"),
        ("loacl", "local"),
        ("gpt-4o", "openai:gpt-4o, if it is OpenAI's"),
        ("no_such_package:make", "langchain:no_such_package:make"),
    ],
)
def test_judges(name, meant):
    with pytest.raises(RegistryError) as caught:
        make_llm(name)
    assert guess(str(caught.value)) == meant
    with pytest.raises(RegistryError, match="llm: ") as caught:
        evaluate(ROWS, ["faithfulness"], llm=name)
    assert guess(str(caught.value)) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("contextual_precision", "context_precision"),
        ("LLMContextPrecisionWithReference", "context_precision"),
        ("ContextualPrecisionMetric", "context_precision"),
        ("contextual_recall", "context_recall"),
        ("AnswerRelevancyMetric", "response_relevancy"),
        ("answer_relevancy", "response_relevancy"),
        ("Faithfulness", "faithfulness"),
        ("faithfulnes", "faithfulness"),
        ("GEval", "a Criterion"),
        ("bias", ""),
        ("hallucination", "faithfulness"),
        ("answer_correctness", ""),
    ],
)
def test_metrics(name, meant):
    with pytest.raises(RegistryError, match="there is no metric") as caught:
        metric_class(name)
    assert guess(str(caught.value)) == meant


def test_a_placeholder_is_no_key():
    for text in ("pass api_key=..., or base_url=...", 'api_key="..."', "password: \u2026"):
        assert without_keys(text) == text
    assert without_keys("api_key=...abcd1234") == "api_key=[hidden]"


@pytest.mark.parametrize(
    ("option", "meant"),
    [("model", "write llm="), ("max_workers", "write max_concurrency="), ("x", "`help.evaluate.` lists")],
)
def test_options_of_evaluate(option, meant):
    with pytest.raises(TypeError, match=f"{option}: evaluate has no such option; {meant}"):
        evaluate(ROWS, ["faithfulness"], **{option: 1})


def test_a_client_is_no_judge():
    openai = pytest.importorskip("openai")
    for role in ("llm", "embedder"):
        with pytest.raises(TypeError, match=f"{role}: is OpenAI, a client and no model; name the model"):
            evaluate(ROWS, ["response_relevancy"], **{"llm": FakeLLM("yes"), role: openai.OpenAI(api_key="k")})
