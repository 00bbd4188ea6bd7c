"""Scores a Ray data set in two actors, each with half of the spec's limits. Needs `ray[data]`."""

from importlib import import_module
from typing import Any

from ragstone.distributed import Spec, score_chunk

SHARE = Spec(metrics=["context_relevancy"], judge="words:SharedWords", max_concurrency=16).divided(2).to_json()
NAMES = ("id", "metric", "value", "status", "detail")


class Scorer:
    """What an actor runs: an Arrow table of rows in, a row for each outcome out."""

    def __call__(self, batch: Any) -> dict[str, list[Any]]:  # noqa: ANN401 - Ray has no types
        """Score a batch."""
        outcomes = score_chunk(batch, SHARE)
        return {name: [each.get(name) for each in outcomes] for name in NAMES}


if __name__ == "__main__":
    data: Any = import_module("ray.data")
    rows = [{"id": f"q{i}", "user_input": "How many?", "retrieved_contexts": ["Porto has 6."]} for i in range(99)]
    print(data.from_items(rows).map_batches(Scorer, batch_format="pyarrow", concurrency=2).take_all())
