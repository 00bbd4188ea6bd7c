"""The integrations as users write them. Never run: checked by mypy --strict and pyright strict."""

import uuid
from collections.abc import Sequence

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnablePassthrough
from langsmith import evaluate  # pyright: ignore[reportUnknownVariableType] - its bare dicts
from langsmith.schemas import Example
from llama_index.core import MockEmbedding
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner
from llama_index.core.llms import MockLLM

from ragstone import LLM, ContextRelevancy, Embedder, Limits, Metric, ResponseRelevancy, Score
from ragstone.live import Monitor
from ragstone_langchain import LangChainEmbedder, LangChainLLM, MonitorHandler, RagEvaluator, apreview, preview
from ragstone_llama_index import (
    LlamaIndexEmbedder,
    LlamaIndexLLM,
    MetricEvaluator,
    aevaluate_query_engine,
    evaluate_query_engine,
    instrument,
)
from ragstone_llama_index import (
    preview as preview_engine,
)

chat = FakeListChatModel(responses=["yes"])
judges: list[LLM] = [
    LangChainLLM(chat),
    LangChainLLM(chat.with_retry(), asking="one_by_one"),
    LangChainLLM(chat.with_fallbacks([chat]), trace=True),
    LangChainLLM(chat.bind(stop=["x"]), structured_output=False, name="mine", max_input_tokens=8_000),
    LangChainLLM(chat.with_config(tags=["a"])),
    LangChainLLM(FakeListLLM(responses=["yes"])),
    LlamaIndexLLM(MockLLM(), asking="one_by_one"),
    LlamaIndexLLM(),
]
embedders: list[Embedder] = [LangChainEmbedder(DeterministicFakeEmbedding(size=4)), LlamaIndexEmbedder()]
metric = ResponseRelevancy(llm=judges[0], embedder=embedders[0], instructions={"questions": "Ask."})
names = {"user_input": "frage"}
evaluator = RagEvaluator(metric, key="relevancy", fields=names, retriever_tools={"search"})


def found(inputs: object, outputs: object) -> dict[str, object]:
    return {"response": outputs, "user_input": inputs}


def target(inputs: dict[str, str]) -> dict[str, str]:
    return {"answer": inputs["question"]}


by_function = RagEvaluator(metric, fields=found)


async def use_langchain() -> float | None:
    result = evaluator(inputs="Who?", outputs=AIMessage("Jane."), context=[Document("Jane wrote it.")])
    again = await evaluator.acall(inputs={"question": "Who?"}, outputs={"answer": "Jane."})
    evaluate(
        target,
        data=[Example(id=uuid.uuid4(), inputs={"question": "Who?"})],
        evaluators=[evaluator, evaluator.as_run_evaluator()],
        upload_results=False,
    )
    chain = RunnablePassthrough[dict[str, str]]() | evaluator.as_runnable()
    scores: list[float | None] = [result["score"], again["score"]]
    return scores[0] if chain else None


async def use_previews(monitor: Monitor, engine: BaseQueryEngine) -> list[str]:
    chain = RunnablePassthrough[dict[str, str]]()
    seen = preview(chain, {"question": "Who?"}, {"tags": ["a"]}, fields=names, retriever_tools={"search"})
    awaited = await apreview(target, {"question": "Who?"}, fields=found)
    of_engine = preview_engine(engine, "Who?", metadata_mode="all")
    instrument(monitor, fields=of_engine.fields)
    handler = MonitorHandler(monitor, fields=seen.fields)
    contexts = [] if awaited.sample is None else [*awaited.sample.retrieved_contexts]
    return [*seen.missing, *contexts, str(of_engine), str(handler)]


async def use_llama_index(engine: BaseQueryEngine, questions: Sequence[str]) -> float | None:
    evaluators: dict[str, BaseEvaluator] = {
        "context": MetricEvaluator("context_relevancy", MockLLM(), threshold=0.5, granularity="chunk"),
        "response": MetricEvaluator("response_relevancy", embed_model=MockEmbedding(embed_dim=4), strictness=2),
        "any": MetricEvaluator(metric),
    }
    await BatchEvalRunner(evaluators, workers=8).aevaluate_queries(engine, queries=list(questions))
    own: Metric = ContextRelevancy(llm=LlamaIndexLLM())
    report = evaluate_query_engine(engine, questions, [own, MetricEvaluator(metric)], limits=Limits(max_concurrency=4))
    again = await aevaluate_query_engine(engine, questions, ["context_relevancy"], MockLLM(), progress=False)
    outcome = next(again.results()).outcome
    result = MetricEvaluator("context_relevancy").evaluate(query="Who?", contexts=["Jane wrote it."])
    return outcome.value if isinstance(outcome, Score) else report.summary()["context_relevancy"].mean or result.score
