from data import answer, contexts, question

from ragstone import Faithfulness, Sample

sample = Sample(user_input=question, retrieved_contexts=contexts, response=answer)
print(Faithfulness(llm="qwen3:8b@http://127.0.0.1:11434/v1").score(sample).value)
