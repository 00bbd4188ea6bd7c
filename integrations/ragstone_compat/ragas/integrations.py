"""What scripts import from `ragas.integrations`."""

from typing import Any

from ragstone_compat.ragas.dataset_schema import EvaluationDataset, EvaluationResult
from ragstone_compat.ragas.evaluation import evaluate as evaluate_dataset
from ragstone_compat.ragas.metrics.base import Metric


class EvaluatorChain:
    """A metric as a chain: `chain.invoke(row)` returns its score by its name. It is no Runnable.

    Args:
        metric: The metric.
        llm: Its judge, where it has none.
        embeddings: Its embedder, likewise.
        **_: Without effect.
    """

    def __init__(self, metric: Metric, llm: object = None, embeddings: object = None, **_: object) -> None:
        self.metric = metric
        metric.llm, metric.embeddings = metric.llm or llm, metric.embeddings or embeddings

    def invoke(self, row: object, *_: object, **__: object) -> dict[str, float]:
        """Score a row, whose contexts may be texts or Documents of LangChain."""
        return {self.metric.name: self.metric.score(row)}

    async def ainvoke(self, row: object, *_: object, **__: object) -> dict[str, float]:
        """Score a row on the running event loop."""
        return {self.metric.name: await self.metric.ascore(row)}

    __call__, acall = invoke, ainvoke


def evaluate(
    query_engine: Any,  # noqa: ANN401 - of LlamaIndex
    dataset: Any,  # noqa: ANN401 - of any package
    metrics: list[Metric],
    llm: object = None,
    embeddings: object = None,
    *_: object,
    **options: Any,  # noqa: ANN401
) -> EvaluationResult:
    """Ask a query engine of LlamaIndex each question of a data set, and score what it answers.

    Args:
        query_engine: The query engine.
        dataset: An `EvaluationDataset`, or what `evaluate` takes.
        metrics: The metrics.
        llm: As for `ragas.evaluate`, as is `embeddings`.
        embeddings: The embedder of metrics that have none.
        *_: Without effect.
        **options: As for `ragas.evaluate`.
    """
    rows = EvaluationDataset.from_list(dataset).to_list()
    for row in rows:
        found = query_engine.query(row["user_input"])
        row |= {"response": str(found), "retrieved_contexts": [each.node.get_content() for each in found.source_nodes]}
    return evaluate_dataset(rows, metrics, llm, embeddings, **options)
