from data import answer, contexts, question, url

from ragstone import Faithfulness

row = {"user_input": question, "retrieved_contexts": contexts, "response": answer}
print(Faithfulness(llm=f"qwen3:8b@{url}").score(row))
