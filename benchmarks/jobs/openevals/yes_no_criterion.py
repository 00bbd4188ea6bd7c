from data import answer, question
from openevals.llm import create_llm_as_judge

prompt = "Is the response polite? Question: {inputs} Response: {outputs}"
print(create_llm_as_judge(prompt=prompt, model="openai:gpt-5-mini")(inputs=question, outputs=answer)["score"])
