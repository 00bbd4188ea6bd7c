"""Metrics, judges and embedders by name: each name gives what it says, each wrong one what there is, or is meant."""

import sys
from dataclasses import dataclass

import pytest

import ragstone.metrics
from ragstone import ContextRelevancy, LLMRequest, ResponseRelevancy, evaluate
from ragstone.clients import OpenAICompatible
from ragstone.judge_names import NullJudge, RegistryError, check_name, is_local, make_embedder, make_llm, model_of
from ragstone.metrics.names import checked_option, make_metric, metric_class, metric_names
from ragstone.testing import FakeEmbedder, FakeLLM


@dataclass(frozen=True, kw_only=True)
class Mine(ContextRelevancy):
    name = "mine"
    weights: tuple[float, ...] = ()


def my_judge():
    return FakeLLM("", model="mine")


def broken():
    raise OSError("no licence")


def ends():
    sys.exit(0)


HERE = "its_module"
ROWS = [{"question": "Who?", "contexts": ["Ann."], "answer": "Ann."}]


@pytest.fixture(autouse=True)
def _module(monkeypatch):
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


@pytest.fixture
def openai(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_the_metrics_are_those_that_the_package_exports():
    others = {ragstone.metrics.Metric, ragstone.metrics.Criterion}
    classes = {getattr(ragstone.metrics, name) for name in ragstone.metrics.__all__}
    assert {metric_class(name) for name in metric_names()} == classes - others
    assert metric_class(f"{HERE}:Mine") is Mine


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bleu", "there is no metric 'bleu'; there are alignment_coverage, .* or module:Class$"),
        ("rag", "'rag' is a group of metrics; name one of them: response_relevancy, .*faithfulness"),
        (f"{HERE}:my_judge", "is neither a subclass of ragstone.Metric nor a metric"),
        (f"{HERE}:Nothing", "its_module:Nothing cannot be loaded .AttributeError"),
        ("no_such_module:X", "no_such_module:X cannot be loaded .ModuleNotFoundError"),
        ("LLMContextPrecisionWithReference", "Did you mean context_precision.$"),
        ("AnswerRelevancyMetric", "Did you mean response_relevancy.$"),
        ("Faithfulness", "Did you mean faithfulness.$"),
        ("faithfulnes", "Did you mean faithfulness.$"),
        ("answer_correctness", "Did you mean factual_correctness.$"),
        ("GEval", "Did you mean a Criterion.$"),
        ("answer_similarity", "or module:Class$"),
    ],
)
def test_a_name_of_no_metric(name, message):
    with pytest.raises(RegistryError, match=message):
        metric_class(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai:", "is none of"),
        ("m@http://", "must look like http"),
        (3, "is int"),
        (
            "openai:m?tempature=0",
            "no setting 'tempature'; there are temperature, seed, reasoning_effort: openai:m.temp",
        ),
        ("openai:m?seed=x", "seed: 'x' should be a valid integer"),
        ("opanai:gpt-4o", "Did you mean openai:gpt-4o.$"),
        ("anthropic:claude-sonnet-4", "Did you mean langchain:anthropic:claude-sonnet-4.$"),
        ("claude-sonnet-4", "Did you mean langchain:anthropic:claude-sonnet-4.$"),
        ("llama3.1:8b", r"Did you mean llama3.1:8b@http://127.0.0.1:11434/v1 \(Ollama\).$"),
        ("localhost:11434", "Did you mean http://localhost:11434/v1.$"),
        ("http//localhost:11434", "Did you mean http://localhost:11434/v1.$"),
        ("llama3@localhost:11434", "Did you mean llama3@http://localhost:11434/v1.$"),
        ("loacl", "Did you mean local.$"),
        ("openai:m?temperature=nan", "temperature: 'nan' should be a finite number"),
        ("openai:m?temperature=-1", "temperature: '-1' should be greater than or equal to 0"),
        ("openai:m?reasoning_effort=", "reasoning_effort: '' is blank"),
        ("openai:m?seed=1&seed=2", "a setting is there twice"),
        ("m@http://h/v1?temprature=1", "there is no setting 'temprature'; there are temperature, seed"),
        ("m@http://h/v1?max_tokens=9", "there is no setting 'max_tokens'"),
        ("langchain:openai:m?temperature=0", "temperature: only openai:MODEL, URL and MODEL@URL take settings$"),
        ("systemone:m@http://h?seed=7", "seed: only openai:MODEL, URL and MODEL@URL take settings$"),
        ("local?seed=7", "seed: only openai:MODEL, URL and MODEL@URL take settings$"),
        ("its_module:my_judge?seed=7", "seed: only openai:MODEL, URL and MODEL@URL take settings$"),
        ("http://[", "must look like http"),
        ("m@http://h:abc/v1", "must look like http"),
        ("m@http://h:99999/v1", "must look like http"),
        ("m@http://h/v1\u200b", "base_url: character 12 of 12 is ZERO WIDTH SPACE"),
        (" ", "or module:function$"),
        ("azure", r"Did you mean openai:MODEL with OPENAI_BASE_URL=https://RESOURCE.openai.azure.com/openai/v1\?$"),
        ("azure:gpt-4o", "Did you mean openai:gpt-4o with OPENAI_BASE_URL=https://RESOURCE.openai.azure.com/openai/v1"),
        ("ollama", r"Did you mean MODEL@http://127.0.0.1:11434/v1\?$"),
        ("ollama/llama3", r"Did you mean llama3@http://127.0.0.1:11434/v1\?$"),
        ("openai", r"Did you mean openai:MODEL\?$"),
        ("openai/gpt-4o", r"Did you mean openai:gpt-4o\?$"),
        ("OpenAI:gpt-4o", r"Did you mean openai:gpt-4o\?$"),
        ("bedrock/nova", r"Did you mean langchain:bedrock_converse:nova\?$"),
        ("gpt-4o", "'gpt-4o' is none of local.*Did you mean openai:gpt-4o, if it is OpenAI's.$"),
    ],
)
def test_a_name_of_no_judge(name, message):
    with pytest.raises(RegistryError, match=message):
        check_name(name)
    if isinstance(name, str):
        with pytest.raises(RegistryError, match=f"llm: .*{message}"):
            evaluate(ROWS, ["faithfulness"], llm=name)


