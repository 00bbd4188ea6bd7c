"""How well scores agree with people: scores human-labelled rows and writes one table.

python benchmarks/agreement FOLDER --judge local --out DIR
python benchmarks/agreement FOLDER --results FILE --out DIR
python benchmarks/agreement table DIR
python benchmarks/agreement summary RESULTS
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import click

from ragstone import LLM, Embedder
from ragstone.cli.options import EMBEDDER_HELP, JUDGE_HELP, NotThere, connected_embedder, connected_llm, parse_settings
from ragstone.judge_names import is_local
from ragstone.metrics.names import metric_names

if not __package__:  # run as a folder: its modules are a package all the same, so that none shadows another's
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = "agreement"

from .files import OURS
from .rows import DataError, read_folder
from .scoring import JudgeError, Settings, embeds, keep_results, score_folder
from .summary import write_summary
from .table import write_table

_LOCAL_CONTEXT = 16_384  # tokens: a story of 6,000 words, which LocalLLM's default would not hold
_AHEAD = 4  # rows for each call in flight, so that few slots are idle while a part of the rows ends


@click.command(epilog="Without a judge: `table DIR`, `summary RESULTS`, `fit RESULTS` (see README.md).")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--judge", help=JUDGE_HELP)
@click.option(
    "--results",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the scores of a results file of `ragstone score`, in place of a judge.",
)
@click.option("--embedder", help=EMBEDDER_HELP)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the results.")
@click.option(
    "--metric", "metrics", multiple=True, type=click.Choice(metric_names()), help="Only this one; may be repeated."
)
@click.option("--limit", type=click.IntRange(1), help="Rows of each file, rounded up to whole pairs or documents.")
@click.option("--set", "settings_of", multiple=True, metavar="METRIC.OPTION=VALUE", help="An option of a metric.")
@click.option("--name", default=OURS, show_default=True, help="Of the scores: two names make two columns.")
@click.option("--without-history", is_flag=True, help="Leave out what goes before a row's question.")
@click.option("--threads", type=click.IntRange(1), help="Of the embedded judge; by default its own.")
@click.option("--max-concurrency", "calls", type=click.IntRange(1), default=8, show_default=True,
              help="Calls in flight to a judge that is not in this process.")  # fmt: skip
def _score(
    folder: Path,
    judge: str | None,
    results: Path | None,
    embedder: str | None,
    out: Path,
    metrics: Sequence[str],
    limit: int | None,
    settings_of: Sequence[str],
    name: str,
    without_history: bool,
    threads: int | None,
    calls: int,
) -> None:
    """Score the human-labelled rows of FOLDER, and write the table.

    Run the same command again after it was stopped: what was judged is not judged again.
    """
    options = parse_settings(settings_of, metric_names())
    if (judge is None) == (results is None):
        raise click.UsageError("name one of --judge and --results")
    local = judge is not None and is_local(judge)
    settings = Settings(
        name=_file_name(name),
        metrics=metrics,
        history=not without_history,
        calls=1 if local else calls,
        at_once=1 if local else _AHEAD * calls,
        options={metric: each for metric, each in options.items() if each},
    )
    data, scored = read_folder(folder), read_folder(folder, limit)
    if judge is None:
        keep_results(data, scored, out, settings, cast("Path", results), _of_floors())
        _write(out)
        return
    llm = _embedded(judge, threads) if local else _elsewhere(judge, calls)
    wanted = local or embedder is not None or embeds(scored, settings)
    vectors = connected_embedder(embedder, judge, llm, max_concurrency=calls) if wanted else None
    try:
        score_folder(data, scored, out, settings, llm, vectors, _of_floors())
    except (JudgeError, KeyboardInterrupt):
        _write(out)
        raise
    _write(out)


@click.command("table")
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path))
def _table(out: Path) -> None:
    """Write the table of the scores in OUT again; no judge is asked."""
    _write(out)


@click.command("summary")
@click.argument("results", type=click.Path(exists=True, file_okay=False, path_type=Path))
def _summary(results: Path) -> None:
    """Write the table of all runs in RESULTS into its README.md."""
    click.echo(f"wrote {write_summary(results)}", err=True)


@click.command("fit")
@click.argument("results", type=click.Path(exists=True, file_okay=False, path_type=Path))
def _fit(results: Path) -> None:
    """Print the weights that `ragstone.metrics.fitted` has, made again from the runs in RESULTS."""
    from .fit import report  # scikit-learn, which no other command needs

    click.echo(report(results))


def _write(out: Path) -> None:
    for path in write_table(out):
        click.echo(f"wrote {path}", err=True)


def _elsewhere(judge: str, calls: int) -> LLM:
    try:
        return connected_llm(judge, max_concurrency=calls)
    except click.ClickException as error:
        raise type(error)(error.message.replace("--llm", "--judge", 1)) from None


def _embedded(judge: str, threads: int | None) -> LLM:
    from ragstone.local import LocalLLM

    path = judge.removeprefix("local").removeprefix(":") or None
    try:
        llm = LocalLLM(path, threads=threads, context_tokens=_LOCAL_CONTEXT)
        llm.load()
    except (ImportError, OSError, RuntimeError) as error:
        raise NotThere(f"--judge {judge}: {error}") from error
    return llm


def _of_floors() -> Embedder | None:
    """Return the embedded embedder, which is the same for whatever judge; None, and a word of it, where it is not."""
    from ragstone.local import LocalEmbedder

    embedder = LocalEmbedder()
    try:
        embedder.embed(["Is it there?"])
    except (ImportError, FileNotFoundError) as error:
        click.echo(f"Floors by cosine are left out: {error}", err=True)
        return None
    return embedder


def _file_name(name: str) -> str:
    if not name or name.startswith(".") or Path(name).name != name:
        raise click.UsageError(f"--name {name}: is no file name")
    return name


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    others = {"table": _table, "summary": _summary, "fit": _fit}
    command = others.get(words[0], _score) if words else _score
    words = words[1:] if command is not _score else words
    try:
        command.main(words, prog_name="benchmarks/agreement", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (DataError, JudgeError, ValueError, TypeError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except click.exceptions.Abort:
        click.echo("Stopped. Run the same command again to go on from there.", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
