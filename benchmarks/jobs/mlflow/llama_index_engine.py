from data import question
from engine_app import engine
from mlflow.genai.judges import is_grounded

response = engine.query(question)
contexts = [node.get_content() for node in response.source_nodes]
print(is_grounded(request=question, response=str(response), context=contexts, model="openai:/gpt-5-mini").value)
