"""What is marked as lowering a score is never the good verdict, and what is printed of one is of the word printed."""

import pytest

from ragstone import Sample, Score, Verdict

GOOD = {"committal", "relevant", "supported", "yes"}
SAMPLE = Sample(
    user_input="Who wrote Emma? It is a novel.",
    retrieved_contexts=["Jane Austen wrote it. It rains.", "Emma is a novel."],
    response="Jane Austen. It was in 1815.",
    reference="Jane Austen wrote Emma.",
)


@pytest.mark.parametrize(
    ("kind", "word", "of_affirmative", "shown"),
    [
        ("question", "noncommittal", 0.04, "noncommittal p(noncommittal)=0.96: "),
        ("question", "committal", 0.9, "committal p(committal)=0.90: "),
        ("passage", "no", 0.33, "no p(no)=0.67: "),
        ("claim", "unsupported", 0.25, "unsupported p(unsupported)=0.75: "),
        ("claim", "contradicted", 0.25, "contradicted: "),  # of three words
        ("source_answer", "no", 0.25, "no: "),
    ],
)
def test_the_probability_printed_is_of_the_word_printed(kind, word, of_affirmative, shown):
    verdict = Verdict(id="1", kind=kind, text="It.", verdict=word, probability=of_affirmative)
    assert f"{kind} 1: {shown}It." in str(Score(metric="m", value=0.5, reason="", version="1", verdicts=(verdict,)))
