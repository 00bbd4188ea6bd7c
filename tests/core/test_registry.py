"""Metrics, judges and embedders by name: each name gives what it says, each wrong one what there is instead."""

import sys
from dataclasses import dataclass

import pytest

import ragstone.metrics
from ragstone import ContextRelevancy, LLMRequest, ResponseRelevancy
from ragstone.clients import OpenAICompatible
from ragstone.registry import (
    NullJudge,
    RegistryError,
    check_name,
    checked_option,
    is_local,
    make_embedder,
    make_llm,
    make_metric,
    metric_class,
    metric_names,
    model_of,
)
from ragstone.testing import FakeEmbedder, FakeLLM


@dataclass(frozen=True, kw_only=True)
class Mine(ContextRelevancy):
    name = "mine"
    weights: tuple[float, ...] = ()


def judge():
    return FakeLLM(lambda _: None, model="mine")


def broken():
    raise OSError("no licence")


HERE = "its_module"


@pytest.fixture(autouse=True)
def _module(monkeypatch):
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


@pytest.fixture
def openai(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_the_metrics_are_those_that_the_package_exports():
    classes = {getattr(ragstone.metrics, name) for name in ragstone.metrics.__all__} - {
        ragstone.metrics.Metric,
        ragstone.metrics.Criterion,
    }
    assert {metric_class(name) for name in metric_names()} == classes
    assert metric_class(f"{HERE}:Mine") is Mine


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bleu", "there is no metric 'bleu'; there are alignment_coverage, .* or module:Class"),
        ("rag", "'rag' is a group of metrics; name one of them: response_relevancy, .*faithfulness"),
        (f"{HERE}:judge", "is neither a subclass of ragstone.Metric nor a metric"),
        (f"{HERE}:Nothing", "its_module:Nothing cannot be loaded .AttributeError"),
        ("no_such_module:X", "no_such_module:X cannot be loaded .ModuleNotFoundError"),
    ],
)
def test_a_name_of_no_metric(name, message):
    with pytest.raises(RegistryError, match=message):
        metric_class(name)


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
    splitter = lambda text: [(text, 0, len(text))]  # noqa: E731
    assert make_metric("context_relevancy", {"splitter": splitter}, NullJudge()).splitter is splitter


def test_judges_are_made_without_loading_or_asking(openai):
    assert make_llm("openai:gpt-5-mini").model == "gpt-5-mini"
    server = make_llm("m@http://127.0.0.1:9", max_concurrency=3)
    assert isinstance(server, OpenAICompatible)
    assert (server.model, server.base_url) == ("m", "http://127.0.0.1:9/v1")
    assert (make_llm("local").asking, make_llm("local:/none.gguf").asking) == ("one_by_one", "one_by_one")
    assert make_llm(f"{HERE}:judge").model == "mine"
    assert [model_of(name) for name in ("openai:a", "b@http://x", "http://x", "local")] == [
        "a",
        "b",
        "http://x",
        "local",
    ]
    with pytest.raises(RegistryError, match="its_module:broken cannot be loaded .OSError: no licence"):
        make_llm(f"{HERE}:broken")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt-5", "'gpt-5' is none of local"),
        ("openai:", "is none of"),
        ("m@http://", "must look like http"),
        (3, "is int"),
        (
            "openai:m?tempature=0",
            "no setting 'tempature'; there are temperature, seed, reasoning_effort: openai:m.temp",
        ),
        ("openai:m?seed=x", "seed: 'x' should be a valid integer"),
    ],
)
def test_a_name_of_no_judge(name, message):
    with pytest.raises(RegistryError, match=message):
        check_name(name)


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
    assert make_embedder(None, make_llm("openai:a"), llm_name="openai:a").model == "text-embedding-3-small"
    assert make_embedder(None, "openai:a").model == "text-embedding-3-small"
    assert [is_local(name) for name in ("local", "local:x", "locally")] == [True, True, False]
    local = make_llm("local")
    assert type(make_embedder(None, local)).__name__ == type(make_embedder(None, "local")).__name__ == "LocalEmbedder"
    with pytest.raises(RegistryError, match="FakeLLM does not embed texts; name an embedder"):
        make_embedder(None, judge())
    metric = make_metric("response_relevancy", {}, judge(), FakeEmbedder())
    assert isinstance(metric, ResponseRelevancy)
    assert metric.judge_embedder == metric.embedder
    assert isinstance(metric.embedder, FakeEmbedder)
