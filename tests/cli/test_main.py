"""The entry: `main`, `python -m ragstone`, and what every command does about closed pipes, full disks and Ctrl-C."""

import errno
import json
import re
import runpy
import sys

import click
import pytest
from click.testing import CliRunner

from ragstone import __version__
from ragstone.cli.main import _Commands, cli, main


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
        (OSError(errno.EIO, "Input/output error", "rows.jsonl"), 2, "rows.jsonl: Input/output error\n"),
        (click.UsageError("--db postgresql://me:pw1@db/x: none"), 2, "--db postgresql://me:[hidden]@db/x: none\n"),
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


def test_a_fault_of_ours_is_one_sentence_without_keys(monkeypatch, capsys):
    @click.command()
    def fail():
        raise RuntimeError("Authorization: Bearer abcd1234efgh")

    monkeypatch.setitem(cli.commands, "fail", fail)
    monkeypatch.setattr(sys, "argv", ["ragstone", "fail"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert re.fullmatch(
        r"Error: RuntimeError: Authorization: Bearer \[hidden\] \(test_main.py, line \d+\). This is a fault of "
        r"ragstone: please report it.\n",
        capsys.readouterr().err,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", __file__), "B is missing: name two results files"),
        (("correct", __file__), "`ragstone label RESULTS -n 40` makes the page to label on"),
        (("demo", "--samples", __file__), "has another text already; name another file"),
        (("report", __file__, "--out", "-", "--open"), "--open: shows a file; name one for --out"),
    ],
)
def test_what_to_write_instead(run, arguments, message):
    done = run(*arguments)
    assert (done.exit_code, message in done.stderr) == (2, True)


def test_every_command_prints_json():
    groups, leaves = [cli], []
    while groups:
        group = groups.pop()
        commands = [group.get_command(click.Context(cli), name) for name in group.list_commands(None)]
        groups += [each for each in commands if isinstance(each, click.Group)]
        leaves += [each for each in commands if not isinstance(each, click.Group)]
    without = [each.name for each in leaves if not any("--json" in param.opts for param in each.params)]
    assert (without, len(leaves) >= 16) == ([], True)


def test_json_in_place_of_sentences(run, score, server, six):
    assert score(six, "--metric", "faithfulness", "--out", "results.jsonl").exit_code == 0
    for arguments, keys in {
        ("demo",): {"page", "name", "metrics", "remarks"},
        ("demo", "--samples", "s.jsonl"): {"samples", "next"},
        ("doctor", "--llm", server.url): {"ragstone", "python", "packages", "judge", "embedder"},
        ("label", "results.jsonl", "-n", "2"): {"page", "metric", "samples", "remarks", "next"},
        ("score", six, "--metric", "faithfulness", "--llm", server.url, "--dry-run"): {"samples", "metrics", "calls"},
    }.items():
        done = run(*arguments, "--json")
        assert (done.exit_code, keys - json.loads(done.stdout).keys()) == (0, set()), arguments
