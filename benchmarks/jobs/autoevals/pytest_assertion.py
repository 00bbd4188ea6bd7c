from autoevals.ragas import Faithfulness
from data import answer, contexts, question


def test_answer() -> None:
    assert Faithfulness(model="gpt-5-mini").eval(input=question, output=answer, context=contexts).score >= 0.5
