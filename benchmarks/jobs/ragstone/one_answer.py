from data import answer, contexts, question

from ragstone import Faithfulness, Sample

sample = Sample(user_input=question, retrieved_contexts=contexts, response=answer)
print(Faithfulness(llm="openai:gpt-5-mini").score(sample).value)
