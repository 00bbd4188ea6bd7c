import asyncio

from data import answer, contexts, question
from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output

rubric = "The output makes only claims that the contexts of the input support."
shown = {"question": question, "contexts": contexts}
print(asyncio.run(judge_input_output(shown, answer, rubric, "openai:gpt-5-mini")).score)
