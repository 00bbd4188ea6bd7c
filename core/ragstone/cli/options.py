"""Options that more than one command has, and the metrics, judges, fields and files made from them."""

import json
import math
import os
import stat
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import click

from ragstone import judge_names
from ragstone.clients import AnswerError, OpenAICompatible
from ragstone.clients.access import MissingKeyError
from ragstone.clients.connection import load_openai
from ragstone.judge import LLM, Embedder
from ragstone.metrics import names as metric_names
from ragstone.metrics.base import Metric, gets_embedder
from ragstone.metrics.models import judge_of
from ragstone.sources.reader import PRESETS, SAMPLE_FIELDS
from ragstone.testing.fakes import FakeDecisions

JUDGE_HELP = (
    f"The judge: {judge_names.forms()}. local is the embedded model, local:hf:... one that `ragstone pull` fetched, "
    "openai:MODEL takes its key from OPENAI_API_KEY, a URL is that of an OpenAI-compatible server, and MODEL@URL one "
    "that has several models. A server that wants a key: openai:MODEL with OPENAI_BASE_URL and OPENAI_API_KEY set. "
    "Settings stand behind a question mark: openai:MODEL?temperature=0.2&seed=7&reasoning_effort=low."
)
EMBEDDER_HELP = (
    "The embedder of response_relevancy and context_relevancy, named in the same way (local:PATH: an ONNX file). "
    "Default: the judge's own: the embedded one; for response_relevancy also text-embedding-3-small, or the "
    "judge's own server and model."
)
_PROBE_TIMEOUT = 10.0

_CHECKER = "checker:"
_DECISIONS = ("openai-decisions:", "systemone:")


class NotThere(click.ClickException):
    """Something that was rightly named cannot be had, read or written."""

    exit_code = 2


class FiniteRange(click.FloatRange):
    """A number within bounds. For click's own type NaN is within all of them, and infinity is a number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Return the number, or fail with what was given."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def metric_option(description: str, name: str = "names", **more: Any) -> Decorator:  # noqa: ANN401 - click's
    """Return the option --metric: metrics of ragstone's, groups where several may be named, or "module:Class"."""
    known = (*metric_names.metric_names(), *(metric_names.GROUPS if "multiple" in more else ()))
    description = f"{description} One of {', '.join(known)}, or module:Class, or module:metric."
    return click.option("--metric", name, callback=_known, metavar="NAME", help=description, **more)


def _known(
    ctx: click.Context, param: click.Parameter, value: str | tuple[str, ...] | None
) -> str | tuple[str, ...] | None:
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else value
    try:
        for name in metric_names.metrics_of(names) if names is value else names:
            import_from_here(name)
            metric_names.metric_class(name)
    except judge_names.RegistryError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return value


def name_of_scores(metric: str | None) -> str | None:
    """The name in outcomes of a metric that an option names, perhaps as "module:Class"."""
    if metric is None or not judge_names.is_entry_point(metric):
        return metric
    import_from_here(metric)
    return metric_names.metric_name(metric)


class Sectioned(click.Command):
    """A command whose help has its options in sections.

    Args:
        sections: The options' parameters, by the section's title; others come last.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]], **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **settings)
        self._sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section."""
        records = {each.name or "": each.get_help_record(ctx) for each in self.get_params(ctx)}
        write_sections(formatter, self._sections, records, "Else")


def write_sections(
    formatter: click.HelpFormatter,
    sections: Mapping[str, Sequence[str]],
    rows: Mapping[str, tuple[str, str] | None],
    rest: str,
    col_max: int = 30,
) -> None:
    """Write a help's rows, each by its name, in sections; those in none come last, as the section `rest`."""
    placed = {name for names in sections.values() for name in names}
    others = [name for name in rows if name not in placed]
    for title, names in {**sections, rest: others}.items():
        section = [row for name in names if (row := rows.get(name)) is not None]
        if section:
            with formatter.section(title):
                formatter.write_dl(section, col_max)


def check_one_prints(printed: Mapping[str, bool]) -> None:
    """Refuse two options that both write to standard output."""
    names = [name for name, prints in printed.items() if prints]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} both write to standard output; leave one out")


group_option = click.option(
    "--group",
    metavar="FIELD",
    help="What rows depend on each other by: metadata.NAME, or a field such as user_input. Means, intervals and "
    "comparisons then draw groups, not rows. Default: rows of one thread_id, and a conversation's by their histories.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON in place of tables and sentences.")
open_option = click.option("--open", "opened", is_flag=True, help="Show the page in the browser.")
field_option = click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD=KEY",
    help=f"The row's key that holds a field ({', '.join(SAMPLE_FIELDS)}), inner ones by dots: outputs.answer. ragas' "
    f"and DeepEval's names are known. Or one of: {', '.join(PRESETS)}.",
)
llm_option = click.option("--llm", default="local", show_default=True, metavar="JUDGE", help=JUDGE_HELP)
writer_option = click.option(
    "--writer", metavar="WRITER", help="What writes questions and parts where the judge does not, named as a judge is."
)
embedder_option = click.option("--embedder", metavar="EMBEDDER", help=EMBEDDER_HELP)
settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="METRIC.OPTION=VALUE",
    help="An option of a metric, its value as JSON or text.",
)
_asking_option = click.option(
    "--asking",
    type=click.Choice(["auto", "together", "one_by_one"]),
    default="auto",
    show_default=True,
    help="All items in one call, or one item per call, which small models (8B or less) need.",
)


