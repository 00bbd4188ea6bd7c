from data import question
from engine_app import engine
from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, model="openai:gpt-5-mini")
response = engine.query(question)
print(judge(context=[node.get_content() for node in response.source_nodes], outputs=str(response))["score"])
