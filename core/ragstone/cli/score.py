"""`ragstone score`: a file of samples in, scores with evidence out."""

import contextlib
import math
import shlex
import signal
import sys
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from ragstone.batch.estimation import estimate
from ragstone.batch.journal import is_journal
from ragstone.batch.progress import above_bar
from ragstone.batch.rows import fitting_group
from ragstone.batch.run import BatchRun, Interrupted
from ragstone.cli.file_fields import with_fields_said
from ragstone.cli.options import (
    FiniteRange,
    NotThere,
    Sectioned,
    check_apart,
    check_one_prints,
    check_suffix,
    check_writable,
    field_option,
    group_option,
    json_option,
    local_file,
    make_metrics,
    own_names,
    parse_keys,
    parse_settings,
    scoring_options,
)
from ragstone.cli.output import ResultsFile, brief, called, echo, evidence_lines, sample_lines, write_page
from ragstone.errors import JournalError
from ragstone.identity import NoKeyError, judge_key
from ragstone.judge_names import RegistryError
from ragstone.limits.limits import Limits
from ragstone.metrics import Metric
from ragstone.metrics.names import GROUPS, metric_class
from ragstone.plain import count, printable, to_json
from ragstone.report import MetricInfo, MetricSummary, Report
from ragstone.report.statistics import TIE
from ragstone.report.tables import percent
from ragstone.results.read import FileResults, open_results
from ragstone.results.record import Record
from ragstone.sample import BadLine
from ragstone.sources.base import Rows, SourceError
from ragstone.sources.reader import SAMPLE_FIELDS
from ragstone.sources.rows import rows_of

_NO_SAMPLE = "No sample: the input is empty."
_POSITIVE = FiniteRange(min=0, min_open=True)
_SECTIONS = {
    "What to score, and by whom": (
        "names",
        "llm",
        "writer",
        "embedder",
        "asking",
        "settings",
        "fields",
        "rows_by",
        "retriever_tools",
        "group",
    ),
    "What comes out": ("out", "no_texts", "report", "explain", "verbose", "as_json"),
    "When it fails": ("thresholds", "pass_rates"),
    "Limits and cost": (
        *("max_concurrency", "requests_per_minute", "tokens_per_minute", "max_calls", "max_tokens", "max_cost"),
        *("price", "call_timeout", "sample_timeout", "dry"),
    ),
    "Runs that go on": ("resume", "journal"),
}


