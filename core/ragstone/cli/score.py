"""`ragstone score`: a file of samples in, scores with evidence out."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import click
from tqdm import tqdm

from ragstone.batch import BadLine, Row, read_rows
from ragstone.batch.rows import SAMPLE_FIELDS
from ragstone.cli.judges import EMBEDDER_HELP, JUDGE_HELP, is_local
from ragstone.cli.metrics import METRICS, make_metrics, parse_settings, parse_thresholds
from ragstone.cli.results import Results, ResultsLost, open_results
from ragstone.cli.run import GIVE_UP_AFTER, Run
from ragstone.cli.show import summary_table


@click.command(short_help="Score samples, one JSON object a line.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--metric", "names", multiple=True, type=click.Choice(METRICS), help="What to score; repeat it. Default: all four."
)
@click.option("--llm", default="local", show_default=True, metavar="JUDGE", help=JUDGE_HELP)
@click.option("--embedder", metavar="EMBEDDER", help=EMBEDDER_HELP)
@click.option(
    "--asking",
    type=click.Choice(["auto", "together", "one_by_one"]),
    default="auto",
    show_default=True,
    help="All items in one call, or one item per call, which small models (8B or less) need.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write a JSON line per sample and metric (- : stdout).",
)
@click.option("--explain", "explained", is_flag=True, help="Print each score with its verdicts and their evidence.")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="[METRIC=]X",
    help="Exit with 1 when a mean is below X; each result says whether its score reaches X.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD=KEY",
    help=f"The row's key that holds a field ({', '.join(SAMPLE_FIELDS)}). ragas' and DeepEval's names are known.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="METRIC.OPTION=VALUE",
    help="An option of a metric, its value as JSON or text.",
)
@click.option(
    "--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Judge calls in flight at most."
)
def score(
    file: str,
    names: tuple[str, ...],
    llm: str,
    embedder: str | None,
    asking: str,
    out: str | None,
    explained: bool,
    thresholds: tuple[str, ...],
    fields: tuple[str, ...],
    settings: tuple[str, ...],
    concurrency: int,
) -> None:
    """Score the samples in FILE, one JSON object per line (- reads standard input).

    Prints, for each metric, the mean, how many samples it is of, the failures by reason, calls and tokens.
    A bad line is reported with its number and the run goes on. A run that is interrupted, or that gives up
    because the judge keeps failing, prints and has written what was scored so far.

    \b
    Exit status:
      0    done
      1    a mean is below its threshold, nothing could be scored, or the
           judge kept failing
      2    the input or an option is wrong, or a line held no sample
      130  interrupted
    """  # noqa: D301 - click's mark for lines that stay as they are
    wanted = tuple(dict.fromkeys(names)) or METRICS
    mapping = _mapping(fields)
    limits = parse_thresholds(thresholds, wanted)
    options = parse_settings(settings, wanted)
    for name, limit in limits.items():
        options[name]["threshold"] = limit  # so that each sample says whether it reaches it
    for given in options.values():
        given.setdefault("asking", asking)
    if out == "-" and explained:
        raise click.UsageError("--out - and --explain both write to standard output; name a file for --out")
    metrics = make_metrics(options, llm=llm, embedder=embedder, concurrency=concurrency)
    # Calls to the embedded judge run one at a time: rows side by side would only wait for each other.
    window = 1 if is_local(llm) else 4 * concurrency
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(_open(file))
        results = None if out is None else Results(stack.enter_context(open_results(out, file)), out)
        run = Run(metrics, results, stack.enter_context(_progress(file)), explained=explained)
        ended = _score(run, read_rows(lines, mapping), window)
    click.echo(summary_table(run.summaries), err=out == "-")
    if isinstance(ended, KeyboardInterrupt):
        click.echo("Interrupted: the table is of what was scored so far.", err=True)
        raise ended
    if ended is not None:
        raise ended
    sys.exit(_status(run, limits))


def _score(run: Run, rows: Iterator[Row | BadLine], window: int) -> KeyboardInterrupt | ResultsLost | None:
    """Score all rows; return what ended that early, for the table comes first."""
    try:
        asyncio.run(run.all(rows, window=window))
    except (KeyboardInterrupt, ResultsLost) as ended:
        return ended
    return None


def _status(run: Run, limits: dict[str, float]) -> int:
    if not any(summary.total for summary in run.summaries.values()):
        click.echo("No sample: no line of the input holds one. Each line must be one JSON object.", err=True)
        return 2
    status = 0
    if run.gave_up:
        click.echo(f"Gave up: the judge failed on {GIVE_UP_AFTER} samples in a row; the table says how.", err=True)
        status = 1
    if not any(summary.scored for summary in run.summaries.values()):
        click.echo("Nothing could be scored; the table says why. `ragstone doctor` tries the judge.", err=True)
        status = 1
    for name, limit in limits.items():
        mean = run.summaries[name].mean
        if mean is None or mean < limit:
            found = "nothing was scored" if mean is None else f"its mean is {mean:.6g}"
            click.echo(f"{name}: below the threshold {limit:g}: {found}", err=True)
            status = 1
    if run.bad_lines:
        click.echo(f"{run.bad_lines} line(s) held no sample; see above.", err=True)
        status = 2
    return status


def _mapping(fields: Sequence[str]) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for text in fields:
        field, equals, key = text.partition("=")
        if not equals or not key or field not in SAMPLE_FIELDS:
            raise click.UsageError(f"--field {text}: write FIELD=KEY, FIELD one of {', '.join(SAMPLE_FIELDS)}")
        mapping[field] = key
    return mapping


def _open(file: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if file != "-":
        return Path(file).open("rb")
    try:
        # Not sys.stdin: a thread that waits in it for a line would abort the interpreter's exit.
        return contextlib.nullcontext(open(sys.stdin.fileno(), "rb", closefd=False))
    except (OSError, ValueError):  # it is no file, as in tests
        return contextlib.nullcontext(sys.stdin.buffer)


def _progress(file: str) -> "tqdm[Any]":
    shown = sys.stderr.isatty()
    total = _count(file) if shown else None
    return tqdm(total=total, unit=" lines", disable=not shown, file=sys.stderr, dynamic_ncols=True)


def _count(file: str) -> int | None:
    """Return the number of lines; None for what cannot be read twice."""
    if file == "-" or not Path(file).is_file():
        return None
    with Path(file).open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b"")) or None
