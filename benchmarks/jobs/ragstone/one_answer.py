from data import answer, contexts, question

from ragstone import Faithfulness

row = {"user_input": question, "retrieved_contexts": contexts, "response": answer}
print(Faithfulness(llm="openai:gpt-5-mini").score(row))
