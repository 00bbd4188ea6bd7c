"""Scores 200 rows on a Dask cluster of two worker processes on this machine, twice, and prints the reports.

The second run finds every outcome in the journal of the first, and asks no judge.
"""

import tempfile
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from ragstone.distributed import Spec, score_on_dask

TOWNS = ("Bergen", "Bruges", "Porto", "Turku")


def rows() -> list[dict[str, Any]]:
    """Return 200 questions with what was retrieved for them; the second chunk is of use for every other one."""
    return [
        {
            "id": f"q{i}",
            "user_input": f"How many bridges does {town} have in district {i}?",
            "retrieved_contexts": [
                f"{town} has {i} bridges in that district. The bread is good.",
                f"{town} has canals." if i % 2 else f"Its bridges made district {i} of {town} rich.",
            ],
        }
        for i, town in enumerate(TOWNS * 50)
    ]


def main() -> None:
    """Run it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        spec = Spec(
            metrics={"context_relevancy": {"threshold": 0.5}},
            judge="words:SharedWords",
            max_concurrency=16,
            journal=str(Path(folder) / "journal"),
        )
        print(f"What each worker is sent:\n{spec.divided(2).to_json()}\n")
        first = score_on_dask(rows(), spec, client, chunk_rows=25, name="two workers")
        print(f"{first}\n")
        again = score_on_dask(rows(), spec, client, name="again, from the journal")
        same = [each.outcome for each in again.results()] == [each.outcome for each in first.results()]
        print(f"Run again, the outcomes are the same, to the second that they took: {same}")


if __name__ == "__main__":
    main()
