from data import answer, contexts
from openevals.llm import create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT


def test_answer() -> None:
    judge = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, model="openai:gpt-5-mini")
    assert judge(context=contexts, outputs=answer)["score"]
