"""Metrics by name, and metrics without a judge, made with one judge, one writer and one embedder.

A metric is "response_relevancy" (one of `ragstone.metrics`) or "my_pkg:Polite"; "rag", "summary", "golden" are groups.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from ragstone import metrics as _package
from ragstone._front_door import words_of
from ragstone.judge_names import RegistryError, is_entry_point, load_entry_point
from ragstone.metrics.base import OBJECTS, Metric, gets_embedder
from ragstone.metrics.models import embedder_of, judge_of, naming
from ragstone.options import checked

GROUPS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "rag": {"response_relevancy": {}, "response_completeness": {}, "context_relevancy": {}, "faithfulness": {}},
    "summary": {"summarization_score": {}, "alignment_coverage": {"source": "retrieved_contexts"}},
    "golden": {"context_recall": {}, "factual_correctness": {}},
}
"""Metrics, with their options, that one name stands for."""


def metric_names() -> tuple[str, ...]:
    """Return the names of ragstone's metrics, in the order of their classes' names."""
    return tuple(_class_names())


def metrics_of(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the options of each metric by its name, with a group's metrics in the place of the group.

    Example:
        >>> metrics_of(["summary", "faithfulness"])
        {'summarization_score': {}, 'alignment_coverage': {'source': 'retrieved_contexts'}, 'faithfulness': {}}
    """
    options: dict[str, dict[str, Any]] = {}
    for name in names:
        for metric, own in GROUPS.get(name, {name: {}}).items():
            options.setdefault(metric, {}).update(own)
    return options


