from data import answer, contexts, question, url
from mlflow.genai.judges import make_judge

instructions = "Is every claim of {{ outputs }} supported by the contexts of {{ inputs }}? Answer yes or no."
judge = make_judge("grounded", instructions, model="openai:/qwen3:8b", base_url=url, feedback_value_type=bool)
print(judge(inputs={"question": question, "contexts": contexts}, outputs=answer).value)
