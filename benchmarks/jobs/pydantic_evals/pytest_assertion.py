import asyncio

from data import answer, contexts, question
from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output


def test_answer() -> None:
    rubric = "The output makes only claims that the contexts of the input support."
    shown = {"question": question, "contexts": contexts}
    assert asyncio.run(judge_input_output(shown, answer, rubric, "openai:gpt-5-mini")).score >= 0.5
