from autoevals.ragas import Faithfulness
from data import rows

judge = Faithfulness(model="gpt-5-mini")
means = []
for system in (rows, rows):
    shown = [(row["user_input"], row["response"], row["retrieved_contexts"]) for row in system]
    means.append(sum(judge.eval(input=a, output=b, context=c).score for a, b, c in shown) / len(shown))
print(means[1] - means[0])
