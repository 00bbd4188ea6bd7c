from data import answer, contexts, question
from mlflow.genai.judges import is_grounded


def test_answer() -> None:
    feedback = is_grounded(request=question, response=answer, context=contexts, model="openai:/gpt-5-mini")
    assert feedback.value == "yes"
