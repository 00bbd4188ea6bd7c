"""The entry: `main`, `python -m ragstone`, and what every command does about closed pipes, full disks and Ctrl-C."""

import errno
import runpy
import sys

import click
import pytest
from click.testing import CliRunner

from ragstone import __version__
from ragstone.cli.main import _Commands, main


@pytest.mark.parametrize("start", [main, lambda: runpy.run_module("ragstone", run_name="__main__")], ids=["main", "-m"])
def test_it_starts(monkeypatch, capsys, start):
    monkeypatch.setattr(sys, "argv", ["ragstone", "--version"])
    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"ragstone, version {__version__}\n"


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
        (OSError(errno.EIO, "Input/output error", "rows.jsonl"), 2, "Input/output error: 'rows.jsonl'\n"),
    ],
)
def test_how_commands_end(raised, code, message):
    @click.command()
    def fail():
        raise raised

    done = CliRunner().invoke(_Commands(commands={"fail": fail}), ["fail"])
    assert done.exit_code == code
    assert done.stderr.endswith(message)
    assert bool(done.stderr) == bool(message)