@click.command(cls=Sectioned, sections=_SECTIONS, short_help="Score the samples of a file.")
@click.argument("file", type=click.Path(allow_dash=True))
@scoring_options(
    "What to score by; repeat it. Default: rag where the first row with contexts and a response has a question, else "
    "summary."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="The results file: a JSON line per sample and metric, with the samples (- : stdout). What is in it is "
    "replaced, from the first result on. Default: a new file, ragstone-results-DATE-TIME.jsonl.",
)
@click.option("--no-texts", is_flag=True, help="Leave the texts of samples and evidence out of the results file.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    metavar="HTML",
    help="Write a page of all samples and scores, with the evidence. A file that is there is replaced.",
)
@click.option("--explain", is_flag=True, help="Print each question and answer, its scores and what lowered them.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="A line of scores for each sample; with --explain, contexts, all verdicts and their places, too.",
)
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="[METRIC=]X",
    help="Exit with 1 when a mean is below X (above it, where lower is better); each result says whether its score "
    "reaches X.",
)
@click.option(
    "--pass-rate",
    "pass_rates",
    multiple=True,
    metavar="[METRIC=]X",
    help="Exit with 1 when a smaller share of scores than X, from 0 to 1, reaches its --threshold, which then says "
    "nothing of the mean.",
)
@field_option
@click.option(
    "--rows-by",
    metavar="KEY",
    help="Rows that share the value of this key or column are one sample, each with one of its passages; they have to "
    "stand together.",
)
@click.option(
    "--retriever-tool",
    "retriever_tools",
    multiple=True,
    metavar="NAME",
    help="Of stored traces: a tool whose texts are contexts; repeat it.",
)
@group_option
@click.option(
    "--concurrency",
    "max_concurrency",
    type=click.IntRange(1),
    default=Limits.max_concurrency,
    show_default=True,
    help="Judge calls in flight at most.",
)
@click.option(
    "--rpm",
    "requests_per_minute",
    type=_POSITIVE,
    metavar="N",
    help="Judge calls per minute at most, spread evenly.",
)
@click.option(
    "--tpm",
    "tokens_per_minute",
    type=_POSITIVE,
    metavar="N",
    help="Tokens per minute at most: estimated, then corrected.",
)
@click.option(
    "--max-calls",
    type=click.IntRange(1),
    metavar="N",
    help="Judge calls at most, tries counted: the rest is over_budget. With --journal, the same command goes on there.",
)
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Tokens of the judge at most, likewise.")
@click.option("--max-cost", type=_POSITIVE, metavar="X", help="Money for the judge at most, likewise.")
@click.option(
    "--call-timeout",
    type=_POSITIVE,
    metavar="SECONDS",
    help="For one call to the judge, its tries together. Default: 120; none for the embedded judge.",
)
@click.option(
    "--sample-timeout",
    type=_POSITIVE,
    metavar="SECONDS",
    help="For one sample by one metric, in which its calls are in flight; waiting for their turn is not counted.",
)
@click.option(
    "--resume",
    type=click.Path(exists=True),
    metavar="RESULTS",
    help="Go on from a results file of a run that was interrupted or killed: outcomes of the same samples by the same "
    "metric, version, judge and set-up are not judged again. Without --out the file then has all, also what it had "
    "of other samples and metrics. Or from a journal.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False),
    metavar="PATH",
    help="Keep every outcome and reply in this file, as they come. A file that exists is resumed: what it has is not "
    "judged again, so after Ctrl-C, a crash or a kill, run the same command again.",
)
@click.option(
    "--dry-run",
    "dry",
    is_flag=True,
    help="Ask no judge: print where the fields stand, and how many calls and tokens a run would take.",
)
@click.option(
    "--price",
    type=(FiniteRange(min=0), FiniteRange(min=0)),
    metavar="IN OUT",
    help="The price of a million prompt tokens, and of a million reply tokens.",
)
@json_option
@click.pass_context
def score(
    ctx: click.Context,
    /,
    file: str,
    names: tuple[str, ...],
    out: str | None,
    report: str | None,
    **given: Any,  # noqa: ANN401 - the other options by name, which click has checked
) -> None:
    """Score the samples in FILE (- reads standard input).

    FILE is JSON lines, a JSON list, CSV, TSV (each also .gz), .xlsx, Parquet, Arrow, or a folder that Hugging Face's
    save_to_disk wrote.

    Prints for each metric the mean with its interval, how many samples it is of, the failures by reason, calls and
    tokens. Each score goes to the results file, for `ragstone explain`, `report` and `compare`. A bad row is reported
    with its number and the run goes on. A run that is interrupted, or that gives up because the judge keeps failing,
    prints and has written what was scored so far. Ctrl-C finishes the calls in flight, a second one, or SIGTERM, stops
    at once.

    \b
    Exit status:
      0    done
      1    a mean is below its threshold, too few scores reach it, nothing
           could be scored, or the judge kept failing
      2    the input or an option is wrong, or a line held no sample
      130  interrupted
      141  standard output is closed, and neither --out nor
           --report names a file
    """  # noqa: D301 - click's mark for lines that stay as they are
    if given["resume"] is not None and is_journal(Path(given["resume"])):
        given["journal"], given["resume"] = given["resume"], None
    _check(file, out, report, given)
    mapping = parse_keys("--field", "FIELD", given["fields"], SAMPLE_FIELDS)
    rows = rows_of(
        file,
        mapping,
        naming="--field {field}={key}",
        rows_by=given["rows_by"],
        retriever_tools=given["retriever_tools"],
    )
    ctx.call_on_close(partial(_close, cast("Generator[object, None, None]", rows)))
    title = "standard input" if file == "-" else Path(file).name
    are_named = bool(names)
    names, rows = (names, rows) if are_named else _fitting(with_fields_said(title, rows))
    metrics, thresholds = _with_thresholds(names, given)
    rows = with_fields_said(title, rows) if are_named else rows
    if given["dry"]:
        ctx.exit(_show_estimate(rows, metrics, given))
    if report is not None:
        check_writable("--report", report, replaced=True)
    printer = _RunOutput(given, print_needed=report is None and out in (None, "-"))
    with contextlib.closing(_results_file(out, title, metrics, given)) as printer.results:
        run = _run_of(rows, metrics, title, given)
        run.total = _count_lines(file)
        result, ended = printer.evaluated(run)
    printer.results.finish(result)
    printer.say(to_json(result.figures()) if given["as_json"] else f"\n{result}", err=out == "-")
    done = f"{result.aggregates().rows:,}" + ("" if run.total is None else f" of {run.total:,}")
    # A file beside the one that was resumed has not all that there is.
    goes_on = not (given["no_texts"] or out == "-") and given["resume"] in (None, printer.results.out)
    printer.say_where(ended, given["journal"], done if goes_on else "")
    if report is not None:
        write_page("--report", report, result.html())
        printer.say(f"Report: {report}", err=True)
    if ended is not None:
        raise ended
    ctx.exit(printer.status(result, thresholds))


