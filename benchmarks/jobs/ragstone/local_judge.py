from data import answer, contexts, question, url

from ragstone import Faithfulness

print(
    Faithfulness(llm=f"qwen3:8b@{url}").score(
        {"user_input": question, "retrieved_contexts": contexts, "response": answer}
    )
)
