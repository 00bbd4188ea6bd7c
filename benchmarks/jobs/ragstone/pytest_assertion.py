from data import rows

from ragstone import Faithfulness
from ragstone.testing import assert_score


def test_answer() -> None:
    assert_score(rows[0], Faithfulness(llm="openai:gpt-5-mini"), at_least=0.5)
