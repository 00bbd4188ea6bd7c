"""One callable for engines that hand out a data set in batches: Dask, Ray Data, Spark."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragstone.batch.evaluate import evaluate
from ragstone.judge_names import RegistryError
from ragstone.limits.limits import Limits, limits_of
from ragstone.metrics.base import Metric
from ragstone.metrics.names import metric_class, metrics_from, spread
from ragstone.options import Count, checked
from ragstone.plain import is_mapping
from ragstone.results.frames import FRAME_COLUMNS, NO_SAMPLE, Cell, to_frame, to_rows
from ragstone.sample import BadLine

_RATES = ("requests_per_minute", "tokens_per_minute", "max_cost")
_NUMBERS = ("max_concurrency", "max_calls", "max_tokens")
_NOT_OF_A_BATCH = ("samples", "metrics", "progress", "name", "stop_on_give_up", "journal", "resume", "others")
_SPARK = {"Int64": "bigint", "Float64": "double", "string": "string", "boolean": "boolean"}


class Scorer:
    """Scores a batch of rows, for `map_partitions` of Dask, `map_batches` of Ray Data and `mapInPandas` of Spark.

    The engine schedules batches, repeats those of a worker that was lost, and writes what comes out. A batch in is a
    DataFrame, an Arrow table or record batch, or a dict of lists. The result is a DataFrame with the columns of
    `Report.to_pandas()`, a row for each sample and metric. `row` counts within the batch, so give rows an `id`. A
    row that holds no sample comes back once, without a metric: `unscored` is "no_sample", and `reason` says why.

    It can be pickled, if judge and embedder are given by name: each process makes its own, once, with the keys of its
    environment.

    Args:
        metrics: The metrics' names, or metrics whose judge can be pickled.
        share: How many batches are scored at once, by all workers. Calls in flight, rates and caps are divided by it.
        limits: As for `evaluate`; the caps (`max_calls`, `max_tokens`, `max_cost`) hold for one batch.
        **options: As for `evaluate`: `llm`, `writer`, `embedder`, `fields`, `group`, `price` and `share_replies`.

    Attributes:
        columns: The pandas type of each column of the result.
        spark_schema: The same as Spark wants it.

    Raises:
        ValueError: A metric's name or an option is none. From calls: as from `evaluate`.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> scorer = Scorer([ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))])
        >>> frame = scorer({"id": ["a"], "question": ["Who?"], "contexts": [["Ann. Bob."]]})
        >>> frame[["sample_id", "metric", "value"]].values.tolist()
        [['a', 'context_relevancy', 0.5]]
        >>> scorer.spark_schema[:27]
        'row bigint, sample_id strin'
    """

    columns: Mapping[str, str] = FRAME_COLUMNS
    spark_schema = ", ".join([f"{name} {_SPARK[kind]}" for name, kind in FRAME_COLUMNS.items()])

    def __init__(
        self,
        metrics: Metric | str | Sequence[Metric | str],
        *,
        share: int = 1,
        limits: Limits | None = None,
        **options: Any,  # noqa: ANN401 - as of `evaluate`
    ) -> None:
        checked("share", share, Count)
        if wrong := options.keys() - (inspect.signature(evaluate).parameters.keys() - set(_NOT_OF_A_BATCH)):
            name = min(wrong)
            way_out = f"; pass limits=Limits({name}=...)" if name in Limits.__dataclass_fields__ else ""
            raise ValueError(f"{name}: is no option of a Scorer{way_out}")
        named = [metrics] if isinstance(metrics, (Metric, str)) else list(metrics)
        # A name that names nothing is found here, before any worker is.
        asks = [metric_class(metric).needs_llm for metric, _ in spread(named) if isinstance(metric, str)]
        self._named = named
        self._models: dict[str, object] = {name: options.pop(name, None) for name in ("llm", "writer", "embedder")}
        if self._models["llm"] is None and any(asks):
            raise RegistryError("llm: is missing; pass the judge's name, such as 'openai:gpt-5-mini'")
        self._limits = _divided(limits_of(limits), share)
        self._options = options
        self._metrics: list[Metric] = []

    def __getstate__(self) -> dict[str, object]:
        # Each process makes its own.
        return {**vars(self), "_metrics": []}

    def __call__(self, batch: object) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """Score a batch of rows: a DataFrame with its outcomes, without rows where the batch has none."""
        rows: Any = _rows_of(batch)
        if not len(rows):
            return to_frame(())
        self._metrics = self._metrics or metrics_from(
            self._named, **self._models, max_concurrency=self._limits.max_concurrency
        )
        report = evaluate(rows, self._metrics, progress=False, limits=self._limits, **self._options)
        empty: dict[str, Cell] = dict.fromkeys(FRAME_COLUMNS)
        bad = [empty | _no_sample(line) for line in report.bad_rows]
        return to_frame([*to_rows(report.results(samples=True)), *bad])

    def frames(self, batches: Iterable[object]) -> Iterator[Any]:
        """Yield a DataFrame for each batch: what `mapInPandas` takes."""
        return map(self, batches)


def _divided(limits: Limits, share: int) -> Limits:
    """What one of so many batches at once may ask; a call at least."""
    parts: dict[str, Any] = {}
    for name in (*_RATES, *_NUMBERS):
        whole = getattr(limits, name)
        if whole is not None:
            parts[name] = max(1, whole // share) if name in _NUMBERS else whole / share
    return replace(limits, **parts)


def _no_sample(line: BadLine) -> dict[str, Cell]:
    return {"row": line.line - 1, "sample_id": str(line.line), "unscored": NO_SAMPLE, "reason": line.problem}


def _rows_of(batch: Any) -> object:  # noqa: ANN401 - of Ray, Arrow or pandas
    if is_mapping(batch):
        columns: list[Any] = [_as_list(values) for values in batch.values()]
        names = list(batch)
        return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    return batch.to_pylist() if hasattr(batch, "to_pylist") else batch


def _as_list(values: Any) -> Any:  # noqa: ANN401 - an array of NumPy's, or a list
    return values.tolist() if hasattr(values, "tolist") else values
