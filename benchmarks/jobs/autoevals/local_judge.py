from autoevals import init
from autoevals.ragas import Faithfulness
from data import answer, contexts, question, url
from openai import OpenAI

init(OpenAI(base_url=url, api_key="none"))
print(Faithfulness(model="qwen3:8b").eval(input=question, output=answer, context=contexts).score)
