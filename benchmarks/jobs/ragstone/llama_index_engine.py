from data import question
from engine_app import engine

from ragstone_llama_index import evaluate_query_engine

print(evaluate_query_engine(engine, [question], ["faithfulness"], llm="openai:gpt-5-mini"))
