from chain_app import chain
from data import question

from ragstone_langchain import RagEvaluator

print(RagEvaluator("faithfulness", llm="openai:gpt-5-mini")(outputs=chain.invoke({"question": question}))["score"])
