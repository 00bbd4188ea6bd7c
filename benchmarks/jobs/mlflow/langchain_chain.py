from chain_app import chain
from data import question
from mlflow.genai.judges import is_grounded

state = chain.invoke({"question": question})
contexts = [document.page_content for document in state["context"]]
print(is_grounded(request=question, response=state["answer"], context=contexts, model="openai:/gpt-5-mini").value)
