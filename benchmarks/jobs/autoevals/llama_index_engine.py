from autoevals.ragas import Faithfulness
from data import question
from engine_app import engine

response = engine.query(question)
contexts = [node.get_content() for node in response.source_nodes]
print(Faithfulness(model="gpt-5-mini").eval(input=question, output=str(response), context=contexts).score)
