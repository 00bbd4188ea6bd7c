"""The evaluations of a run through a provider's batch endpoint, in order, and how far each comes."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

from ragstone.batch.provider.flows import Evaluation, Flows, Progressed
from ragstone.batch.sources.source import Source, rows_of
from ragstone.metrics.base import Metric
from ragstone.sample import BadLine, Row
from ragstone.store.journal.keys import outcome_key, sample_key

_EMBEDDING_THREADS = 8
_EMBEDDING_AHEAD = 32


@dataclass(frozen=True, slots=True)
class ProviderRun:
    """What is run: given anew in each process, and the same each time.

    Attributes:
        samples: Can be read again and again.
        fields: The key or column by the sample's field.
        metrics: What to score by.
        keys: Their `metric_key`s.
        repeat: Scorings of each sample by each metric.
    """

    samples: Source
    fields: Mapping[str, str] | None
    metrics: Sequence[Metric]
    keys: Sequence[str]
    repeat: int

    def rows(self) -> Iterator[Row | BadLine]:
        """Read the samples once more."""
        return cast("Iterator[Row | BadLine]", rows_of(self.samples, self.fields))

    def evaluations(self) -> Iterator[Evaluation]:
        """Yield all evaluations in the order of the results."""
        for row in self.rows():
            if isinstance(row, Row):
                of_sample = sample_key(row.sample)
                for metric, of_metric in zip(self.metrics, self.keys, strict=True):
                    for draw in range(self.repeat):
                        yield Evaluation(row, metric, draw, outcome_key(of_sample, of_metric, draw))


def progressed(run: ProviderRun, flows: Flows) -> Iterator[tuple[Evaluation, Progressed]]:
    """Yield how far each evaluation comes, in order; in a few threads, for embedders make them wait."""
    with ThreadPoolExecutor(_EMBEDDING_THREADS, "ragstone-embed") as pool:
        ahead: deque[tuple[Evaluation, Future[Progressed]]] = deque()
        for evaluation in run.evaluations():
            ahead.append((evaluation, pool.submit(flows.progress, evaluation)))
            if len(ahead) >= _EMBEDDING_AHEAD:
                first, future = ahead.popleft()
                yield first, future.result()
        for first, future in ahead:
            yield first, future.result()


def digest_of(rows: Iterable[Row | BadLine]) -> str:
    """Return what tells one data set from another: its texts, ids and order."""
    digest = blake2b(digest_size=16)
    for row in rows:
        told = sample_key(row.sample) + repr(row.sample.id) if isinstance(row, Row) else "bad"
        digest.update(f"{row.line} {told}\n".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()
