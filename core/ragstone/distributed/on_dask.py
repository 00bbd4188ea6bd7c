"""`score_on_dask`: a data set through the workers of a Dask cluster."""

import logging
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ragstone.distributed.chunk import WorkerSession
from ragstone.distributed.spec import Spec
from ragstone.metrics.base import check_count
from ragstone.reporting import MetricInfo, Report
from ragstone.sample import BadLine, Row, Sample
from ragstone.sources import Source, rows_of
from ragstone.store.record import Record
from ragstone.store.results import SpilledResults

if TYPE_CHECKING:
    from distributed import Client

_log = logging.getLogger(__name__)
_AT_A_WORKER = 3  # while one chunk comes to its end, and is fetched, the others keep the judge busy
_CHARACTERS = 1_000_000  # in a chunk at most: Dask warns of tasks of ten megabytes
_AHEAD = 16  # chunks for each worker that may be done before their turn


def score_on_dask(
    samples: Source,
    spec: Spec,
    client: "Client",
    *,
    workers: int | None = None,
    chunk_rows: int = 128,
    name: str = "",
) -> Report:
    """Score every sample on a Dask cluster, and report; otherwise as `evaluate`.

    The spec's limits are divided among the workers, evenly and once; the report says how. A worker that dies is
    replaced by the others; with a journal nothing that it had scored is judged again, and the same call goes on after
    a crash of everything. Results come to this process, where the report keeps all but a few thousand on disk. For
    results that stay on the cluster: `bag.map_partitions(list).map_partitions(score_chunk, spec.divided(workers))`.

    Args:
        samples: As for `evaluate`; read here, no further ahead than is needed. `metadata` stays here.
        spec: By what to score.
        client: A connected `distributed.Client`, not an asynchronous one. ragstone must be installed on its workers.
        workers: The most workers (processes) that the cluster will have; None takes those that it has now. When more
            come, each still takes its share, and the limits are exceeded: that is logged.
        chunk_rows: Samples in one task, at most. A worker has three under way.
        name: What to call the report.

    Raises:
        SpecError: The limits cannot be divided; or a worker cannot have the judge.
        RuntimeError: There are no workers.
        JournalError: The journal cannot be read or written; what it holds is safe.
        Exception: What Dask raises, such as `KilledWorker` for a chunk over which four workers died.
    """
    check_count("chunk_rows", chunk_rows)
    count = len(_addresses(client)) if workers is None else workers
    if not count:
        raise RuntimeError("the cluster has no workers; call client.wait_for_workers(n) first")
    share = replace(spec.divided(count), fields=None)  # what goes to workers are samples
    note = f"Limits divided among {count} workers; each has {share.limits()}."
    _log.info("%s", note)
    rows = rows_of(samples, spec.fields)
    if not isinstance(rows, Iterator):
        raise TypeError("samples: is an async iterable; pass an ordinary one")
    results_of_all, firsts, bad = SpilledResults(), dict[str, Record](), list[BadLine]()
    for item, results in _scored(_chunks(rows, chunk_rows), share, client, count):
        if isinstance(item, BadLine):
            bad.append(item)
            continue
        name_of_row = str(item.line) if item.sample.id is None else item.sample.id
        results = [replace(result, row=item.line - 1, sample_id=name_of_row) for result in results]
        for result in results:
            firsts.setdefault(result.outcome.metric, result)
        results_of_all.add(results, item.sample)
    infos = [
        replace(MetricInfo.of(metric), version=first.outcome.version, judge=first.judge)  # as the workers have it
        for metric in spec.build_unasked()
        if (first := firsts.get(metric.name)) is not None
    ]
    return Report(results_of_all, infos, bad_rows=bad, name=name, notes=[note])


def _chunks(rows: Iterator[Row | BadLine], most: int) -> Iterator[list[Row | BadLine]]:
    """Yield the rows in chunks of so many at most, and of fewer where their texts are long."""
    chunk, characters = list[Row | BadLine](), 0
    for row in rows:
        chunk.append(row)
        characters += row.sample.characters() if isinstance(row, Row) else 0
        if len(chunk) >= most or characters >= _CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _scored(
    chunks: Iterator[list[Row | BadLine]], share: Spec, client: "Client", workers: int
) -> Iterator[tuple[Row | BadLine, Sequence[Record]]]:
    """Yield each row with its results, in order, keeping three chunks under way at each worker."""
    from distributed import as_completed

    cluster = cast("Any", client)  # Dask has no types
    done = cast("Any", as_completed)(with_results=True)
    under_way: dict[Any, tuple[int, str]] = {}
    held: dict[int, list[Row | BadLine]] = {}
    ready: dict[int, list[tuple[Record, ...]]] = {}
    spec, run, first, last, more, warned = share.to_json(), secrets.token_hex(8), 0, 0, True, False
    try:
        while more or held:
            if not under_way:
                cluster.wait_for_workers(1)  # of a cluster that lost them all, some may come back
            addresses = _addresses(client)
            if len(addresses) > workers and not warned:
                warned = True
                _log.warning("%d workers, but limits were divided among %d: they are exceeded", len(addresses), workers)
            busy = Counter(address for _, address in under_way.values())
            free = [address for address in addresses for _ in range(_AT_A_WORKER - busy[address])]
            while more and free and last - first < _AHEAD * workers:
                address = free.pop()
                chunk = next(chunks, None)
                more = chunk is not None
                if chunk is not None:
                    samples = [row.sample.model_copy(update={"metadata": {}}) for row in chunk if isinstance(row, Row)]
                    placed: dict[str, Any] = {"workers": [address], "allow_other_workers": True}
                    future = cluster.submit(_at_worker, samples, spec, run, pure=False, **placed)
                    under_way[future] = last, address
                    held[last] = chunk
                    last += 1
                    done.add(future)
            if under_way:
                future, results = next(done)
                ready[under_way.pop(future)[0]] = results
                del future, results  # the worker keeps them as long as we do
            while first in ready:
                of_rows = iter(ready.pop(first))
                for row in held.pop(first):
                    yield row, next(of_rows) if isinstance(row, Row) else ()
                first += 1
    finally:
        cluster.cancel(list(under_way))


def _addresses(client: "Client") -> list[str]:
    return list(cast("Any", client).nthreads())


def _at_worker(samples: Sequence[Sample], spec: str, run: str) -> list[tuple[Record, ...]]:
    from distributed import secede

    cast("Any", secede)()  # it waits for judges, not for a processor: the worker may begin the next chunk
    rows = [Row(line, sample) for line, sample in enumerate(samples, 1)]
    return [
        item.records
        for item in WorkerSession.of(Spec.from_json(spec), run).score(rows)
        if not isinstance(item, BadLine)
    ]
