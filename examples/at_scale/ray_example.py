"""Scores a Ray data set, two batches at once. Needs `ray[data]`."""

from importlib import import_module
from typing import Any

from ragstone.batch import Scorer

ROWS = [
    {"id": f"q{i}", "user_input": "How many bridges has Porto?", "retrieved_contexts": ["Porto has 6 bridges."]}
    for i in range(99)
]

if __name__ == "__main__":
    data: Any = import_module("ray.data")
    scorer = Scorer(["context_relevancy"], llm="words:SharedWords", share=2)
    scored = data.from_items(ROWS).map_batches(scorer, batch_format="pandas", batch_size=20, concurrency=2)
    outcomes = scored.to_pandas()
    print(outcomes.groupby("metric")["value"].agg(["count", "mean"]))
