"""Scores a Dask data frame on a cluster of two workers. Needs `dask[distributed]` and pandas."""

from importlib import import_module
from typing import Any

from ragstone.batch import Scorer

ROWS = [
    {"id": f"q{i}", "user_input": "How many bridges has Porto?", "retrieved_contexts": ["Porto has 6 bridges."]}
    for i in range(99)
]

if __name__ == "__main__":
    pandas: Any = import_module("pandas")
    dask: Any = import_module("dask")
    frames: Any = import_module("dask.dataframe")
    distributed: Any = import_module("distributed")
    scorer = Scorer(["context_relevancy"], llm="words:SharedWords", share=2)
    dask.config.set({"dataframe.convert-string": False})  # it would turn lists of contexts into text
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        rows = frames.from_pandas(pandas.DataFrame(ROWS), npartitions=5)
        outcomes = rows.map_partitions(scorer, meta=scorer({})).compute()
    print(outcomes.groupby("metric")["value"].agg(["count", "mean"]))
