from data import answer, contexts, question, url
from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import Faithfulness

client = AsyncOpenAI(base_url=url, api_key="none")
metric = Faithfulness(llm=llm_factory("qwen3:8b", client=client))
print(metric.score(user_input=question, response=answer, retrieved_contexts=contexts).value)
