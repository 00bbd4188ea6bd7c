"""`ragstone score`: a file of samples in, scores with evidence out."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import click

from ragstone.batch.estimation import estimate
from ragstone.batch.evaluate import Interrupted, evaluate
from ragstone.batch.progress import above_bar, is_terminal
from ragstone.cli.options import (
    FiniteRange,
    NotThere,
    asking_option,
    check_apart,
    check_writable,
    embedder_option,
    field_option,
    llm_option,
    load_calibrations,
    local_file,
    make_metrics,
    metric_option,
    own_names,
    parse_keys,
    parse_settings,
    parse_thresholds,
    settings_option,
)
from ragstone.cli.output import echo, evidence_lines, write_page
from ragstone.cli.results import ResultsFile
from ragstone.keys import NoKeyError
from ragstone.metrics import AlignmentCoverage, Metric
from ragstone.registry import is_local, metric_names
from ragstone.reporting import MetricInfo, Report
from ragstone.sample import BadLine, Row
from ragstone.sources import SAMPLE_FIELDS, read_rows
from ragstone.store.journal import JournalError
from ragstone.store.record import Record
from ragstone.text.plain import printable

_SOURCE_NOTE = (
    "Note: alignment_coverage compares response with user_input. These rows have contexts; to compare with them: "
    "--set alignment_coverage.source=retrieved_contexts"
)
_NAMING = "--field FIELD=KEY"  # how messages say where a row's keys are named
_NO_SAMPLE = "No sample: no line of the input holds one. Each line must be one JSON object."
_POSITIVE = FiniteRange(min=0, min_open=True)


@click.command(short_help="Score samples, one JSON object a line.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@metric_option("What to score; repeat it. Default: all of ragstone's.")
@llm_option
@embedder_option
@asking_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write a JSON line per sample and metric, the samples with them (- : stdout). What is in the file is "
    "replaced, from the first result on.",
)
@click.option("--no-texts", is_flag=True, help="Leave the samples' texts, and those of the evidence, out of --out.")
@click.option(
    "--report",
    "report",
    type=click.Path(dir_okay=False),
    metavar="HTML",
    help="Write a page: the spread of the scores, and the lowest with what cost them. A file that is there is "
    "replaced.",
)
@click.option("--explain", "explained", is_flag=True, help="Print each score with its verdicts and their evidence.")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="[METRIC=]X",
    help="Exit with 1 when a mean is below X; each result says whether its score reaches X.",
)
@field_option
@settings_option
@click.option(
    "--calibration",
    "calibrations",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="What `ragstone calibrate` wrote for a metric and this judge.",
)
@click.option(
    "--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Judge calls in flight at most."
)
@click.option("--rpm", type=_POSITIVE, metavar="N", help="Judge calls per minute at most, spread evenly.")
@click.option("--tpm", type=_POSITIVE, metavar="N", help="Tokens per minute at most: estimated, then corrected.")
@click.option("--call-timeout", type=_POSITIVE, metavar="SECONDS", help="For one call to the judge.")
@click.option(
    "--sample-timeout",
    type=_POSITIVE,
    metavar="SECONDS",
    help="For one sample by one metric, in which its calls are in flight; waiting for their turn is not counted.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="K",
    help="Score each sample K times, to see the judge's own noise.",
)
@click.option(
    "--journal",
    "--resume",
    "journal",
    type=click.Path(dir_okay=False),
    metavar="PATH",
    help="Keep every outcome and reply in this file, as they come. A file that exists is resumed: what it has is not "
    "judged again, so after Ctrl-C, a crash or a kill, run the same command again. --resume is the same option.",
)
@click.option("--dry-run", "dry", is_flag=True, help="Ask no judge: print how many calls and tokens a run would take.")
@click.option(
    "--price",
    type=(FiniteRange(min=0), FiniteRange(min=0)),
    metavar="IN OUT",
    help="For --dry-run: what a million prompt tokens cost, and a million reply tokens.",
)
def score(
    file: str,
    names: tuple[str, ...],
    llm: str,
    embedder: str | None,
    asking: str,
    out: str | None,
    no_texts: bool,
    report: str | None,
    explained: bool,
    thresholds: tuple[str, ...],
    fields: tuple[str, ...],
    settings: tuple[str, ...],
    calibrations: tuple[str, ...],
    concurrency: int,
    rpm: float | None,
    tpm: float | None,
    call_timeout: float | None,
    sample_timeout: float | None,
    repeat: int,
    journal: str | None,
    dry: bool,
    price: tuple[float, float] | None,
) -> None:
    """Score the samples in FILE, one JSON object per line (- reads standard input).

    Prints, for each metric, the mean, how many samples it is of, the failures by reason, calls and tokens.
    A bad line is reported with its number and the run goes on. A run that is interrupted, or that gives up
    because the judge keeps failing, prints and has written what was scored so far. Ctrl-C finishes the calls in
    flight, a second one stops at once.

    \b
    Exit status:
      0    done
      1    a mean is below its threshold, nothing could be scored, or the
           judge kept failing
      2    the input or an option is wrong, or a line held no sample
      130  interrupted
      141  nobody reads standard output any more, and neither --out nor
           --report names a file
    """  # noqa: D301 - click's mark for lines that stay as they are
    check_apart(
        [("--out", None if out == "-" else out), ("--report", report), ("--journal", journal)],
        [
            ("the input FILE", file),
            *(("--calibration", each) for each in calibrations),
            ("--llm", local_file(llm)),
            ("--embedder", local_file(embedder)),
        ],
    )
    wanted = tuple(dict.fromkeys(names)) or metric_names()
    mapping = parse_keys("--field", "FIELD", fields, SAMPLE_FIELDS)
    options, limits = _metric_options(wanted, settings, thresholds, calibrations, asking)
    if out == "-" and explained:
        raise click.UsageError("--out - and --explain both write to standard output; name a file for --out")
    if price is not None and not dry:
        raise click.UsageError("--price: is for --dry-run")
    metrics = make_metrics(options, llm=llm, embedder=embedder, concurrency=concurrency, dry=dry)
    if dry:
        with _open_input(file) as lines:
            sys.exit(_show_estimate(read_rows(lines, mapping, naming=_NAMING), metrics, repeat, price))
    if report is not None:
        check_writable("--report", report, replaced=True)
    if out not in (None, "-"):
        check_writable("--out", out)
    with contextlib.ExitStack() as stack:
        name = "standard input" if file == "-" else Path(file).name
        head = {"ragstone_results": 1, "metrics": [asdict(MetricInfo.of(metric)) for metric in metrics]}
        results = None if out is None else ResultsFile(out, head, stack, texts=not no_texts)
        lines = stack.enter_context(_open_input(file))
        run = _Run(metrics, results, explained=explained, print_needed=report is None and out in (None, "-"))
        ended: BaseException | None = None
        try:
            result = evaluate(
                read_rows(lines, mapping, naming=_NAMING),
                metrics,
                max_concurrency=1 if is_local(llm) else concurrency,  # calls to the embedded judge run one at a time
                requests_per_minute=rpm,
                tokens_per_minute=tpm,
                call_timeout=call_timeout,
                sample_timeout=sample_timeout,
                repeat=repeat,
                journal=journal,
                total=_count_lines(file) if is_terminal() else None,
                name=name,
                on_result=run.on_result,
                on_bad_row=run.on_bad_row,
                stop_on_give_up=True,
            )
        except Interrupted as interrupted:
            result, ended = interrupted.report, run.lost or KeyboardInterrupt()
        except (JournalError, NoKeyError) as error:
            raise NotThere(f"--journal {error}") from error
    run.say(f"\n{result}", err=out == "-")
    if isinstance(ended, KeyboardInterrupt):
        on = "" if journal is None else f" Run the same command again to go on from there: {journal} has it."
        run.say(f"Interrupted: the table is of what was scored so far.{on}", err=True)
    if report is not None:
        write_page("--report", report, result.html())
    if ended is not None:
        raise ended
    sys.exit(run.status(result, limits))


def _metric_options(
    names: Sequence[str], settings: Sequence[str], thresholds: Sequence[str], calibrations: Sequence[str], asking: str
) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
    """Return each metric's options, and the limits by the metrics' own names."""
    own = own_names(names)
    limits = parse_thresholds(thresholds, list(own))
    options = parse_settings(settings, names)
    for name, limit in limits.items():
        options[own[name]]["threshold"] = limit  # so that each sample says whether it reaches it
    for values in options.values():
        values.setdefault("asking", asking)
    for name, calibration in load_calibrations(calibrations, names).items():
        options[name]["calibration"] = calibration
    return options, limits


class _Run:
    """What a run prints and writes on the way."""

    def __init__(
        self, metrics: Sequence[Metric], results: ResultsFile | None, *, explained: bool, print_needed: bool
    ) -> None:
        self._results, self._explained, self._print_needed = results, explained, print_needed
        self._note_source = any(isinstance(m, AlignmentCoverage) and m.source == "user_input" for m in metrics)
        self.lost: NotThere | None = None

    def on_result(self, records: Sequence[Record]) -> None:
        if self._explained:
            for record in records:
                self.say("\n".join(evidence_lines(record.sample_id, record.outcome)))
        if self._note_source and records[0].sample is not None and records[0].sample.retrieved_contexts:
            self._note_source = False
            self.say(_SOURCE_NOTE, err=True)
        if self._results is not None:
            try:
                self._results.write(records)
            except BrokenPipeError:
                raise
            except OSError as error:
                self.lost = self._results.lost(error)
                raise KeyboardInterrupt from error  # so that the table of what was scored comes all the same

    def on_bad_row(self, row: BadLine) -> None:
        self.say(f"line {row.line}: {printable(row.problem)} (skipped)", err=True)

    def say(self, text: str, *, err: bool = False) -> None:
        """Print a line, above the progress bar where there is one."""
        with above_bar(sys.stderr if err else sys.stdout):
            echo(text, err=err, needed=self._print_needed)

    def status(self, result: Report, limits: dict[str, float]) -> int:
        """Say what was wrong, and return the exit status."""
        summaries = result.summary()
        if not result.aggregates().rows:
            self.say(_NO_SAMPLE, err=True)
            return 2
        status = 0
        for why in result.gave_up:
            self.say(f"Gave up: {printable(why, 1_000)}. The table says how.", err=True)
            status = 1
        if not status and not any(summary.scored for summary in summaries.values()):
            self.say("Nothing could be scored; the table says why. `ragstone doctor` tries the judge.", err=True)
            status = 1
        for name, limit in limits.items():
            mean = summaries[name].mean
            if mean is None or mean < limit:
                why = "nothing was scored" if mean is None else f"its mean is {mean:.6g}"
                self.say(f"{name}: below the threshold {limit:g}: {why}", err=True)
                status = 1
        if result.bad_rows:
            self.say(f"{len(result.bad_rows)} line(s) held no sample; see above.", err=True)
            status = 2
        return status


def _show_estimate(
    rows: Iterator[Row | BadLine], metrics: Sequence[Metric], repeat: int, price: tuple[float, float] | None
) -> int:
    """Print what a run would take; return the exit status: 2 where a row, or every row, holds no sample."""

    def shown() -> Iterator[Row | BadLine]:
        for row in rows:
            if isinstance(row, BadLine):
                click.echo(f"line {row.line}: {printable(row.problem)} (skipped)", err=True)
            yield row

    input_price, output_price = price or (None, None)
    estimated = estimate(shown(), metrics, repeat=repeat, input_price=input_price, output_price=output_price)
    click.echo(str(estimated))
    if not estimated.samples:
        click.echo(_NO_SAMPLE, err=True)
    return 2 if estimated.bad_rows or not estimated.samples else 0


def _open_input(file: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open the file of samples; `-` is standard input, which stays open."""
    if file != "-":
        return Path(file).open("rb")
    try:
        # Not sys.stdin: a thread that waits in it for a line would abort the interpreter's exit.
        return contextlib.nullcontext(open(sys.stdin.fileno(), "rb", closefd=False))
    except (OSError, ValueError):  # it is no file, as in tests
        return contextlib.nullcontext(sys.stdin.buffer)


def _count_lines(file: str) -> int | None:
    """Return the number of lines; None for what cannot be read twice."""
    if file == "-" or not Path(file).is_file():
        return None
    with Path(file).open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b"")) or None
