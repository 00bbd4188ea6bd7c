import asyncio

from data import question
from engine_app import engine
from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output

rubric = "The output makes only claims that the contexts of the input support."
response = engine.query(question)
shown = {"question": question, "contexts": [node.get_content() for node in response.source_nodes]}
print(asyncio.run(judge_input_output(shown, str(response), rubric, "openai:gpt-5-mini")).score)
