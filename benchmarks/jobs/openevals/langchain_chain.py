from chain_app import chain
from data import question
from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, model="openai:gpt-5-mini")
state = chain.invoke({"question": question})
print(judge(context=state["context"], outputs=state["answer"])["score"])
