from chain_app import chain
from data import question
from pydantic_evals.evaluators import LLMJudge
from pydantic_evals.online import evaluate

rubric = "The output's answer makes only claims that its context supports."


@evaluate(LLMJudge(rubric, "openai:gpt-5-mini", include_input=True))
def ask(asked: str) -> dict[str, object]:
    return chain.invoke({"question": asked})


ask(question)
