"""Scores rows through `ragstone.evaluate`, with a journal, so that a run that was killed goes on."""

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tqdm import tqdm

import ragstone
from ragstone import LLM, Embedder, Limits, Metric, Outcome, Report, Score, Unscored, evaluate
from ragstone.judge_names import NullJudge
from ragstone.metrics.names import make_metric, metric_class
from ragstone.metrics.setup import parts_of, settings_of
from ragstone.report import MetricInfo

from .files import OURS, Label, Line, Mark, RunInfo, keep_run, read_records, write_records
from .rows import METRICS, DataError, GoldSplitter, Row, judged_places

FAILED_IN_A_ROW = 20
_DIGITS = 6
_CLASSES: Mapping[str, type[Metric]] = {metric.name: metric for metric in METRICS.values()}
_EMBEDDING = frozenset(name for name, metric in _CLASSES.items() if hasattr(metric, "embedder"))


class JudgeError(RuntimeError):
    """The judge fails on everything."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a folder is scored.

    Attributes:
        name: What the table calls the scores, and the name of their file.
        metrics: Which metrics; none for all that the rows name.
        calls: To the judge in flight at most.
        at_once: Rows that are scored at the same time. Of one, a row's seconds are its own.
        history: Whether samples keep their history.
        options: Of the metrics, by name and option.
    """

    name: str = OURS
    metrics: Sequence[str] = ()
    calls: int = 1
    at_once: int = 1
    history: bool = True
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def wanted(self, rows: Sequence[Row]) -> list[str]:
        """Return the names of the metrics to score a file's rows by."""
        return [name for name in rows[0].metrics if not self.metrics or name in self.metrics]


def embeds(data: Mapping[str, list[Row]], settings: Settings) -> bool:
    """Return whether a metric that is to be run cannot do without an embedder."""
    wanted = {name for rows in data.values() for name in settings.wanted(rows)}
    return any(metric_class(name).needs_embedder for name in wanted)


def score_folder(
    data: Mapping[str, list[Row]],
    scored: Mapping[str, list[Row]],
    out: Path,
    settings: Settings,
    llm: LLM,
    embedder: Embedder | None = None,
    of_floors: Embedder | None = None,
) -> None:
    """Score the rows of each file and keep labels, scores and what they were made with in `out`.

    Whatever the journal there has is not asked again. Scores of rows that are not scored now stay, unless they are of
    another version of the metric.

    Args:
        data: All rows, by file.
        scored: Those that are scored.
        out: The folder of the results.
        settings: How.
        llm: The judge.
        embedder: Where `embeds`, or where metrics are to use one that could do without.
        of_floors: The embedder of the floors; None leaves those out that need one.

    Raises:
        DataError: `out` holds the scores of another judge or other options.
        JudgeError: The judge failed on 20 rows in a row.
        ValueError, TypeError: An option has an impossible value.
    """
    made = {
        (file, name): _metric(name, data[file], settings, llm, embedder)
        for file, rows in scored.items()
        for name in settings.wanted(rows)
    }
    options = {name: {key: str(value) for key, value in each.items()} for name, each in settings.options.items()}
    vectors = None if embedder is None else embedder.model
    keep_run(out / "run.json", settings.name, _run_info(llm.model, vectors, options, history=settings.history))
    _keep_labels(out / "rows.jsonl", data, of_floors)
    scores = out / "scores" / f"{settings.name}.jsonl"
    for (file, name), metric in made.items():
        fresh: list[Line] = []
        try:
            for line in _scored(scored[file], metric, out / "journal.db", settings):
                fresh.append(line)  # noqa: PERF402 - what is there counts when it is broken off
        finally:
            _merge(scores, fresh, file, name, metric.version)


def keep_results(
    data: Mapping[str, list[Row]],
    scored: Mapping[str, list[Row]],
    out: Path,
    settings: Settings,
    results: Path,
    of_floors: Embedder | None = None,
) -> None:
    """Keep the scores of a results file of `ragstone score` as those of the rows of its ids; else as `score_folder`.

    Raises:
        DataError: It has scores by several judges or versions, or none of these rows; or `out` holds the scores of
            another judge or other options.
        ResultsError: It is no results file.
    """
    report = Report.load(results)
    infos = {info.name: info for info in report.metrics}
    if len(infos) < len(report.metrics) or len({info.judge for info in report.metrics}) > 1:
        raise DataError(f"{results}: has scores by several judges or versions; give a file of one run")
    outcomes = {(record.sample_id, record.outcome.metric): record.outcome for record in report.results()}
    found: dict[tuple[str, str], list[Line]] = {}
    for file, rows in scored.items():
        for name in settings.wanted(rows):
            if rows[0].task != "sentences":  # `ragstone score` splits sentences otherwise than people did
                found[file, name] = [_line(row, outcomes[row.id, name]) for row in rows if (row.id, name) in outcomes]
    if not any(found.values()):
        raise DataError(f"{results}: has no score of these rows, by their ids, that can stand beside their labels")
    used = [infos[name] for name in dict.fromkeys(name for (_, name), lines in found.items() if lines)]
    vectors = next(filter(None, (parts_of(info.setup).get("embedder") for info in used)), None)
    options = {info.name: _changed(info) for info in used if _changed(info)}
    keep_run(out / "run.json", settings.name, _run_info(used[0].judge, vectors, options, history=settings.history))
    _keep_labels(out / "rows.jsonl", data, of_floors)
    for (file, name), lines in found.items():
        _merge(out / "scores" / f"{settings.name}.jsonl", lines, file, name, infos[name].version if lines else "")


