import asyncio

from data import answer, question
from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output

print(asyncio.run(judge_input_output(question, answer, "The output is polite.", "openai:gpt-5-mini")).pass_)
