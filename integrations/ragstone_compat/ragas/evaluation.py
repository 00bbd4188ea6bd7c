"""`evaluate` and `aevaluate`, by ragas' names."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import ragstone
from ragstone import Limits, Report, Unscored
from ragstone.errors import RagstoneError
from ragstone_compat.ragas.dataset_schema import EvaluationDataset, EvaluationResult, rows_in
from ragstone_compat.ragas.metrics import answer_relevancy, context_precision, context_recall, faithfulness
from ragstone_compat.ragas.metrics.base import Metric, unwrapped
from ragstone_compat.shared import check_names, embedder_by_name, judge_by_name

Result = EvaluationResult
_WITH_EFFECT = ("column_map", "experiment_name", "raise_exceptions", "run_config", "show_progress")
_WITHOUT = (
    "_pbar", "_run_id", "allow_nest_asyncio", "batch_size", "callbacks", "in_ci", "is_async", "return_executor",
    "token_usage_parser",
)  # fmt: skip
_DEFAULT = (answer_relevancy, context_precision, faithfulness, context_recall)


class _RagasRun:
    """What `evaluate` does before and after ragstone's."""

    def __init__(
        self,
        dataset: Any,  # noqa: ANN401 - of any package
        metrics: Sequence[Metric | type[Metric]] | None,
        llm: object,
        embeddings: object,
        options: Mapping[str, Any],
    ) -> None:
        check_names("evaluate", options, (*_WITH_EFFECT, *_WITHOUT))
        self.raises: bool = options.get("raise_exceptions", False)
        self.dataset = dataset
        if not isinstance(dataset, EvaluationDataset):
            self.dataset = EvaluationDataset.from_list(dataset, options.get("column_map"))
        self.rows = rows_in(dataset)
        given = _DEFAULT if metrics is None else metrics
        self.metrics = [metric() if isinstance(metric, type) else metric for metric in given]
        if strange := [metric for metric in self.metrics if not isinstance(cast("object", metric), Metric)]:
            raise TypeError(f"metrics: has {strange[0]!r}, which is none of ragstone_compat.ragas.metrics")
        asks = any(metric.kind.needs_llm and metric.llm is None for metric in self.metrics)
        embeds = any(metric.kind.needs_embedder and metric.embeddings is None for metric in self.metrics)
        judge = judge_by_name(unwrapped(llm)) if asks else None
        embedder = embedder_by_name(unwrapped(embeddings), judge) if embeds else None
        kinds = Counter(metric.kind for metric in self.metrics)
        native = [each.native(judge, embedder, each.column if kinds[each.kind] > 1 else "") for each in self.metrics]
        self.of = {each.name: metric for each, metric in zip(native, self.metrics, strict=True)}
        self.options: dict[str, Any] = {
            "samples": [sample.native for sample in self.dataset],
            "metrics": native,
            "name": options.get("experiment_name") or "",
            "progress": "auto" if options.get("show_progress", True) else False,
        }
        run_config = options.get("run_config")
        if run_config is not None:
            limits = Limits(max_concurrency=run_config.max_workers, sample_timeout=run_config.timeout)
            self.options["limits"] = limits

    def result(self, report: Report) -> EvaluationResult:
        scores: list[dict[str, float]] = [{} for _ in self.dataset]
        why: Counter[str] = Counter()
        for record in report:
            metric, outcome = self.of[record.outcome.metric], record.outcome
            scores[record.row][metric.column] = metric.result_of(outcome).value
            if isinstance(outcome, Unscored):
                if self.raises and outcome.reason != "undefined":
                    raise RagstoneError(f"{metric.column}, row {record.row + 1}: {outcome.detail}")
                why[f"{metric.column} {outcome.reason} ({outcome.detail})"] += 1
        if why:
            first, n = why.most_common(1)[0]
            more = f"{n} {first}; all of them are in result.report"
            print(f"ragstone: {sum(why.values())} of {len(report)} scores are NaN: {more}", file=sys.stderr)
        return EvaluationResult(scores, self.dataset, report, self.rows)


def evaluate(
    dataset: Any,  # noqa: ANN401 - of any package
    metrics: Sequence[Metric | type[Metric]] | None = None,
    llm: object = None,
    embeddings: object = None,
    *_: object,
    **options: Any,  # noqa: ANN401
) -> EvaluationResult:
    """Score a data set by `ragstone.evaluate`.

    Args:
        dataset: An `EvaluationDataset`, a Hugging Face dataset, a pandas DataFrame, or a list of dicts, with ragas'
            names of today or of 0.1.
        metrics: The metrics; None: answer_relevancy, context_precision, faithfulness and context_recall.
        llm: The judge of metrics that have none: what a wrapper or `llm_factory` returns, or any judge or model object
            that ragstone takes. None: OpenAI's where there is a key, else the embedded one.
        embeddings: Their embedder; likewise.
        **options: `run_config`; `raise_exceptions`: whether a sample that cannot be scored raises, once the run ended;
            `column_map`: the data set's column by ragas' name; `show_progress`; `experiment_name`: the name of the
            report. ragas' others (`callbacks`, `batch_size`, `is_async`, `in_ci` ...) have no effect.

    Returns:
        The means. A score that is missing is NaN; a line on standard error says how many are, and why.

    Raises:
        RagstoneError: No judge is named and there is none by default, or a sample raises.
        ValueError: A row holds no sample.
        TypeError: ragas' function has no such option.
    """
    run = _RagasRun(dataset, metrics, llm, embeddings, options)
    return run.result(ragstone.evaluate(**run.options))


async def aevaluate(
    dataset: Any,  # noqa: ANN401 - of any package
    metrics: Sequence[Metric | type[Metric]] | None = None,
    llm: object = None,
    embeddings: object = None,
    *_: object,
    **options: Any,  # noqa: ANN401
) -> EvaluationResult:
    """Score a data set on the running event loop; otherwise as `evaluate`."""
    run = _RagasRun(dataset, metrics, llm, embeddings, options)
    return run.result(await ragstone.aevaluate(**run.options))
