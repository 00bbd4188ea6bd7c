"""What people write who come from other libraries, or from this one before: each error says what to write here."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

_JUDGES: Mapping[str, str] = {
    "api_key": "set OPENAI_API_KEY, or write llm=OpenAICompatible(MODEL, api_key=...)",
    "base_url": 'write it behind the model, llm="MODEL@URL"',
    **dict.fromkeys(("embedding", "embedding_model", "embeddings"), "write embedder="),
    **dict.fromkeys(("evaluator_llm", "judge", "llm_model", "model", "model_name"), "write llm="),
    **dict.fromkeys(("seed", "temperature"), 'write it in the judge\'s name, llm="openai:MODEL?temperature=0&seed=7"'),
}
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "evaluate": {
        **_JUDGES,
        **dict.fromkeys(("batch_size", "max_workers"), "write limits=Limits(max_concurrency=...)"),
        "column_map": 'write fields={"user_input": "COLUMN"}',
        **dict.fromkeys(("data", "dataset", "test_cases"), "write samples, the first argument"),
        "experiment_name": "write name=",
        "metric": "write metrics, the second argument",
        "raise_exceptions": "write nothing: what fails is Unscored, with its reason",
        "run_config": "write limits=Limits(max_concurrency=..., call_timeout=..., sample_timeout=...)",
        "show_progress": "write progress=",
        "threshold": "write threshold= of a metric, such as Faithfulness(threshold=0.8)",
        "timeout": "write limits=Limits(call_timeout=...) or limits=Limits(sample_timeout=...)",
        "total": "write nothing: the bar has an end where samples has a length",
    },
    "": {
        **_JUDGES,
        "async_mode": "write nothing: `await metric.ascore(...)` is async",
        **dict.fromkeys(("criteria", "definition"), "write question="),
        "embedder": "write nothing: it embeds nothing",
        "evaluation_params": "write sees=",
        "include_reason": "write reason=True",
        "strict_mode": "write threshold=, the best value",
        "verbose_mode": "write nothing: print(outcome) shows each verdict",
    },
}
_SCORE = "write outcome = metric.score(row), then outcome.value, outcome.reason and outcome.passed"
_FRAME = "write report.to_pandas(), or to_pandas(wide=True) for a row for each sample"
_OUTCOME: Mapping[str, str] = {
    **dict.fromkeys(("breakdown", "verdicts"), "only a Score has it; print(outcome) says why this is none"),
    **dict.fromkeys(("claims", "statements", "verdict"), "write outcome.verdicts"),
    **dict.fromkeys(("comment", "explanation", "feedback"), "write outcome.reason, or print(outcome)"),
    **dict.fromkeys(("cost", "evaluation_cost"), "write outcome.usage"),
    "detail": "only an Unscored has it; write outcome.reason",
    **dict.fromkeys(
        ("is_successful", "passed", "success"), "write outcome.passed, of a Score by a metric with threshold="
    ),
    **dict.fromkeys(("score", "scores"), "write outcome.value, which is None for an Unscored"),
    "to_dict": "write outcome.model_dump()",
}
_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "Metric": dict.fromkeys(
        ("a_measure", "evaluate", "explanation", "is_successful", "measure", "single_turn_ascore", "single_turn_score"),
        _SCORE,
    ),
    "MetricSummary": {
        **dict.fromkeys(("average", "score", "value"), 'write report["METRIC"].mean'),
        **dict.fromkeys(("scores", "values"), _FRAME),
    },
    "Report": {
        "": 'if it is a metric, write report["{}"].mean',
        **dict.fromkeys(("average", "mean", "score", "value"), 'write report["METRIC"].mean'),
        **dict.fromkeys(("cost", "tokens", "total_cost", "total_tokens"), "write report.usage"),
        **dict.fromkeys(("dataframe", "df", "scores", "to_dataframe", "values"), _FRAME),
        **dict.fromkeys(("errors", "failed", "failures"), 'write report["METRIC"].failures'),
        **dict.fromkeys(("items", "keys"), "write report.summary(), a dict by the metrics' names"),
        "passed": 'write report["METRIC"].passed',
        **dict.fromkeys(
            ("records", "rows", "samples", "test_results"),
            "write `for record in report`, with record.outcome and report.sample(record)",
        ),
        "to_html": 'write report.save("report.html")',
    },
    "Score": _OUTCOME,
    "Unscored": _OUTCOME,
}


_METRICS: Mapping[str, str] = {
    "accuracy": "factual_correctness", "answer_correctness": "factual_correctness",
    "answer_relevance": "response_relevancy", "answer_relevancy": "response_relevancy",
    "aspect_critic": "a Criterion", "coherence": "a Criterion",
    "completeness": "response_completeness", "context_utilization": "context_precision",
    "contextual_precision": "context_precision", "contextual_recall": "context_recall",
    "contextual_relevancy": "context_relevancy", "correctness": "factual_correctness", "g_eval": "a Criterion",
    "geval": "a Criterion", "groundedness": "faithfulness", "hallucination": "faithfulness",
    "llm_context_precision_with_reference": "context_precision",
    "llm_context_precision_without_reference": "context_precision", "llm_context_recall": "context_recall",
    "precision": "context_precision", "recall": "context_recall", "relevance": "response_relevancy",
    "relevancy": "response_relevancy", "summarization": "summarization_score", "summary_score": "summarization_score",
    "toxicity": "a Criterion",
}  # fmt: skip
"""ragstone's metrics by what other libraries call them."""
_CLASSES = {"a Criterion": "Criterion", "llm_test_case": "Sample", "single_turn_sample": "Sample"}