def _check(file: str, out: str | None, report: str | None, given: Mapping[str, Any]) -> None:
    """Refuse files that would overwrite one another, and options that do not go together."""
    models = [(f"--{name}", local_file(given[name])) for name in ("llm", "writer", "embedder")]
    written = [("--out", None if out == "-" else out), ("--report", report), ("--journal", given["journal"])]
    check_apart(written, [("the input FILE", file), *models])
    check_suffix("--out", out, ".jsonl", ".json")
    check_suffix("--report", report, ".html", ".htm")
    check_one_prints({"--out -": out == "-", "--explain": given["explain"], "--json": given["as_json"]})
    if given["resume"] is not None and given["no_texts"]:
        raise click.UsageError("--no-texts: a file without texts cannot be resumed; leave out --resume or --no-texts")
    if given["max_cost"] is not None and given["price"] is None:
        raise click.UsageError("--max-cost: needs --price IN OUT, the price of a million prompt and reply tokens")


def _with_thresholds(names: Sequence[str], given: Mapping[str, Any]) -> tuple[list[Metric], "Thresholds"]:
    """The metrics, over one judge, and what is asked of their scores."""
    options = parse_settings(given["settings"], names, asking=given["asking"])
    own = own_names(list(options))
    bounds = {name: metric_class(metric).bounds for name, metric in own.items()}
    thresholds = Thresholds(given["thresholds"], given["pass_rates"], bounds)
    for name, limit in thresholds.limits.items():
        # Then each sample says whether it reaches it.
        options[own[name]]["threshold"] = limit
    models = {name: given[name] for name in ("llm", "writer", "embedder", "dry")}
    return make_metrics(options, **models, concurrency=given["max_concurrency"]), thresholds


def _results_file(out: str | None, title: str, metrics: Sequence[Metric], given: Mapping[str, Any]) -> ResultsFile:
    info: dict[str, object] = {"metrics": [asdict(MetricInfo.of(metric)) for metric in metrics]}
    # A judge of your own may have an identity that is none.
    with contextlib.suppress(NoKeyError):
        info["judges"] = {metric.name: judge_key(metric.judge) for metric in metrics}
    resume: str | None = given["resume"]
    # A frame and a database stay as they are, and so does a file beside another one.
    is_other = out is not None and not (resume and Path(out).exists() and Path(out).samefile(resume))
    if resume is None or is_other or not isinstance(open_results(resume), FileResults):
        return ResultsFile(out, info, texts=not given["no_texts"])
    # Loaded where a run goes on.
    from ragstone.cli.resumed import ResumedFile

    return ResumedFile(resume, title, info)


def _run_of(rows: Rows, metrics: Sequence[Metric], title: str, given: Mapping[str, Any]) -> BatchRun:
    return BatchRun(
        rows,
        metrics,
        limits=Limits(**{each.name: given[each.name] for each in fields(Limits)}),
        price=given["price"],
        journal=given["journal"],
        resume=given["resume"],
        group=given["group"],
        name=title,
        progress=True,
        stop_on_give_up=True,
    )


