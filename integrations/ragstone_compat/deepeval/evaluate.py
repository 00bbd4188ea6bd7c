"""`evaluate` and `assert_test`, by DeepEval's names."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any

import ragstone
from ragstone.errors import RagstoneError, describe
from ragstone_compat.deepeval.metrics import BaseMetric
from ragstone_compat.deepeval.test_case import LLMTestCase
from ragstone_compat.shared import check_names

AsyncConfig = CacheConfig = DisplayConfig = ErrorConfig = dict[str, Any]
"""Options of `evaluate` in groups, by keyword; it takes them alone, too."""
_WITH_EFFECT = (
    "ignore_errors", "max_concurrent", "print_results", "run_async", "show_indicator", "skip_on_missing_params",
)  # fmt: skip
_WITHOUT = (
    "display_option", "file_output_dir", "file_type", "identifier", "inspect_after_run", "metric_collection",
    "official", "results_folder", "results_subfolder", "throttle_value", "truncate_passing_cases", "use_cache",
    "verbose_mode", "write_cache",
)  # fmt: skip
# Calls of a user's own model may wait for one another; a client has a limit of its own.
_CALL_SECONDS = 3600.0


def evaluate(
    test_cases: Iterable[LLMTestCase],
    metrics: Sequence[BaseMetric],
    hyperparameters: Mapping[str, object] | None = None,  # noqa: ARG001
    async_config: Mapping[str, Any] | None = None,
    display_config: Mapping[str, Any] | None = None,
    cache_config: Mapping[str, Any] | None = None,  # noqa: ARG001
    error_config: Mapping[str, Any] | None = None,
    **options: Any,  # noqa: ANN401
) -> SimpleNamespace:
    """Score test cases by `ragstone.evaluate`, and print the results.

    Args:
        test_cases: The test cases, or a data set of them.
        metrics: The metrics; they stay as they are.
        hyperparameters: Without effect.
        async_config: `max_concurrent`: calls in flight, by default 20; `run_async`: False for one.
        display_config: `show_indicator`: whether to show progress; `print_results`: whether to print the results.
        cache_config: Without effect.
        error_config: `ignore_errors`: whether what cannot be scored raises nothing; `skip_on_missing_params`: whether
            a metric is left out of the results of a test case that lacks a field.
        **options: Any of these by itself, as older releases of DeepEval took them; DeepEval's others have no effect.

    Returns:
        `test_results`, in the order of the test cases, each with the test case's fields, `index`, `success`, and
        `metrics_data`: copies of the metrics with `name`, `score`, `success`, `reason`, `error` and `outcome`.

    Raises:
        RagstoneError: Test cases could not be scored, and `ignore_errors` is not set. The run ends first, and prints
            what was scored. A score that is 0 of 0 raises nothing: it is NaN, and a line on stderr counts them.
        TypeError: DeepEval's function has no such option.
    """
    options = {**(async_config or {}), **(display_config or {}), **(error_config or {}), **options}
    check_names("evaluate", options, (*_WITH_EFFECT, *_WITHOUT))
    run_async = options.get("run_async", True)
    most = options.get("max_concurrent", 20) if run_async else 1
    limits = ragstone.Limits(max_concurrency=most, call_timeout=_CALL_SECONDS)
    cases = list(test_cases)
    measured: list[list[Any]] = [[] for _ in cases]
    for metric in metrics:
        if metric.kind is None:
            own = [_own(metric, case) for case in cases]
        else:
            report = ragstone.evaluate(
                [metric.sample_of(case) for case in cases],
                metric.native() if run_async else metric.asked_alone().native(),
                limits=limits,
                progress="auto" if options.get("show_indicator", True) else False,
            )
            own = [copy(metric).set_outcome(record.outcome) for record in report]
        for row, each in zip(measured, own, strict=True):
            row.append(each)
            row[-1].name = each.__name__
    results: list[SimpleNamespace] = []
    left_out = ("missing_input", "empty_input") if options.get("skip_on_missing_params") else ()
    for index, (case, row) in enumerate(zip(cases, measured, strict=True)):
        data = [each for each in row if _why(each) not in left_out]
        if options.get("print_results", True):
            print("\n".join(f"{case.name or index}: {_line(each)}" for each in data))
        success = all(each.success is not False or each.flaky for each in data)
        fields = {**dict(case), "name": case.name or f"test_case_{index}"}
        results.append(SimpleNamespace(**{**fields, "index": index, "success": success, "metrics_data": data}))
    failed = [each for row in measured for each in row if each.error and _why(each) not in left_out]
    errors = [_line(each) for each in failed if _why(each) != "undefined"]
    if undefined := [each for each in failed if _why(each) == "undefined"]:
        print(f"ragstone: {len(undefined)} scores are NaN; first: {_line(undefined[0])}", file=sys.stderr)
    if errors and not options.get("ignore_errors"):
        raise RagstoneError(f"{len(errors)} of {len(cases) * len(metrics)} could not be scored; first: {errors[0]}")
    return SimpleNamespace(test_results=results, confident_link=None, test_run_id=None)


def assert_test(test_case: LLMTestCase, metrics: Sequence[BaseMetric], run_async: bool = True) -> None:
    """Fail a test whose test case fails by a metric.

    Raises:
        AssertionError: It does; the message says which metrics, with score and reason.
        RagstoneError: As `evaluate`.
    """
    results = evaluate([test_case], metrics, run_async=run_async, print_results=False, show_indicator=False)
    failed = [_line(each) for each in results.test_results[0].metrics_data if each.success is False and not each.flaky]
    if failed:
        raise AssertionError(f"Metrics: {', '.join(failed)} failed.")


def _own(metric: BaseMetric, case: LLMTestCase) -> BaseMetric:
    """Return a copy of a metric of the user's own that has measured a test case."""
    metric = copy(metric)
    try:
        metric.measure(case)
    except Exception as error:
        metric.error, metric.success = describe(error), False
    return metric


def _why(metric: BaseMetric) -> object:
    """Return the reason of an Unscored."""
    return getattr(metric.outcome, "reason", None)


def _line(metric: Any) -> str:  # noqa: ANN401 - with a name
    why = f"error: {metric.error}" if metric.error else f"reason: {metric.reason}"
    return f"{metric.name} (score: {metric.score}, threshold: {metric.threshold}, strict: {metric.strict_mode}, {why})"
