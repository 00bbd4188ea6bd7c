from data import answer, contexts, url
from langchain_openai import ChatOpenAI
from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, judge=ChatOpenAI(model="qwen3:8b", base_url=url))
print(judge(context=contexts, outputs=answer)["score"])
