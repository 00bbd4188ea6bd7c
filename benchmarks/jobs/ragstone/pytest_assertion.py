from data import rows

from ragstone import Faithfulness


def test_answer() -> None:
    assert Faithfulness(llm="openai:gpt-5-mini", threshold=0.5).score(rows[0]).passed
