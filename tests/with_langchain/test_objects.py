"""LangChain's model objects as they are, without a wrapper, at every door."""

import asyncio
import json

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

from ragstone import ContextRelevancy, Faithfulness, Monitor, ResponseRelevancy, Sample, evaluate
from ragstone.identity import judge_key
from ragstone.judge_names import make_embedder
from ragstone.live import CallableSink
from ragstone_langchain import LangChainEmbedder, LangChainLLM, RagEvaluator

ROW = {"user_input": "Which?", "retrieved_contexts": ["This. Not that."], "response": "This."}
EMBEDDINGS = DeterministicFakeEmbedding(size=4)


def chat_model(*replies):
    return FakeListChatModel(responses=list(replies or ['{"ids": [1]}']))


def by_evaluate(llm):
    return evaluate([ROW], ["context_relevancy"], llm=llm, progress=False)[0].outcome.value


def by_metric(llm):
    return ContextRelevancy(llm=llm).score(Sample(**ROW)).value


def by_metric_on_a_loop(llm):
    return asyncio.run(ContextRelevancy(llm=llm).ascore(Sample(**ROW))).value


def by_monitor(llm):
    outcomes = []
    with Monitor(["context_relevancy"], llm=llm, sinks=CallableSink(outcomes.extend)) as monitor:
        monitor.submit(Sample(**ROW))
    return outcomes[0].outcome.value


def by_evaluator(llm):
    evaluator = RagEvaluator("context_relevancy", llm=llm)
    return evaluator(inputs={"question": "Which?"}, outputs={"answer": "This.", "contexts": ["This. Not that."]})[
        "score"
    ]


DOORS = pytest.mark.parametrize("door", [by_evaluate, by_metric, by_metric_on_a_loop, by_monitor, by_evaluator])


@DOORS
@pytest.mark.parametrize(
    "make",
    [
        chat_model,
        lambda: chat_model().with_retry(),
        lambda: RunnableLambda(lambda _: AIMessage('{"ids": [1]}')),
        lambda: ChatPromptTemplate.from_messages(["{x}"]).pick("x").with_fallbacks([chat_model()]),
    ],
    ids=["chat model", "with_retry", "runnable", "with_fallbacks"],
)
def test_a_model_object_judges_at_every_door(door, make) -> None:
    model = make()
    before = dict(vars(model))
    assert door(model) == 0.5
    assert {name: vars(model)[name] for name in before} == before


@DOORS
def test_a_decision_model_judges_at_every_door(door) -> None:
    pytest.importorskip("langchain_core.decisions", reason="needs langchain-core 1.8")
    from .test_decisions import Gate

    assert door(Gate()) == 1.0, "both sentences, by count"


def test_embeddings_and_a_writer_are_taken_as_they_are() -> None:
    written = chat_model(json.dumps({"questions": [{"question": "Which?", "noncommittal": False}] * 3}))
    for embedder in (EMBEDDINGS, LangChainEmbedder(EMBEDDINGS)):
        metric = ResponseRelevancy(llm=written, embedder=embedder)
        assert isinstance(metric.judge_embedder, LangChainEmbedder)
        report = evaluate([ROW], ["response_relevancy"], llm=written, embedder=embedder, progress=False)
        assert report[0].outcome.value == pytest.approx(1.0), report[0].outcome
    assert isinstance(Faithfulness(llm=written, writer=chat_model()).writer, LangChainLLM)


def test_a_journal_knows_it_as_if_it_was_wrapped(tmp_path) -> None:
    assert judge_key(ContextRelevancy(llm=chat_model()).judge) == judge_key(LangChainLLM(chat_model()))
    journal = tmp_path / "journal"
    evaluate([ROW], ["context_relevancy"], llm=chat_model(), journal=journal, progress=False)
    wrapped = LangChainLLM(chat_model("never asked"))
    again = evaluate([ROW], ["context_relevancy"], llm=wrapped, journal=journal, progress=False)
    assert again[0].outcome.value == 0.5


NO_MODELS = [
    (lambda: ContextRelevancy(llm=EMBEDDINGS), "model: DeterministicFakeEmbedding is not a LangChain model"),
    (lambda: ResponseRelevancy(llm=chat_model(), embedder=chat_model()), "embeddings: FakeListChatModel has no"),
    (lambda: make_embedder(None, chat_model()), "FakeListChatModel does not embed texts; name an embedder"),
]


def test_what_is_no_model_is_refused() -> None:
    for make, said in NO_MODELS:
        with pytest.raises((TypeError, ValueError), match=said):
            make()
