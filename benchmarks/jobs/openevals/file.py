import json
from pathlib import Path

from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, model="openai:gpt-5-mini")
for line in Path("answers.jsonl").read_text().splitlines():
    row = json.loads(line)
    print(judge(context=row["retrieved_contexts"], outputs=row["response"])["score"])
