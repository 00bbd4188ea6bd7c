"""The same metrics on many machines: what a worker needs is a `Spec`, what it does is `score_chunk`.

    spec = Spec(metrics=["context_relevancy"], judge="http://judge.test:8080", journal="/shared/journal")
    report = score_on_dask("samples.jsonl", spec, client)

No cluster of our own: `score_on_dask` (extra `ragstone[dask]`) and `score_on_ray` (extra `ragstone[ray]`) are thin, and
`score_chunk` runs wherever Python does, such as in Spark's `mapInPandas` (docs/scale.md).
"""

from ragstone.distributed.chunk import score_chunk
from ragstone.distributed.on_dask import score_on_dask
from ragstone.distributed.on_ray import score_on_ray
from ragstone.distributed.spec import Spec, SpecError

__all__ = ["Spec", "SpecError", "score_chunk", "score_on_dask", "score_on_ray"]
