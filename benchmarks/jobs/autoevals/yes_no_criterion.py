from autoevals import LLMClassifier
from data import answer, question

prompt = "Is the response polite? Question: {{input}} Response: {{output}}"
polite = LLMClassifier("polite", prompt, {"yes": 1, "no": 0}, model="gpt-5-mini")
print(polite.eval(input=question, output=answer).score)
