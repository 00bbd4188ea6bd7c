from data import answer, contexts, question
from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import Faithfulness

metric = Faithfulness(llm=llm_factory("gpt-5-mini", client=AsyncOpenAI()))
print(metric.score(user_input=question, response=answer, retrieved_contexts=contexts).value)
