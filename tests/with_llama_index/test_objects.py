"""LlamaIndex' model objects as they are, without a wrapper, at every door."""

import asyncio

import pytest
from llama_index.core import MockEmbedding
from llama_index.core.llms import MockLLM

from ragstone import ContextRelevancy, Monitor, ResponseRelevancy, aevaluate, evaluate
from ragstone.identity import judge_key
from ragstone.live import CallableSink
from ragstone_llama_index import LlamaIndexEmbedder, LlamaIndexLLM, MetricEvaluator

from .models import SAMPLE, Chatting, Completing, Placing, truth


def by_evaluate(llm):
    return evaluate([SAMPLE], ["context_relevancy"], llm=llm, progress=False)[0].outcome.value


def by_aevaluate(llm):
    return asyncio.run(aevaluate([SAMPLE], [ContextRelevancy()], llm=llm, progress=False))[0].outcome.value


def by_metric(llm):
    return ContextRelevancy(llm=llm).score(SAMPLE).value


def by_metric_on_a_loop(llm):
    return asyncio.run(ContextRelevancy(llm=llm).ascore(SAMPLE)).value


def by_monitor(llm):
    outcomes = []
    with Monitor(["context_relevancy"], llm=llm, sinks=CallableSink(outcomes.extend)) as monitor:
        monitor.submit(SAMPLE)
    return outcomes[0].outcome.value


def by_evaluator(llm):
    inputs = SAMPLE.user_input, SAMPLE.response, SAMPLE.retrieved_contexts
    return MetricEvaluator("context_relevancy", llm).evaluate(*inputs).score


@pytest.mark.parametrize("make", [Chatting, Completing])
@pytest.mark.parametrize("door", [by_evaluate, by_aevaluate, by_metric, by_metric_on_a_loop, by_monitor, by_evaluator])
def test_a_model_object_judges_at_every_door(door, make) -> None:
    expected = ContextRelevancy(llm=LlamaIndexLLM(make(truth))).score(SAMPLE).value
    llm = make(truth)
    before = dict(vars(llm))
    assert door(llm) == expected
    assert dict(vars(llm)) == before


def test_an_embedding_model_and_a_writer_are_taken_as_they_are() -> None:
    metric = ResponseRelevancy(llm=Chatting(truth), writer=Completing(truth), embedder=Placing())
    assert (type(metric.writer), type(metric.judge_embedder)) == (LlamaIndexLLM, LlamaIndexEmbedder)
    report = evaluate([SAMPLE], ["response_relevancy"], llm=Chatting(truth), embedder=Placing(), progress=False)
    assert report[0].outcome.value == metric.score(SAMPLE).value
    assert judge_key(metric.judge) == judge_key(LlamaIndexLLM(Chatting(truth)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ContextRelevancy(llm=MockEmbedding(embed_dim=3)), "llm: MockEmbedding is not a LlamaIndex LLM"),
        (lambda: ResponseRelevancy(llm=MockLLM(), embedder=MockLLM()), "embed_model: MockLLM is not a LlamaIndex emb"),
        (lambda: evaluate([SAMPLE], ["response_relevancy"], llm=MockLLM()), "embedder: LlamaIndexLLM does not embed"),
        (lambda: MetricEvaluator("rag", MockLLM()), "'rag' is a group of metrics; name one of them: response_rel"),
    ],
)
def test_what_is_no_model_is_refused(make, said) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        make()
