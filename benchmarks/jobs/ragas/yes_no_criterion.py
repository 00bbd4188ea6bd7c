from data import answer, question
from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics import DiscreteMetric

prompt = "Is the response polite? Answer yes or no. Question: {question} Response: {answer}"
polite = DiscreteMetric(name="polite", prompt=prompt, allowed_values=["yes", "no"])
llm = llm_factory("gpt-5-mini", client=AsyncOpenAI())
print(polite.score(llm=llm, question=question, answer=answer).value)