class Thresholds:
    """What --threshold and --pass-rate ask of the scores.

    Args:
        thresholds: As they are given: X, METRIC=X or GROUP=X.
        pass_rates: Likewise.
        bounds: The least and greatest score of what is scored, by the metric's name.

    Attributes:
        limits: The threshold by the metric's name.

    Raises:
        click.UsageError: One is no possible score, or is of no metric that is scored; a pass rate has no threshold.
    """

    def __init__(
        self, thresholds: Sequence[str], pass_rates: Sequence[str], bounds: Mapping[str, tuple[float, float]]
    ) -> None:
        self.limits = parse_limits("--threshold", thresholds, bounds)
        self._rates = parse_limits("--pass-rate", pass_rates, dict.fromkeys(bounds, (0.0, 1.0)))
        if without := [name for name in self._rates if name not in self.limits]:
            raise click.UsageError(f"--pass-rate: {without[0]} has no threshold; add --threshold {without[0]}=X")

    def unmet(self, summaries: Mapping[str, MetricSummary]) -> Iterator[str]:
        """Yield a sentence for each that the scores do not meet."""
        for name, rate in self._rates.items():
            passed = summaries[name].passed
            if passed is None or passed < rate - TIE:
                share = "nothing was scored" if passed is None else f"{percent(passed)} reach {self.limits[name]:g}"
                yield f"{name}: below the pass rate {rate:g}: {share}"
        for name in [each for each in self.limits if each not in self._rates]:
            limit, mean, sign = self.limits[name], summaries[name].mean, summaries[name].info.sign
            if mean is None or sign * mean < sign * limit - TIE:
                why = "nothing was scored" if mean is None else f"its mean is {mean:.6g}"
                side = "below" if sign > 0 else "above"
                yield f"{name}: {side} the threshold {limit:g}: {why}"


