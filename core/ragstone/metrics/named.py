"""Metrics by name, and metrics without a judge, made with one judge, one writer and one embedder."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from ragstone.metrics.base import Metric
from ragstone.metrics.models import embedder_of, judge_of, naming
from ragstone.registry import gets_embedder, make_metric, metric_class, spread


def metrics_from(
    metrics: object, *, llm: object = None, writer: object = None, embedder: object = None, **settings: object
) -> list[Metric]:
    """Return the metrics: those of a name, and those that lack a judge, with the models.

    Args:
        metrics: One or several: metrics, their names, names of groups.
        llm: The judge, its name, or a framework's model object.
        writer: What writes where the judge does not; as `llm`.
        embedder: The embedder, its name, or a framework's object; None: the one that goes with the judge.
        settings: Of clients that are made by name (see `ragstone.registry.make_llm`).

    Raises:
        RegistryError: A name names nothing.
        ValueError: There is no metric, or no judge for one that asks.
        TypeError: What is passed is no metric, or no model.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> [metric.name for metric in metrics_from("golden", llm=FakeLLM(lambda request: "yes"))]
        ['context_recall', 'factual_correctness']
    """
    if isinstance(metrics, (str, Metric)):
        metrics = [metrics]
    if not isinstance(metrics, Sequence):
        raise _strange(metrics, "is one")
    made: list[Metric] = []
    judge, named = llm, embedder
    for metric, options in spread(cast("Sequence[object]", metrics)):
        kind = _class_of(metric)
        asks = kind.needs_llm and (isinstance(metric, str) or metric.lacks_llm)
        if asks and judge is None:
            name = metric if isinstance(metric, str) else metric.name
            raise ValueError(f"llm: is missing; pass a judge for {name!r}, or its name, such as 'local'")
        if asks:
            judge = judge_of("llm", judge, **settings)
        if asks and writer is not None:
            writer = judge_of("writer", writer, **settings)
        if isinstance(metric, Metric) and not asks:
            made.append(metric)
            continue
        embeds = gets_embedder(kind, judge, named=named is not None)
        if embeds:
            llm_name = llm if isinstance(llm, str) else ""
            embedder = embedder_of(embedder, judge or "", llm_name, **settings)
        if isinstance(metric, Metric):
            models: dict[str, Any] = {"llm": judge, "writer": metric.writer or writer}
            if embeds:
                models["embedder"] = getattr(metric, "embedder", None) or embedder
            made.append(replace(metric, **models))
            continue
        with naming("metrics"):
            made.append(make_metric(metric, options, judge, embedder if embeds else None, writer))
    if not made:
        raise ValueError("metrics: is empty; pass one or more")
    return made


def _class_of(metric: object) -> type[Metric]:
    if isinstance(metric, Metric):
        return type(metric)
    if not isinstance(metric, str):
        raise _strange(metric, "holds a")
    with naming("metrics"):
        return metric_class(metric)


def _strange(metric: object, how: str) -> TypeError:
    if isinstance(metric, type):
        return TypeError(f"metrics: holds the class {metric.__name__}; pass an object: {metric.__name__}()")
    return TypeError(f"metrics: {how} {type(metric).__name__}; pass metrics or their names")
