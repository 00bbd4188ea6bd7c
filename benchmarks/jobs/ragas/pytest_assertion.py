from data import answer, contexts, question
from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import Faithfulness


def test_answer() -> None:
    metric = Faithfulness(llm=llm_factory("gpt-5-mini", client=AsyncOpenAI()))
    assert metric.score(user_input=question, response=answer, retrieved_contexts=contexts).value >= 0.5
