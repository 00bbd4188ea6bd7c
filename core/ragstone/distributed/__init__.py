"""The same metrics on many machines: what a worker needs is a `Spec`, what it does is `score_chunk`.

    spec = Spec(metrics=["context_relevancy"], judge="http://judge.test:8080", journal="/shared/journal")
    report = score_on_dask("samples.jsonl", spec, client)

No cluster of our own: `score_on_dask` (extra `ragstone[dask]`) is thin, and `score_chunk` runs wherever Python does, in
Ray's `map_batches` and Spark's `mapInPandas` (docs/scale.md).
"""

from ragstone.distributed.chunk import score_chunk
from ragstone.distributed.on_dask import score_on_dask
from ragstone.distributed.spec import Spec, SpecError

__all__ = ["Spec", "SpecError", "score_chunk", "score_on_dask"]
