"""What `evaluate_query_engine` is called with, checked before the first question is asked."""

from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

from ragstone.metrics import Metric
from ragstone_llama_index.evaluator import MetricEvaluator

Metrics = Sequence[Metric | MetricEvaluator] | Mapping[str, Metric | MetricEvaluator]


def check_asked(engine: object, questions: object) -> None:
    """Refuse what is no query engine, and what is no list of questions.

    Raises:
        TypeError: Names the argument, what was given and what to pass.
    """
    if not (callable(getattr(engine, "query", None)) and callable(getattr(engine, "aquery", None))):
        raise TypeError(f"engine: {type(engine).__name__} has no query and aquery; pass a query engine")
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise TypeError(f"questions: is {type(questions).__name__}; pass a list of texts")
    for i, question in enumerate(cast("Sequence[object]", questions)):
        if not isinstance(question, str):
            raise TypeError(f"questions[{i}]: is {type(question).__name__}, not text (str)")


def by_name(metrics: object) -> dict[str, Metric]:
    """Return the metrics by their names, or by those that the user gave.

    Raises:
        TypeError: It is no list, or one of them is no metric.
        ValueError: There are none, or two have the same name.
    """
    if isinstance(metrics, Mapping):
        return {name: _metric(given) for name, given in cast("Mapping[str, object]", metrics).items()} or _none()
    if not isinstance(metrics, Sequence) or isinstance(metrics, str):
        raise TypeError(f"metrics: is {type(metrics).__name__}; pass a list of metrics")
    given = [_metric(one) for one in cast("Sequence[object]", metrics)]
    names = [metric.name for metric in given]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"metrics: {', '.join(sorted(twice))} twice; pass them by name: {{NAME: metric}}")
    return dict(zip(names, given, strict=True)) or _none()


def _none() -> NoReturn:
    raise ValueError("metrics: is empty; name at least one")


def _metric(given: object) -> Metric:
    metric = given.metric if isinstance(given, MetricEvaluator) else given
    if not isinstance(metric, Metric):
        raise TypeError(f"metrics: {type(given).__name__} is no metric; pass one such as ContextRelevancy(llm=...)")
    return metric
