import pandas as pd
from data import rows
from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, model="openai:gpt-5-mini")
frame = pd.DataFrame(rows)
scores = [judge(context=row.retrieved_contexts, outputs=row.response)["score"] for row in frame.itertuples()]
print(frame.assign(score=scores))
