from data import answer, question

from ragstone import Criterion

polite = Criterion("polite", "Is the response polite?", llm="openai:gpt-5-mini")
print(polite.score({"user_input": question, "response": answer}))
