from data import question
from engine_app import engine
from openai import OpenAI
from ragas import EvaluationDataset
from ragas.integrations.llama_index import evaluate
from ragas.llms import llm_factory
from ragas.metrics import Faithfulness

dataset = EvaluationDataset.from_list([{"user_input": question}])
print(evaluate(engine, dataset, [Faithfulness()], llm=llm_factory("gpt-5-mini", client=OpenAI())))