def scoring_options(metrics: str) -> Decorator:
    """Return the options that say how to score: --metric, --llm, --writer, --embedder, --asking and --set."""

    def add(function: Command) -> Command:
        named = metric_option(metrics, multiple=True)
        for option in (settings_option, _asking_option, embedder_option, writer_option, llm_option, named):
            function = option(function)
        return function

    return add


# --- judges and embedders


def local_file(name: str | None) -> str | None:
    """Return the file that local:PATH names; None where a judge or embedder is no file of yours."""
    own = name is not None and name.startswith("local:") and not name.startswith("local:hf:")
    return name.removeprefix("local:") if name and own else None


@contextmanager
def _explained(option: str, name: str) -> Generator[None, None, None]:
    """Say which option an error is about."""
    try:
        import_from_here(name)
        yield
    except MissingKeyError:
        way_out = "set the environment variable OPENAI_API_KEY or name another server: MODEL@URL"
        raise click.UsageError(f"{option} {name}: no API key for OpenAI: {way_out}") from None
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"{option} {name}: {str(error).removeprefix(f'{name}: ')}") from None
    except (ImportError, OSError, RuntimeError) as error:
        raise NotThere(f"{option} {name}: {error}") from error


def check_model_name(option: str, name: str) -> None:
    """Refuse anything but a name of a judge or an embedder."""
    with _explained(option, name):
        judge_names.check_name(name)


def connected_llm(name: str, *, max_concurrency: int, option: str = "--llm") -> LLM:
    """The judge that an option names: loaded, or with a server that answers."""
    with _explained(option, name):
        _check_reached(name)
        llm = cast("LLM", judge_of("llm", judge_names.make_llm(name, max_concurrency=max_concurrency)))
        if judge_names.is_local(name) and (load := getattr(llm, "load", None)) is not None:
            load()
        return llm


def connected_embedder(name: str | None, llm_name: str, llm: LLM | None = None, *, max_concurrency: int) -> Embedder:
    """The embedder that `--embedder` names, or the one that goes with the judge."""
    with _explained("--embedder", name or f"that goes with {llm_name}"):
        if name is not None or llm is None:
            _check_reached(name or llm_name)
        embedder = judge_names.make_embedder(name, llm or llm_name, max_concurrency=max_concurrency)
        if judge_names.is_local(name or llm_name):
            embedder.embed(["load"])
        return embedder


def _check_reached(name: str) -> None:
    """Find faults of a judge in seconds, before each row meets them after all retries."""
    if judge_names.is_local(name) or judge_names.is_entry_point(name) or judge_names.model_of(name) == name:
        # A bare URL asks its server for the model.
        return
    client = judge_names.make_llm(name, timeout=_PROBE_TIMEOUT, max_retries=1)
    if isinstance(client, OpenAICompatible):
        openai = load_openai()
        # A server may list no models.
        with client, suppress(openai.OpenAIError, AnswerError):
            try:
                client.models()
            except (openai.APIConnectionError, openai.AuthenticationError) as error:
                raise ConnectionError(str(error)) from error


def _stand_in(option: str, name: str) -> Any:  # noqa: ANN401 - a judge or an embedder
    """A judge's stand-in with its properties; the embedded one's file need not be there."""
    with _explained(option, name):
        if name.startswith(_DECISIONS):
            return FakeDecisions(lambda _question, _texts: None, model=judge_names.model_of(name))
        return (
            judge_names.make_llm(name)
            if judge_names.is_local(name) or name.startswith(_CHECKER)
            else judge_names.NullJudge(judge_names.model_of(name))
        )


def import_from_here(name: str) -> None:
    """Let a name module:name be found in the current folder, too, behind installed packages."""
    if judge_names.is_entry_point(name.removeprefix(_CHECKER)) and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)


# --- metrics


def make_metrics(
    options: Mapping[str, Mapping[str, Any]],
    *,
    llm: str,
    embedder: str | None,
    concurrency: int,
    writer: str | None = None,
    dry: bool = False,
) -> list[Metric]:
    """Return the metrics, over one judge; in a dry run over one that is never asked."""
    classes = {name: metric_names.metric_class(name) for name in options}
    asks = any(metric.needs_llm for metric in classes.values())

    def judge_named(option: str, name: str) -> LLM:
        if dry or not asks:
            return cast("LLM", _stand_in(option, name))
        return connected_llm(name, max_concurrency=concurrency, option=option)

    judge = judge_named("--llm", llm)
    writes = None if writer is None or not asks else judge_named("--writer", writer)
    embedding = [name for name in options if gets_embedder(classes[name], judge, named=embedder is not None)]
    own: Embedder | None = None
    if embedding and dry:
        own = judge_names.NullJudge(_stand_in("--embedder", embedder).model if embedder else "the embedder")
    elif embedding:
        own = connected_embedder(embedder, llm, judge, max_concurrency=concurrency)
    try:
        metrics = [
            metric_names.make_metric(name, values, judge, own if name in embedding else None, writes)
            for name, values in options.items()
        ]
    except judge_names.RegistryError as error:
        raise click.UsageError(str(error)) from None
    if len({metric.name for metric in metrics}) < len(metrics):
        raise click.UsageError("--metric: two of the metrics have one name; score by each in a run of its own")
    return metrics


