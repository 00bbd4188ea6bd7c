"""How both apps are monitored: which metrics, which judge, where the outcomes go."""

import os

from words import judge

from ragstone import ContextRelevancy, Monitor, ResponseRelevancy
from ragstone.live import Budget, Queue, Sampling, SQLiteSink, SQLSink


def make_monitor(database: str) -> Monitor:
    """Return a monitor that stores scores and texts in a SQLite file or, by a URL, in PostgreSQL."""
    llm, embedder = judge()
    return Monitor(
        [ContextRelevancy(llm=llm), ResponseRelevancy(llm=llm, embedder=embedder)],
        sinks=SQLSink(database) if "://" in database else SQLiteSink(database),
        sampling=Sampling(rate={"response_relevancy": 0.5}, always=("error", "empty_retrieval")),
        budget=Budget(calls_per_minute=6_000),
        outbox=os.environ.get("OUTBOX", f"{database}.outbox"),  # nothing is lost when it is killed
        queue=Queue(workers=int(os.environ.get("MONITOR_WORKERS", "4"))),  # 0: `ragstone live worker` judges
        store_text=True,
    )
