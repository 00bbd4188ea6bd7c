import asyncio

from chain_app import chain
from data import question
from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output

rubric = "The output makes only claims that the contexts of the input support."
state = chain.invoke({"question": question})
shown = {"question": question, "contexts": [document.page_content for document in state["context"]]}
print(asyncio.run(judge_input_output(shown, state["answer"], rubric, "openai:gpt-5-mini")).score)
