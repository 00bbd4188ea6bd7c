from data import answer, contexts
from langchain_ollama import ChatOllama
from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, judge=ChatOllama(model="qwen3:8b"))
print(judge(context=contexts, outputs=answer)["score"])
