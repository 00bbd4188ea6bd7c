from data import answer, question
from mlflow.genai.judges import meets_guidelines

context = {"request": question, "response": answer}
print(meets_guidelines(guidelines="The response is polite.", context=context, model="openai:/gpt-5-mini").value)
