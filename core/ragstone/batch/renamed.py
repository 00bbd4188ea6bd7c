"""What other libraries, and this one before, call the options of `evaluate`."""

from collections.abc import Mapping

from ragstone.limits.limits import Limits

_RENAMED = {
    "batch_size": "write limits=Limits(max_concurrency=...)",
    "dataset": "write samples, the first argument",
    "data": "write samples, the first argument",
    "embeddings": "write embedder=",
    "judge": "write llm=",
    "max_workers": "write limits=Limits(max_concurrency=...)",
    "metric": "write metrics, the second argument",
    "model": "write llm=",
    "raise_exceptions": "write nothing: what fails is Unscored, with its reason",
    "run_config": "write limits=Limits(max_concurrency=..., call_timeout=..., sample_timeout=...)",
    "show_progress": "write progress=",
    "threshold": "write threshold= of a metric, such as Faithfulness(threshold=0.8)",
    "timeout": "write limits=Limits(call_timeout=...) or limits=Limits(sample_timeout=...)",
    "total": "write nothing: the bar has an end where samples has a length",
}


def refuse(others: Mapping[str, object]) -> None:
    """Refuse options that there are not, by a TypeError that says what is meant."""
    for name in others:
        if name in Limits.__dataclass_fields__:
            raise TypeError(f"{name}: pass limits=Limits({name}=...)")
        meant = _RENAMED.get(name, "`help(evaluate)` lists those that there are")
        raise TypeError(f"{name}: evaluate has no such option; {meant}")
