"""`ragstone score`: a file of samples in, scores with evidence out."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from ragstone.batch.interrupts import Interrupts
from ragstone.batch.progress import is_terminal
from ragstone.cli.dry_run import show_estimate
from ragstone.cli.ended import open_journal, run_to_end
from ragstone.cli.options import (
    FiniteRange,
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
from ragstone.cli.results import Results
from ragstone.cli.run import Run
from ragstone.cli.show import summary_table
from ragstone.limits.gate import RequestGate
from ragstone.metrics import Metric
from ragstone.registry import is_local, metric_names
from ragstone.sources import SAMPLE_FIELDS, read_rows
from ragstone.text.plain import printable

if TYPE_CHECKING:
    from ragstone.cli.page import Page

NAMING = "--field FIELD=KEY"
"""How messages say where a row's keys are named."""
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
    help="Write a JSON line per sample and metric (- : stdout). What is in the file is replaced, from the first result "
    "on.",
)
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
    own = own_names(wanted)
    limits = parse_thresholds(thresholds, list(own))
    options = parse_settings(settings, wanted)
    for name, limit in limits.items():
        options[own[name]]["threshold"] = limit  # so that each sample says whether it reaches it
    for values in options.values():
        values.setdefault("asking", asking)
    for name, calibration in load_calibrations(calibrations, wanted).items():
        options[name]["calibration"] = calibration
    if out == "-" and explained:
        raise click.UsageError("--out - and --explain both write to standard output; name a file for --out")
    if price is not None and not dry:
        raise click.UsageError("--price: is for --dry-run")
    metrics = make_metrics(options, llm=llm, embedder=embedder, concurrency=concurrency, dry=dry)
    if dry:
        with open_input(file) as lines:
            sys.exit(show_estimate(read_rows(lines, mapping, naming=NAMING), metrics, repeat, price))
    page = None if report is None else _page(report, metrics, file)
    if out not in (None, "-"):
        check_writable("--out", out)
    # Calls to the embedded judge run one at a time: rows side by side would only wait for each other.
    calls, window = (1, 1) if is_local(llm) else (concurrency, 16 * concurrency)
    interrupts = Interrupts()
    with contextlib.ExitStack() as stack:
        results = None if out is None else Results(out, stack)
        kept = None if journal is None else open_journal(journal, stack)
        lines = stack.enter_context(open_input(file))
        run = Run(
            metrics,
            results,
            page,
            explained=explained,
            total=count_lines(file) if is_terminal() else None,
            print_needed=page is None and out in (None, "-"),
        )

        async def all_rows() -> None:
            gate = RequestGate(
                calls,
                requests_per_minute=rpm,
                tokens_per_minute=tpm,
                call_timeout=call_timeout,
                replies=kept,
                own_loop=True,
            )
            await run.all(
                read_rows(lines, mapping, naming=NAMING),
                gate,
                interrupts.on_first,
                repeat=repeat,
                journal=kept,
                sample_timeout=sample_timeout,
                window=window,
                flows=2 * calls if window > 1 else len(metrics) * repeat,
            )

        ended = run_to_end(interrupts, all_rows, kept)
    run.say(summary_table(run.summaries), err=out == "-")
    if isinstance(ended, KeyboardInterrupt):
        on = "" if journal is None else f" Run the same command again to go on from there: {journal} has it."
        run.say(f"Interrupted: the table is of what was scored so far.{on}", err=True)
    if page is not None:
        page.write(*(["The run was ended early: this is what was scored by then."] if ended or run.gave_up else []))
    if ended is not None:
        raise ended
    sys.exit(_status(run, limits))


def open_input(file: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open the file of samples; `-` is standard input, which stays open."""
    if file != "-":
        return Path(file).open("rb")
    try:
        # Not sys.stdin: a thread that waits in it for a line would abort the interpreter's exit.
        return contextlib.nullcontext(open(sys.stdin.fileno(), "rb", closefd=False))
    except (OSError, ValueError):  # it is no file, as in tests
        return contextlib.nullcontext(sys.stdin.buffer)


def count_lines(file: str) -> int | None:
    """Return the number of lines; None for what cannot be read twice."""
    if file == "-" or not Path(file).is_file():
        return None
    with Path(file).open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b"")) or None


def _page(path: str, metrics: Sequence[Metric], file: str) -> "Page":
    from ragstone.cli.page import Page  # numpy, for those who want a page

    check_writable("--report", path, replaced=True)
    return Page(path, metrics, "standard input" if file == "-" else Path(file).name)


def _status(run: Run, limits: dict[str, float]) -> int:
    if not any(summary.total for summary in run.summaries.values()):
        run.say("No sample: no line of the input holds one. Each line must be one JSON object.", err=True)
        return 2
    status = 0
    for why in run.not_asked:
        run.say(f"Gave up: {printable(why, 1_000)}. The table says how.", err=True)
        status = 1
    if not status and not any(summary.scored for summary in run.summaries.values()):
        run.say("Nothing could be scored; the table says why. `ragstone doctor` tries the judge.", err=True)
        status = 1
    for name, limit in limits.items():
        mean = run.summaries[name].mean
        if mean is None or mean < limit:
            found = "nothing was scored" if mean is None else f"its mean is {mean:.6g}"
            run.say(f"{name}: below the threshold {limit:g}: {found}", err=True)
            status = 1
    if run.bad_lines:
        run.say(f"{run.bad_lines} line(s) held no sample; see above.", err=True)
        status = 2
    return status
