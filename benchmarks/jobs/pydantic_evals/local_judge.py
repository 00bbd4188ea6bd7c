import asyncio

from data import answer, contexts, question, url
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output

rubric = "The output makes only claims that the contexts of the input support."
model = OpenAIChatModel("qwen3:8b", provider=OpenAIProvider(base_url=url, api_key="none"))
print(asyncio.run(judge_input_output({"question": question, "contexts": contexts}, answer, rubric, model)).score)
