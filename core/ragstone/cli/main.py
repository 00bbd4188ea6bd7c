"""The command's entry: its subcommands, and how errors, a closed pipe, a full disk and Ctrl-C end each of them."""

import difflib
import errno
import io
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

import click

from ragstone._version import __version__
from ragstone.cli.compare import compare_files
from ragstone.cli.demo import demo
from ragstone.cli.doctor import doctor
from ragstone.cli.metrics import metrics
from ragstone.cli.options import NotThere, write_sections
from ragstone.cli.output import as_called, called, discard, open_standard_streams
from ragstone.cli.report import explain, make_page
from ragstone.cli.score import score
from ragstone.errors import GroupError, JournalError, RagstoneError, describe, without_keys
from ragstone.identity import NoKeyError
from ragstone.plain import printable

# What a shell reports for a program that the signal ended.
_SIGINT_STATUS = 130
_SIGPIPE_STATUS = 141
_GROUP = "ragstone.commands"
_SECTIONS = {
    "Score": ("demo", "score", "explain", "report", "compare"),
    "Labels": ("label", "correct"),
    "Live": ("live",),
    "Set-up": ("metrics", "pull", "doctor"),
}

_OPTIONS_ELSEWHERE = {
    "--dataset": "FILE", "--input": "FILE", "--judge": "--llm", "--limit": "head -n N FILE | ragstone score -",
    "--metrics": "--metric", "--model": "--llm", "--output": "--out", "--provider": "--llm", "--temperature": "--llm "
    "'openai:MODEL?temperature=0.2'", "--seed": "--llm 'openai:MODEL?seed=7'", "-m": "--metric", "-o": "--out",
}  # fmt: skip
_COMMANDS_ELSEWHERE = {
    "eval": "score", "evaluate": "score", "help": "--help", "monitor": "live", "run": "score", "test": "score",
    "version": "--version", "view": "report",
}  # fmt: skip
_MISSING = {
    "b": "B is missing: name two results files, the earlier run's first",
    "labels": "--labels FILE is missing: `ragstone label RESULTS -n 40` makes the page to label on, and the page "
    "downloads the file",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the core's commands and of those that wings bring."""
        return sorted({*super().list_commands(ctx), *(each.name for each in entry_points(group=_GROUP))})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are for, those of other packages last."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = {name: (name, each.get_short_help_str(limit=80)) for name, each in commands.items() if each is not None}
        write_sections(formatter, _SECTIONS, rows, "More", col_max=11)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; one of a wing is imported when it is asked for."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found = next(iter(entry_points(group=_GROUP, name=cmd_name)), None)
        try:
            return None if found is None else cast("click.Command", found.load())
        except ImportError as error:
            if (error.name or "").startswith("ragstone"):
                raise
            return _missing(cmd_name, error)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; of one that other libraries have, say what it is called here."""
        if args[0] in (names := self.list_commands(ctx)):
            return super().resolve_command(ctx, args)
        meant = _COMMANDS_ELSEWHERE.get(args[0]) or self._near(ctx, args[0], names)
        raise click.UsageError(f"No such command '{args[0]}'. {meant and f'Did you mean {meant}?'}".rstrip(), ctx)

    def _near(self, ctx: click.Context, name: str, names: Sequence[str]) -> str:
        """The command whose name is near, also of a group; "" where none is."""
        known = {each: each for each in names}
        for group in names:
            if isinstance(command := self.get_command(ctx, group), click.Group):
                known |= {each: f"{group} {each}" for each in command.list_commands(ctx) if each not in known}
        near = difflib.get_close_matches(name, known, n=1)
        return known[near[0]] if near else ""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        try:
            try:
                return super().invoke(ctx)
            finally:
                # Here an error still has a message.
                sys.stdout.flush()
        except click.NoSuchOption as error:
            if meant := _OPTIONS_ELSEWHERE.get(error.option_name):
                raise click.UsageError(f"{error.message} Did you mean '{meant}'?", error.ctx) from None
            raise
        except click.MissingParameter as error:
            if said := _MISSING.get((error.param and error.param.name) or ""):
                raise click.UsageError(as_called(said), error.ctx) from None
            raise
        except click.ClickException as error:
            vars(error)["message"] = as_called(without_keys(error.message))
            raise
        except (JournalError, NoKeyError) as error:
            raise _error_of(f"--journal {error}") from error
        except GroupError as error:
            raise _error_of(f"--{error}") from error
        except (RagstoneError, ImportError) as error:
            raise _error_of(str(error)) from error
        except KeyboardInterrupt:
            ctx.exit(_SIGINT_STATUS)
        except OSError as error:
            discard(sys.stdout)
            # `| head` has read enough; 0 or 1 would be taken for the scores' verdict.
            if error.errno == errno.EPIPE:
                discard(sys.stderr)
                ctx.exit(_SIGPIPE_STATUS)
            raise _error_of(_message(error)) from error


def _missing(name: str, error: ImportError) -> click.Command:
    """Return a command that says which package it needs."""

    def fail(**_: object) -> None:
        raise NotThere(f"{name}: {error}")

    anything = click.Argument(["anything"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(name, settings, fail, [anything], short_help=f"Needs more packages: {error}")


def _error_of(message: str) -> NotThere:
    lines = [printable(line, 1_000) for line in as_called(message).splitlines()]
    return NotThere(without_keys("\n".join(lines)))


def _message(error: OSError) -> str:
    if error.errno == errno.EBADF:
        return "standard output is closed"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="ragstone")
def cli() -> None:
    """Score a RAG app's real answers, with evidence."""


for each in (
    compare_files,
    demo,
    doctor,
    explain,
    make_page,
    metrics,
    score,
):
    cli.add_command(each)


def main() -> None:
    """Run the command."""
    open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal may lack a character.
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(prog_name=called())
    except OSError as error:
        # --help and --version print before a command begins.
        discard(sys.stdout)
        click.echo(f"Error: {printable(_message(error))}", err=True)
        sys.exit(NotThere.exit_code)
    except Exception as error:
        # 1 would be taken for the scores' verdict.
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        click.echo(f"Error: {describe(error)} ({where}). This is a fault of ragstone: please report it.", err=True)
        sys.exit(NotThere.exit_code)
