"""Public calls as users write them. Never run: checked by mypy --strict and pyright strict."""

from typing_extensions import assert_type

from ragstone import (
    AlignmentCoverage,
    BaseLLM,
    ContextRelevancy,
    LLMReply,
    LLMRequest,
    Metric,
    ResponseRelevancy,
    Sample,
    Score,
    SummarizationScore,
    Unscored,
)
from ragstone.clients import OpenAICompatible
from ragstone.local import LocalEmbedder, LocalLLM
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone.text import split_sentences

sample = Sample(
    user_input="Who wrote Emma?",
    retrieved_contexts=["Emma is a novel by Jane Austen."],
    response="Jane Austen.",
    id="1",
    metadata={"tenant": 7},
)


class Yes(BaseLLM):
    model = "yes"

    def generate(self, request: LLMRequest, /) -> LLMReply:
        return LLMReply("yes", input_tokens=1, output_tokens=1, probabilities={"yes": 0.9, "no": 0.1})


fake = FakeLLM({"ids": [1]})
server = OpenAICompatible("qwen3", base_url="http://127.0.0.1:8080/v1", asking="one_by_one")
metrics: list[Metric] = [
    SummarizationScore(llm=Yes(), questions=["Is it?"], coeff=0.3),
    AlignmentCoverage(llm=fake, assessment_questions=["Is it?"], source="retrieved_contexts", threshold=0.7),
    ResponseRelevancy(llm=LocalLLM(), embedder=LocalEmbedder(), strictness=2),
    ResponseRelevancy(llm=server, embedder=FakeEmbedder(), sampling="n_calls", noncommittal="any"),
    ContextRelevancy(server, threshold=0.5),
    ContextRelevancy(llm=server, granularity="chunk", scoring="expected", splitter=split_sentences),
]


async def use(metric: Metric) -> float | None:
    outcome = metric.score(sample)
    assert_type(outcome, Score | Unscored)
    metric.score({"question": "Who wrote Emma?", "contexts": "Emma is a novel by Jane Austen."})
    await metric.ascore(
        user_input="Who wrote Emma?", retrieved_contexts=["Emma is a novel."], history=[{"role": "user"}]
    )
    metric.score(question="Who?")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    again = await metric.ascore(sample)
    if isinstance(again, Score):
        return again.value + sum(verdict.probability or 0.0 for verdict in again.verdicts)
    return None
