from autoevals.ragas import Faithfulness
from data import answer, contexts, question

print(Faithfulness(model="gpt-5-mini").eval(input=question, output=answer, context=contexts).score)
