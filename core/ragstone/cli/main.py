"""The command's entry: its subcommands are loaded when they are asked for."""

import io
import sys

import click

from ragstone._version import __version__
from ragstone.cli.doctor import doctor
from ragstone.cli.explain import explain
from ragstone.cli.pull import pull
from ragstone.cli.score import score


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ragstone")
def cli() -> None:
    """Score what a RAG app really answers, with evidence."""


for command in (doctor, explain, pull, score):
    cli.add_command(command)


def main() -> None:
    """Run the command; a pipe that closes early ends it quietly."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character is no crash
    try:
        cli(prog_name="ragstone")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