def _changed(info: MetricInfo) -> dict[str, str]:
    """Return the options of a metric that are not the default, as its results file has them."""
    usual = settings_of(make_metric(info.name, {}, NullJudge()))
    return {key: str(value) for key, value in info.settings.items() if value != usual.get(key)}


def _keep_labels(path: Path, data: Mapping[str, list[Row]], of_floors: Embedder | None) -> None:
    """Write the labels of the rows, in place of those that are there for the same files."""
    labels = [label for label in read_records(path, Label) if label.file not in data] if path.exists() else []
    labels += [Label.of(row, of_floors) for rows in data.values() for row in rows]
    write_records(path, sorted(labels, key=lambda label: label.file))


def _merge(scores: Path, fresh: Sequence[Line], file: str, name: str, version: str) -> None:
    """Put lines into a file of scores, which is read only now: another run may have written it meanwhile.

    Lines of the rows that were scored go, and those of another version of the metric.
    """
    again = {line.key for line in fresh}
    there = read_records(scores, Line) if scores.exists() else []
    kept = [
        line
        for line in there
        if line.key not in again and not (line.file == file and line.metric == name and line.version != version)
    ]
    write_records(scores, sorted([*kept, *fresh], key=lambda line: line.key))


def _metric(name: str, rows: Sequence[Row], settings: Settings, llm: LLM, embedder: Embedder | None) -> Metric:
    options: dict[str, Any] = dict(settings.options.get(name, {}))
    if embedder is not None and name in _EMBEDDING:
        options["embedder"] = embedder
    if rows[0].task == "sentences":
        options["splitter"] = GoldSplitter(rows)
    if name == "alignment_coverage":
        options.setdefault("source", "retrieved_contexts")  # `user_input` may be the question that a summary is for
    return _CLASSES[name](llm=llm, **options)


def _run_info(judge: str, embedder: str | None, options: Mapping[str, Mapping[str, str]], *, history: bool) -> RunInfo:
    return RunInfo(
        judge=judge,
        embedder=embedder,
        options=options,
        history=history,
        ragstone=ragstone.__version__,
        python=f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        date=datetime.now(timezone.utc).date().isoformat(),
    )


def _scored(rows: Sequence[Row], metric: Metric, journal: Path, settings: Settings) -> Iterator[Line]:
    failed = 0
    with tqdm(total=len(rows), desc=f"{rows[0].file if rows else ''} {metric.name}", unit="row", disable=None) as bar:
        for first in range(0, len(rows), settings.at_once):
            part = rows[first : first + settings.at_once]
            report = evaluate(
                [row.sample if settings.history else row.sample.model_copy(update={"history": ()}) for row in part],
                [metric],
                limits=Limits(max_concurrency=settings.calls),
                journal=journal,
                progress=False,
            )
            for result in report.results():
                outcome = result.outcome
                yield _line(part[result.row], outcome)
                if not isinstance(outcome, Unscored) or outcome.reason != "judge_error":
                    failed = 0
                    continue
                failed += 1
                tqdm.write(f"{result.sample_id}: {outcome.detail}", file=sys.stderr)
                if failed >= FAILED_IN_A_ROW:
                    raise JudgeError(
                        f"the judge failed {failed} times in a row. Run the same command again to go on from there."
                    )
            bar.update(len(part))


def _line(row: Row, outcome: Outcome) -> Line:
    usage = outcome.usage
    parts: dict[str, float] = {}
    marks: tuple[Mark, ...] | None = None
    passages: list[tuple[int, int, float]] = []
    if isinstance(outcome, Score):
        parts = {name: round(number, _DIGITS) for name, number in outcome.breakdown.items()}
        if row.task == "noncommittal" and outcome.verdicts and outcome.verdicts[0].probability is not None:
            parts["noncommittal_probability"] = round(1.0 - outcome.verdicts[0].probability, _DIGITS)
        if row.task == "sentences":
            verdicts = [verdict for verdict in outcome.verdicts if verdict.kind == "sentence"]
            marks = tuple(
                (
                    *place,
                    verdict.verdict == "relevant",
                    None if verdict.probability is None else round(verdict.probability, _DIGITS),
                )
                for place, verdict in zip(judged_places(row), verdicts, strict=True)
            )
            for verdict in outcome.verdicts:
                if verdict.kind == "passage" and verdict.probability is not None:
                    first, last = map(int, verdict.id.split("-"))
                    passages.append((first - 1, last - 1, round(verdict.probability, _DIGITS)))
    return Line(
        file=row.file,
        id=row.id,
        metric=outcome.metric,
        value=round(outcome.value, _DIGITS) if isinstance(outcome, Score) else None,
        unscored=outcome.reason if isinstance(outcome, Unscored) else None,
        parts=parts,
        sentences=marks,
        passages=tuple(passages),
        calls=usage.llm_calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        seconds=round(usage.seconds, 3),
        version=outcome.version,
    )