def own_names(names: Sequence[str]) -> dict[str, str]:
    """Return the metrics by the name that their outcomes have, which is another one for "module:Class"."""
    return {metric_names.metric_name(name): name for name in names}


def parse_settings(settings: Sequence[str], names: Sequence[str], **defaults: object) -> dict[str, dict[str, Any]]:
    """Return each metric's options by name, as the groups have them and `--set METRIC.OPTION=VALUE` gives them."""
    options: dict[str, dict[str, Any]] = {
        name: {**defaults, **options} for name, options in metric_names.metrics_of(names).items()
    }
    own = own_names(list(options))
    for text in settings:
        path, equals, raw = text.partition("=")
        name, _, option = path.rpartition(".")
        meant = metric_names.GROUPS.get(name, (name,))
        if not equals or not own.keys() >= set(meant):
            raise click.UsageError(f"--set {text}: write METRIC.OPTION=VALUE, METRIC one of {', '.join(own)}")
        try:
            value = json.loads(raw)
        except ValueError as error:
            if raw.startswith(("[", "{", '"')):
                raise click.UsageError(f"--set {text}: not JSON: {error}") from None
            value = raw
        try:
            for metric in meant:
                options[own[metric]][option] = metric_names.checked_option(own[metric], option, value)
        except judge_names.RegistryError as error:
            raise click.UsageError(f"--set {text}: {error}") from None
    return options


def parse_keys(option: str, word: str, texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the row's key by name, as an option of the form NAME=KEY gives them."""
    if names is SAMPLE_FIELDS and len(texts) == 1 and texts[0] in PRESETS:
        return {**PRESETS[texts[0]]}
    keys: dict[str, str] = {}
    for text in texts:
        name, _, key = text.partition("=")
        if key in names and name not in names:
            raise click.UsageError(f"{option} {text}: write it the other way round: {option} {key}={name}")
        if not key or name not in names:
            raise click.UsageError(f"{option} {text}: write {word}=KEY, {word} one of {', '.join(names)}")
        keys[name] = key
    return keys


# --- files

Named = tuple[str, str | None]
"""What a file is called in messages, such as "--out", and its path, if one was given."""


def unused(name: str) -> str:
    """Return a file's name that the user did not choose: with a number, where there is one of this name.

    Example:
        >>> unused("no-such-report.html")
        'no-such-report.html'
    """
    path, number = Path(name), 1
    while path.exists():
        number += 1
        path = Path(name).with_stem(f"{Path(name).stem}-{number}")
    return str(path)


def check_apart(written: Sequence[Named], read: Sequence[Named]) -> None:
    """See to it, before any is opened, that no file is written that the command reads, or writes for something else."""
    others = [(name, path, _identity(path)) for name, path in read if path]
    for option, path in written:
        if path is None:
            continue
        if path == "-":
            raise click.UsageError(f"{option} -: does not go to standard output; name a file")
        its_identity = _identity(path)
        for name, other, identity in others:
            if its_identity is not None and its_identity == identity:
                shown = f"{name} {other}" if name.startswith("--") else name
                raise click.UsageError(f"{option} {path}: is {shown} itself; name another file")
        others.append((option, path, its_identity))


def _identity(path: str) -> tuple[int, int] | str | None:
    """A file's identity, or the path of a new file; None for pipes and devices."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == "-" else Path(path).stat()
    except (OSError, ValueError):
        # Standard input may be closed, or no file.
        return None if path == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


_FORMS = (".csv", ".htm", ".html", ".json", ".jsonl", ".md", ".parquet", ".pdf", ".png", ".tsv", ".txt", ".xlsx")


def check_suffix(option: str, path: str | None, *suffixes: str) -> None:
    """Refuse a file whose name says that it has another form."""
    suffix = Path(path or "").suffix.lower()
    if suffix in _FORMS and suffix not in suffixes:
        raise click.UsageError(f"{option} {path}: is written as {suffixes[0]}, not as {suffix}; change the file's name")


def check_writable(option: str, path: str, *, replaced: bool = False) -> None:
    """Check, before anything is spent, that a file can be written; its contents stay."""
    # What a link leads to is written, not the link.
    target = Path(os.path.realpath(path))
    is_opened = target.exists() and not (replaced and target.is_file())
    if not os.access(target if is_opened else target.parent, os.W_OK):
        raise click.UsageError(f"{option} {path}: cannot be written; name a file in a folder that is there")


def database_file(name: str) -> str | None:
    """Return the file of a database that is named by its path; None for the URL of a server's."""
    return None if "://" in name else name
