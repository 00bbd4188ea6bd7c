"""How both apps are monitored: which metrics, which judge, where the outcomes go."""

import os

from words import judge

from ragstone import ContextRelevancy, Monitor, ResponseRelevancy
from ragstone.live import Budget, SQLiteSink


def monitor(database: str) -> Monitor:
    """Return a monitor that keeps scores, and texts, in a database, and loses nothing when it is killed."""
    llm, embedder = judge()
    return Monitor(
        [ContextRelevancy(llm=llm), ResponseRelevancy(llm=llm, embedder=embedder)],
        sinks=SQLiteSink(database),
        sample_rate={"response_relevancy": 0.5},
        always=("error", "empty_retrieval"),
        budget=Budget(calls_per_minute=6_000),
        outbox=f"{database}.outbox",
        workers=int(os.environ.get("MONITOR_WORKERS", "4")),  # 0: `ragstone live worker` judges
        store_text=True,
    )
