from data import rows
from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, model="openai:gpt-5-mini")
means = []
for system in (rows, rows):
    scores = [judge(context=row["retrieved_contexts"], outputs=row["response"])["score"] for row in system]
    means.append(sum(scores) / len(scores))
print(means[1] - means[0])
