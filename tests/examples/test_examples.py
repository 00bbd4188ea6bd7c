"""The examples' judge tells good samples from bad ones by every metric that the examples use."""

from importlib import import_module
from pathlib import Path

import pytest

from ragstone import Sample
from ragstone.metrics.names import make_metric

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the checkout: examples/")

TICKET = "A ticket costs 12 euros for adults. Children enter free."
GOOD = {"user_input": "What does a ticket cost for adults?", "retrieved_contexts": [TICKET], "response": TICKET[:35]}


@pytest.mark.parametrize(
    ("metric", "bad"),
    [
        ("response_relevancy", {"response": "I do not know."}),
        ("response_relevancy", {"response": "Dogs may come into the garden."}),
        ("context_relevancy", {"retrieved_contexts": ["Dogs may come into the garden."]}),
        ("faithfulness", {"response": "Adults sleep under umbrellas."}),
        ("summarization_score", {"response": "Dogs may come into the garden."}),
        ("alignment_coverage", {"response": "Dogs may come into the garden."}),
    ],
)
def test_a_good_sample_scores_above_a_bad_one(monkeypatch: pytest.MonkeyPatch, metric: str, bad: dict) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    words = import_module("words")
    options = {"source": "retrieved_contexts"} if metric == "alignment_coverage" else {}
    scored = make_metric(metric, options, words.SharedWords(), words.WordEmbedder())
    good, poor = (scored.score(Sample(**GOOD | changes)).value for changes in ({}, bad))
    assert good > poor + 0.1