def parse_limits(option: str, given: Sequence[str], bounds: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """The limit of each metric that has one; METRIC=X goes before GROUP=X, and that before X.

    Raises:
        click.UsageError: One is no number within its metric's bounds, or is of no metric that is scored.

    Example:
        >>> parse_limits("--threshold", ["b=0.7", "0.5"], {"a": (0.0, 1.0), "b": (0.0, 1.0)})
        {'a': 0.5, 'b': 0.7}
    """
    limits: dict[str, float] = {}
    for text in sorted(given, key=lambda text: ("=" in text, text.partition("=")[0] not in GROUPS)):
        name, equals, value = text.rpartition("=")
        meant = GROUPS.get(name, (name,)) if equals else tuple(bounds)
        try:
            limit = float(value)
        except ValueError:
            limit = float("nan")
        if not math.isfinite(limit) or not bounds.keys() >= set(meant):
            raise click.UsageError(
                f"{option} {text}: write X or METRIC=X, X a number such as 0.8, METRIC one of {', '.join(bounds)}"
            )
        for metric in meant:
            low, high = bounds[metric]
            if not low <= limit <= high:
                near = f"; did you mean {limit / 100:g}?" if low <= limit / 100 <= high else ""
                raise click.UsageError(f"{option} {text}: X is from {low:g} to {high:g} for {metric}{near}")
        limits.update(dict.fromkeys(meant, limit))
    return limits


def _fitting(rows: Rows) -> tuple[tuple[str, ...], Rows]:
    """The group of metrics that fits the rows, as said on standard error, and all the rows."""
    try:
        group, line, rows = fitting_group(rows)
    except RegistryError as error:
        raise click.UsageError(f"--metric: {error}") from None
    if line:
        echo(line, err=True, needed=False)
    return (group,), rows


@contextlib.contextmanager
def _sigterm_as_ctrl_c() -> Generator[None, None, None]:
    """SIGTERM ends a run at once, as a second Ctrl-C does; the outcomes so far are printed."""

    def end(_number: int, _frame: object) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _RunOutput:
    """What a run prints and writes on the way."""

    results: ResultsFile

    def __init__(self, given: Mapping[str, Any], *, print_needed: bool) -> None:
        self._explain, self._verbose, self._table = given["explain"], given["verbose"], not given["as_json"]
        self._print_needed = print_needed
        self._lost: NotThere | None = None
        self._scored = False

    def evaluated(self, run: BatchRun) -> tuple[Report, BaseException | None]:
        """Complete a run; its report, and what ended it before its time."""
        try:
            with _sigterm_as_ctrl_c():
                return run.evaluated(self), None
        except Interrupted as interrupted:
            return interrupted.report, self._lost or KeyboardInterrupt()
        except (JournalError, SourceError) as error:
            report = getattr(error, "report", None)
            if not isinstance(report, Report) or not report.aggregates().rows:
                raise
            return report, error

    def on_bad_row(self, row: BadLine) -> None:
        """Say what is wrong with a row."""
        _say_bad_row(row)

    def on_result(self, records: Sequence[Record]) -> None:
        """Write and print a sample's records."""
        self._scored = self._scored or any(record.outcome.value is not None for record in records)
        if self._explain:
            sample = records[0].sample
            lines = [] if sample is None else list(sample_lines(sample, contexts=self._verbose))
            for record in records:
                lines += evidence_lines(record.sample_id, record.outcome, full=self._verbose)
            self.say("\n".join([*lines, ""]))
        elif self._verbose:
            self.say("  ".join([printable(records[0].sample_id, 40), *map(brief, records)]), err=True)
        try:
            self.results.write(records)
        except BrokenPipeError:
            raise
        except OSError as error:
            self._lost = self.results.lost(error)
            # The table of what was scored comes all the same.
            raise KeyboardInterrupt from error

    def say(self, text: str, *, err: bool = False) -> None:
        """Print a line, above the progress bar where there is one."""
        with above_bar(sys.stderr if err else sys.stdout):
            echo(text, err=err, needed=self._print_needed)

    def say_where(self, ended: BaseException | None, journal: str | None, done: str) -> None:
        """Say how to go on after Ctrl-C, and where the results are, which have so many samples, if they have texts."""
        if isinstance(ended, KeyboardInterrupt):
            on = "" if journal is None else f" Run the same command again to go on from there: {journal} has it."
            if done and not on and self.results.begun:
                on = f" Run again with --resume {self.results.out}: {done} are done."
            self.say(f"Interrupted: these are the scores so far.{on}", err=True)
        if self.results.begun and not self.results.named:
            self.say(f"Results: {self.results.out}", err=True)
            if self._scored:
                self.say(f"Next: {called()} explain {shlex.quote(self.results.out)}", err=True)

    def status(self, result: Report, thresholds: Thresholds) -> int:
        """Say what was wrong; the exit status."""
        if not result.aggregates().rows:
            self.say(_NO_SAMPLE, err=True)
            return 2
        summaries = result.summary()
        said = "the table says why" if self._table else printable("; ".join(result.gave_up), 1_000)
        wrong = [f"Gave up: {said}."] if result.gave_up else []
        if not wrong and not any(summary.scored for summary in summaries.values()):
            inputs = {"missing_input", "empty_input"}
            lacking = all(inputs.issuperset(summary.failures) for summary in summaries.values())
            way_out = "" if lacking else f" `{called()} doctor` tries the judge."
            wrong.append(f"Nothing could be scored; the table says why.{way_out}")
        wrong += thresholds.unmet(summaries)
        if result.bad_rows:
            wrong.append(f"{count(len(result.bad_rows), 'line')} held no sample; see above.")
        for line in wrong:
            self.say(line, err=True)
        return 2 if result.bad_rows else int(bool(wrong))


def _say_bad_row(row: BadLine) -> None:
    with above_bar(sys.stderr):
        echo(f"line {row.line}: {printable(row.problem)} (skipped)", err=True, needed=False)


def _show_estimate(rows: Rows, metrics: Sequence[Metric], given: Mapping[str, Any]) -> int:
    """Print the cost of a run; return the exit status: 2 if a row holds no sample."""

    def shown() -> Rows:
        for row in rows:
            if isinstance(row, BadLine):
                _say_bad_row(row)
            yield row

    estimated = estimate(shown(), metrics, price=given["price"])
    click.echo(to_json(estimated) if given["as_json"] else str(estimated))
    if not estimated.samples:
        click.echo(_NO_SAMPLE, err=True)
    return 2 if estimated.bad_rows or not estimated.samples else 0


def _close(rows: Generator[object, None, None]) -> None:
    # A thread may wait in it for a pipe's next line.
    with contextlib.suppress(ValueError):
        rows.close()


def _count_lines(file: str) -> int | None:
    """The number of lines of a file of JSON lines; None for any other, and for what cannot be read twice."""
    if not file.lower().endswith((".jsonl", ".ndjson")) or not Path(file).is_file():
        return None
    with Path(file).open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b"")) or None