def near_metric(words: str, known: Sequence[str]) -> str:
    """The metric that may be meant, by another library's name or a slip of the finger; "" where none is near."""
    words = words.removesuffix("_metric")
    near = [words] if words in known else get_close_matches(words, known, n=1, cutoff=0.85)
    return _METRICS.get(words) or "".join(near)


def class_meant(words: str, metrics: Mapping[str, str]) -> str:
    """The class of `ragstone` that another library's name, or a metric's, means; "" for none.

    Args:
        words: The name in words.
        metrics: The classes of metrics by their names.
    """
    words = words.removesuffix("_metric")
    words = _METRICS.get(words, words)
    return metrics.get(words) or _CLASSES.get(words, "")


def refuse_options(
    owner: str, given: Iterable[str], known: Iterable[str], further: Mapping[str, str] | None = None
) -> None:
    """Refuse options that `evaluate`, or a metric of a class, does not have.

    Args:
        owner: The function's or the class's name.
        given: What was given.
        known: The options that there are.
        further: What to write for others.

    Raises:
        TypeError: One is none; the message says what is meant.

    Example:
        >>> refuse_options("Faithfulness", ["treshold"], ["llm", "threshold"])
        Traceback (most recent call last):
        TypeError: treshold: Faithfulness has no such option; write threshold=
    """
    known = [*known]
    meant = {**_OPTIONS.get(owner, _OPTIONS[""]), **(further or {})}
    for option in given:
        if option not in known:
            near = "".join(f"write {each}=" for each in get_close_matches(option, known, n=1, cutoff=0.75))
            way = meant.get(option) or near or f"`help({owner})` lists those that there are"
            raise TypeError(f"{option}: {owner} has no such option; {way}")


def check_arguments(
    metric: str, init: Callable[..., None], given: Sequence[object], options: Mapping[str, object]
) -> None:
    """Refuse, by a TypeError, what the `__init__` of a metric's class does not take."""
    taken = inspect.signature(init)
    if not any(each.kind is each.VAR_KEYWORD for each in taken.parameters.values()):
        refuse_options(metric, options, taken.parameters)
    try:
        taken.bind(None, *given, **options)
    except TypeError as error:
        raise TypeError(f"{metric}: {error}; the judge comes first, and options by name") from None


def no_attribute(owner: object, name: str) -> AttributeError:
    """The error of an attribute that a report, an outcome, or a metric does not have, with what to write.

    Args:
        owner: The object.
        name: The attribute's name.
    """
    if hasattr(type(owner), name):
        # A property of its own raised an AttributeError, and does so again.
        object.__getattribute__(owner, name)
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    habits = {wrong: way for kind in type(owner).__mro__ for wrong, way in _ATTRIBUTES.get(kind.__name__, {}).items()}
    way = "" if name.startswith("_") else habits.get(name, habits.get("", "")).format(name)
    return AttributeError(f"{said}; {way}" if way else said, name=name, obj=owner)