def test_a_client_is_no_my_judge():
    openai = pytest.importorskip("openai")
    for role in ("llm", "embedder"):
        with pytest.raises(TypeError, match=f"{role}: is OpenAI, a client and no model; name the model"):
            evaluate(ROWS, ["response_relevancy"], **{"llm": my_judge(), role: openai.OpenAI(api_key="k")})


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("model", "write llm="),
        ("max_workers", "write limits=Limits.max_concurrency=...."),
        ("total", "write nothing: the bar has an end"),
        ("x", "`help.evaluate.` lists"),
    ],
)
def test_options_of_evaluate(option, meant):
    with pytest.raises(TypeError, match=f"{option}: evaluate has no such option; {meant}"):
        evaluate(ROWS, ["faithfulness"], **{option: 1})


@pytest.mark.parametrize("given", [(), (ROWS, ["faithfulness"], "local")])
def test_positions_of_evaluate(given):
    with pytest.raises(
        TypeError, match="^evaluate: .*argument.*; samples and metrics come by position, llm= and others by name"
    ):
        evaluate(*given)


@pytest.mark.parametrize("option", ["max_concurrency", "max_calls", "call_timeout"])
def test_options_that_are_of_limits(option):
    with pytest.raises(
        TypeError, match=rf"^{option}: evaluate has no such option; write limits=Limits\({option}=\.\.\.\)$"
    ):
        evaluate(ROWS, ["faithfulness"], **{option: 1})
    with pytest.raises(TypeError, match=r"^limits: is dict; pass Limits\("):
        evaluate(ROWS, ["faithfulness"], limits={option: 1})


def test_options_are_of_their_types():
    made = make_metric(f"{HERE}:Mine", {"weights": [1, 2.5], "granularity": "chunk"}, NullJudge())
    assert (made.weights, made.granularity, made.judge.model) == ((1.0, 2.5), "chunk", "none")
    assert checked_option("context_relevancy", "threshold", "0.5") == 0.5
    for option, value, message in (
        ("colour", "red", "context_relevancy has no option 'colour'; it has asking, "),
        ("llm", "local", "has no option 'llm'"),
        ("splitter", "x", "has no option 'splitter'"),
        ("threshold", "much", "context_relevancy.threshold: 'much' should be a valid number"),
        ("threshold", 7, "context_relevancy: threshold"),
    ):
        with pytest.raises(RegistryError, match=message):
            make_metric("context_relevancy", {option: value}, NullJudge())


def test_judges_are_made_without_loading_or_asking(openai):
    assert make_llm("openai:gpt-5-mini").model == "gpt-5-mini"
    server = make_llm("m@http://127.0.0.1:9", max_concurrency=3)
    assert isinstance(server, OpenAICompatible)
    assert (server.model, server.base_url) == ("m", "http://127.0.0.1:9/v1")
    assert (make_llm("local").asking, make_llm("local:/none.gguf").asking) == ("one_by_one", "one_by_one")
    assert make_llm(f"{HERE}:my_judge").model == "mine"
    names = ("openai:a", "b@http://x", "http://x", "local")
    assert [model_of(name) for name in names] == ["a", "b", "http://x", "local"]
    with pytest.raises(RegistryError, match="its_module:ends cannot be loaded .SystemExit: 0"):
        make_llm(f"{HERE}:ends")
    with pytest.raises(RegistryError, match="its_module:broken cannot be loaded .OSError: no licence"):
        make_llm(f"{HERE}:broken")
    with pytest.raises(
        RegistryError, match="no_such_package:make cannot be loaded .*Did you mean langchain:no_such_pa"
    ):
        make_llm("no_such_package:make")


def test_settings_stand_behind_a_judges_name(openai_server):
    server = openai_server(lambda body: "yes")
    judge = make_llm(f"m@{server.url}?temperature=0.5&api=2&seed=7&reasoning_effort=low")
    judge.generate(LLMRequest("t", "s", "u", None))
    sent = server.bodies[0]
    assert [sent[name] for name in ("model", "temperature", "seed", "reasoning_effort")] == ["m", 0.5, 7, "low"]
    assert judge.base_url.endswith("/v1?api=2")


def test_the_embedder_is_of_the_judges_own_provider(openai):
    server = OpenAICompatible("m", base_url="http://127.0.0.1:9")
    assert make_embedder(None, server) is server
    assert make_embedder(None, make_llm("openai:a")).model == "text-embedding-3-small"
    assert make_embedder(None, "openai:a").model == "text-embedding-3-small"
    assert [is_local(name) for name in ("local", "local:x", "locally")] == [True, True, False]
    local = make_llm("local")
    assert type(make_embedder(None, local)).__name__ == type(make_embedder(None, "local")).__name__ == "LocalEmbedder"
    with pytest.raises(RegistryError, match="FakeLLM does not embed texts; name an embedder"):
        make_embedder(None, my_judge())
    metric = make_metric("response_relevancy", {}, my_judge(), FakeEmbedder())
    assert isinstance(metric, ResponseRelevancy)
    assert isinstance(metric.judge_embedder, FakeEmbedder)