def spread(metrics: Sequence[object]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield metrics by name with their options, and objects as they are: in the given order, no name twice."""
    named = metrics_of(each for each in metrics if isinstance(each, str))
    for metric in metrics:
        for each in metrics_of([metric]) if isinstance(metric, str) else [metric]:
            if not isinstance(each, str):
                yield each, {}
            elif each in named:
                yield each, named.pop(each)


def metric_class(name: str) -> type[Metric]:
    """Return the class of a metric.

    Raises:
        RegistryError: The name names none, or a group of them.

    Example:
        >>> metric_class("context_relevancy").__name__
        'ContextRelevancy'
    """
    known = _class_names()
    if name in known:
        cls: type[Metric] = getattr(_package, known[name])
        return cls
    if name in GROUPS:
        raise RegistryError(f"{name!r} is a group of metrics; name one of them: {', '.join(GROUPS[name])}")
    if "," in name:
        names = [each.strip() for each in name.split(",")]
        raise RegistryError(f"{name[:200]!r} is several names; give each by itself: {' and '.join(map(repr, names))}")
    if not is_entry_point(name):
        # Loaded where a name is none.
        from ragstone.renamed import near_metric

        near = near_metric(words_of(name), (*known, *GROUPS))
        near = f". Did you mean {near}?" if near else ""
        there = f"there are {', '.join((*known, *GROUPS))}, or module:Class"
        raise RegistryError(f"there is no metric {name[:200]!r}; {there}{near}")
    own = _own_metric(name)
    return own if isinstance(own, type) else type(own)


def metric_name(name: str) -> str:
    """The name that the outcomes of a metric have: "my_pkg:Polite" has a name of its own.

    Raises:
        RegistryError: The name names none, or a group of them.
    """
    return _own_metric(name).name if is_entry_point(name) else metric_class(name).name


def _own_metric(name: str) -> type[Metric] | Metric:
    own: Any = load_entry_point(name)
    if not isinstance(own, Metric) and not (isinstance(own, type) and issubclass(own, Metric)):
        raise RegistryError(
            f"{name} is neither a subclass of ragstone.Metric nor a metric, such as a ragstone.Criterion"
        )
    return own


def make_metric(
    name: str,
    options: Mapping[str, object],
    llm: object,
    embedder: object = None,
    writer: object = None,
) -> Metric:
    """Return a metric.

    Args:
        name: The metric.
        options: Its options; texts, numbers and lists are checked against their types.
        llm: The judge, its name, or a framework's model object; used if the metric asks one.
        embedder: The embedder, likewise; used if the metric takes one.
        writer: What writes where the judge does not, likewise; used if the metric asks a judge.

    Raises:
        RegistryError: A name names nothing, or an option is unknown or impossible.

    Example:
        >>> from ragstone.judge_names import NullJudge
        >>> make_metric("context_relevancy", {"granularity": "chunk"}, NullJudge()).granularity
        'chunk'
    """
    cls = metric_class(name)
    arguments: dict[str, Any] = {"llm": llm, "writer": writer} if cls.needs_llm else {}
    if embedder is not None and "embedder" in _types(cls):
        arguments["embedder"] = embedder
    for option, value in options.items():
        is_object = option == "splitter" and type(value) not in (str, int, float, list, dict)
        arguments[option] = value if is_object and option in _types(cls) else checked_option(name, option, value)
    try:
        if is_entry_point(name) and not isinstance(own := _own_metric(name), type):
            return dataclasses.replace(own, **arguments)
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise RegistryError(f"{name}: {error}") from error


def checked_option(name: str, option: str, value: object) -> Any:  # noqa: ANN401 - of whatever type the option is
    """Return an option's value as its type has it: a tuple for a list of JSON.

    Raises:
        RegistryError: The metric has no such option, or the value is not of its type.
    """
    types = _types(metric_class(name))
    if option not in types or option in OBJECTS:
        raise RegistryError(f"{name} has no option {option!r}; it has {', '.join(sorted(types.keys() - OBJECTS))}")
    # A class of somebody's own, with postponed annotations.
    if isinstance(types[option], str):
        return value
    try:
        return checked(f"{name}.{option}", value, types[option])
    except ValueError as error:
        raise RegistryError(str(error)) from None


def _types(cls: type[Metric]) -> dict[str, Any]:
    return {field.name: field.type for field in dataclasses.fields(cls) if field.init}


@cache
def _class_names() -> dict[str, str]:
    """Return the class names of ragstone's metrics by the metrics' names, which are the same words."""
    names = dir(_package)
    return {words_of(name): name for name in names if name not in ("Metric", "Criterion")}


def metrics_from(
    metrics: object, *, llm: object = None, writer: object = None, embedder: object = None, **settings: object
) -> list[Metric]:
    """The metrics, with the models where they lack a judge.

    Args:
        metrics: One or several: metrics, their names, names of groups.
        llm: The judge, its name, or a framework's model object.
        writer: What writes where the judge does not; as `llm`.
        embedder: The embedder, its name, or a framework's object; None: the one that goes with the judge.
        settings: Of clients that are made by name (see `ragstone.judge_names.make_llm`).

    Raises:
        RegistryError: A name names nothing.
        ValueError: There is no metric, or no judge for one that asks.
        TypeError: An argument is no metric, or no model.

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
    judge, named = llm, embedder is not None
    for metric, options in spread(cast("Sequence[object]", metrics)):
        if isinstance(metric, Metric) and not metric.lacks_llm:
            made.append(metric)
            continue
        kind = _class_of(metric)
        if kind.needs_llm:
            if judge is None:
                name = metric if isinstance(metric, str) else metric.name
                raise ValueError(f"llm: is missing; pass a judge for {name!r}, or its name, such as 'local'")
            judge = judge_of("llm", judge, **settings)
            writer = None if writer is None else judge_of("writer", writer, **settings)
        own: object = None
        if gets_embedder(kind, judge, named=named):
            own = embedder = embedder_of(embedder, judge or "", **settings)
        if isinstance(metric, str):
            with naming("metrics"):
                made.append(make_metric(metric, options, judge, own, writer))
            continue
        models: dict[str, Any] = {"llm": judge, "writer": metric.writer or writer}
        if own is not None:
            models["embedder"] = vars(metric).get("embedder") or own
        made.append(dataclasses.replace(metric, **models))
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
