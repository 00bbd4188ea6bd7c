from data import answer, contexts, question

from ragstone import Faithfulness

print(
    Faithfulness(llm="openai:gpt-5-mini").score(
        {"user_input": question, "retrieved_contexts": contexts, "response": answer}
    )
)
