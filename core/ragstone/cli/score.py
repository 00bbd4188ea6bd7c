"""`ragstone score`: a file of samples in, scores with evidence out."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import click
from tqdm import tqdm

from ragstone.batch import BadLine, Row, Scored, Summary, read_rows, stream
from ragstone.batch.rows import SAMPLE_FIELDS
from ragstone.cli.judges import EMBEDDER_HELP, JUDGE_HELP
from ragstone.cli.metrics import METRICS, make_metrics, parse_threshold
from ragstone.cli.results import result_line
from ragstone.cli.show import evidence_lines, summary_table
from ragstone.metrics import Metric


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--metric", "names", multiple=True, type=click.Choice(METRICS), help="What to score; repeat it. Default: all four."
)
@click.option("--llm", default="local", show_default=True, metavar="JUDGE", help=JUDGE_HELP)
@click.option("--embedder", metavar="EMBEDDER", help=EMBEDDER_HELP)
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
    help="Exit with 1 when a metric's mean is below X.",
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
    out: str | None,
    explained: bool,
    thresholds: tuple[str, ...],
    fields: tuple[str, ...],
    settings: tuple[str, ...],
    concurrency: int,
) -> None:
    r"""Score the samples in FILE, one JSON object per line (- reads standard input).

    Prints, for each metric, the mean, how many samples it is of, the failures by reason, calls and tokens.
    A bad line is reported with its number and the run goes on.

    \b
    Exit status: 0 done; 1 a mean is below its threshold, or nothing could be
    scored; 2 the input or an option is wrong, or a line held no sample.
    """
    mapping = _mapping(fields)
    metrics = make_metrics(names or METRICS, settings, llm=llm, embedder=embedder, concurrency=concurrency)
    limits = dict(limit for text in thresholds for limit in parse_threshold(text, [m.name for m in metrics]))
    if out == "-" and explained:
        raise click.UsageError("--out - and --explain both write to standard output; name a file for --out")
    summaries = {metric.name: Summary() for metric in metrics}
    table_err = out == "-"
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(_open(file))
        results = None if out is None else stack.enter_context(_create(out, file))
        progress = stack.enter_context(
            tqdm(
                total=_count(file),
                unit=" samples",
                disable=not sys.stderr.isatty(),
                file=sys.stderr,
                dynamic_ncols=True,
            )
        )
        run = _Run(metrics, summaries, results, progress, explained)
        try:
            asyncio.run(run.all(read_rows(lines, mapping), window=4 * concurrency))
        except KeyboardInterrupt:
            progress.close()
            click.echo(summary_table(summaries), err=table_err)
            click.echo("Interrupted: the table is of what was scored so far.", err=True)
            sys.exit(130)
    click.echo(summary_table(summaries), err=table_err)
    sys.exit(_verdict(summaries, limits, bad_lines=run.bad_lines))


class _Run:
    """One pass over the samples, with what it prints and writes on the way."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        summaries: dict[str, Summary],
        results: IO[str] | None,
        progress: "tqdm[Any]",
        explained: bool,
    ) -> None:
        self._metrics = metrics
        self._summaries = summaries
        self._results = results
        self._progress = progress
        self._explained = explained
        self.bad_lines = 0

    async def all(self, rows: Iterator[Row | BadLine], *, window: int) -> None:
        async for item in stream(rows, self._metrics, window=window):
            if isinstance(item, BadLine):
                self.bad_lines += 1
                self._say(f"line {item.line}: {item.problem} (skipped)", err=True)
            else:
                self._take(item)
            self._progress.update()

    def _take(self, scored: Scored) -> None:
        for outcome in scored.outcomes:
            self._summaries[outcome.metric].add(outcome)
            if self._results is not None:
                self._results.write(result_line(scored.row, outcome))
            if self._explained:
                self._say("\n".join(evidence_lines(scored.row.sample.id or "", outcome)))
        if self._results is not None:
            self._results.flush()  # what was paid for is on disk
        calls = sum(summary.usage.llm_calls for summary in self._summaries.values())
        failed = sum(summary.total - summary.scored for summary in self._summaries.values())
        self._progress.set_postfix_str(f"{calls:,} calls, {failed:,} unscored", refresh=False)

    def _say(self, text: str, *, err: bool = False) -> None:
        with self._progress.external_write_mode(file=sys.stderr if err else sys.stdout):
            click.echo(text, err=err)


def _verdict(summaries: dict[str, Summary], limits: dict[str, float], *, bad_lines: int) -> int:
    status = 0
    if not any(summary.total for summary in summaries.values()):
        click.echo("No sample: the file has no line that holds one.", err=True)
        return 2
    if not any(summary.scored for summary in summaries.values()):
        click.echo("Nothing could be scored; the table says why. `ragstone doctor` checks the judge.", err=True)
        status = 1
    for name, limit in limits.items():
        mean = summaries[name].mean
        if mean is None or mean < limit:
            found = "nothing was scored" if mean is None else f"its mean is {mean:.3f}"
            click.echo(f"{name}: below the threshold {limit:g}: {found}", err=True)
            status = 1
    if bad_lines:
        click.echo(f"{bad_lines} line(s) held no sample; see above.", err=True)
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
    return contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb")


def _create(out: str, file: str) -> contextlib.AbstractContextManager[IO[str]]:
    if out == "-":
        return contextlib.nullcontext(sys.stdout)
    if file != "-" and Path(out).exists() and Path(out).samefile(file):
        raise click.UsageError(f"--out {out}: is the input itself")
    try:
        return Path(out).open("w", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--out {out}: {error.strerror}") from None


def _count(file: str) -> int | None:
    """Return the number of lines, for the progress bar; None for a pipe or where no bar is shown."""
    if file == "-" or not sys.stderr.isatty():
        return None
    with Path(file).open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b"")) or None
