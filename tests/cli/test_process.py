"""The command as a process: pipes, signals, encodings, missing extras. No assertion depends on time."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from ..support.command import without_fields  # noqa: TID252 - under importlib mode tests are no package
from ..support.openai_server import HANG  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .conftest import answer, row

ONE = ("--metric", "context_relevancy")


@pytest.fixture
def stuck(openai_server):
    """A judge that answers on books 0 to 2 and never on any other."""
    return openai_server(lambda body: answer(body) if re.search(r"book [0-2]\?", str(body)) else HANG)


def one_by_one(path):
    """Arguments that score row after row, each written before the next one's call."""
    return ["score", path, *ONE, "--concurrency", "1", "--out"]


def test_a_reader_that_leaves_ends_it_quietly(process, server, rows):
    command = process(*one_by_one(rows(*(row(i) for i in range(200)))), "-", "--llm", server.url)
    assert json.loads(command.stdout.readline())["row"] + 1 == 1
    command.stdout.close()
    assert command.wait() == 141
    errors = command.stderr.read().decode()
    assert not re.search("Traceback|BrokenPipe", errors)
    assert len(server.seen) < 200


@pytest.mark.parametrize(("closed", "without_file"), [("pipe", 141), ("stream", 2)])
def test_results_are_complete_where_nobody_reads_standard_output(process, server, six, tmp_path, closed, without_file):
    def closed_run(*args):
        reading, writing = os.pipe()
        os.close(reading)
        settings = {"stdout": writing} if closed == "pipe" else {"preexec_fn": lambda: os.close(1)}
        command = process("score", six, *ONE, "--explain", "--llm", server.url, *args, **settings)
        os.close(writing)
        _, errors = command.communicate()
        return command.returncode, without_fields(errors.decode())

    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    assert closed_run("--out", out, "--report", page) == (0, f"Report: {page}\n")
    assert sorted(json.loads(line)["row"] for line in out.read_text().splitlines()[1:]) == list(range(6))
    assert page.exists()
    status, errors = closed_run()
    assert (status, errors) == (without_file, "" if closed == "pipe" else "Error: standard output is closed\n")


def test_two_processes_do_not_write_one_result_file(process, stuck, score, rows, tmp_path):
    out, journal = tmp_path / "out.jsonl", tmp_path / "journal.db"
    first = process(*one_by_one(rows(*(row(i) for i in range(9)))), out, "--llm", stuck.url)
    soon(lambda: out.exists() and out.read_bytes().count(b"\n") == 4)
    before = out.read_bytes()
    one = rows(row(1), name="one.jsonl")
    second = score(one, *ONE, "--out", out, "--journal", journal)
    assert (second.exit_code, out.read_bytes(), journal.exists()) == (2, before, False)
    said = f"--out {out}: cannot write: another process is writing to it; wait for it, or name another file"
    assert said in second.output
    first.kill()
    first.wait()
    assert all(json.loads(line)["row"] in range(4) for line in out.read_text().splitlines()[1:]), "whole lines"
    assert score(one, *ONE, "--out", out).exit_code == 0
    assert out.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("stop", ["sigterm", "a second ctrl-c"])
def test_what_was_judged_is_kept_and_the_judge_is_not_waited_for(process, stuck, rows, stop):
    command = process(*one_by_one(rows(*(row(i) for i in range(9)))), "-", "--llm", stuck.url)
    read = [json.loads(command.stdout.readline()) for _ in range(3)]
    soon(lambda: "book 3?" in str(stuck.bodies[-1]))
    if stop == "sigterm":
        command.terminate()
    else:
        command.send_signal(signal.SIGINT)
        said = [command.stderr.readline() for _ in range(5)][-1]  # behind the table of fields
        assert said == b"Finishing 1 judge call in flight; Ctrl-C again stops at once.\n"
        command.send_signal(signal.SIGINT)
    rest, errors = command.communicate()
    assert (command.returncode, rest, [line["row"] + 1 for line in read]) == (130, b"", [1, 2, 3])
    assert re.search(r"^context_relevancy +0\.250 .* 3/3$", errors.decode(), re.MULTILINE)
    assert errors.endswith(b"Interrupted: these are the scores so far.\n")


def test_ctrl_c_while_a_pipe_has_no_next_line(process, server):
    command = process("score", "-", *ONE, "--out", "-", "--llm", server.url)
    for i in range(2):  # each result comes while the next line has not
        command.stdin.write(json.dumps(row(i)).encode() + b"\n")
        command.stdin.flush()
        assert json.loads(command.stdout.readline())["row"] + 1 == i + 1
    command.send_signal(signal.SIGINT)
    assert command.wait() == 130
    errors = command.stderr.read()
    assert errors.endswith(b"Interrupted: these are the scores so far.\n")
    assert b"Fatal" not in errors


def test_nothing_is_left_open(process, server, six):
    """With every warning shown, a whole run says nothing of connections, files or tasks that were not closed."""
    environ = {**os.environ, "PYTHONWARNINGS": "always::ResourceWarning", "COVERAGE_PROCESS_START": ""}
    with six.open("rb") as piped:
        groups = ("--metric", "rag", "--metric", "summary")
        _, errors = process("score", "-", "--llm", server.url, *groups, env=environ, stdin=piped).communicate()
    assert re.fullmatch(r"Results: ragstone-results-[\d-]+\.jsonl\nNext: .*\n", without_fields(errors.decode()))


def test_help_says_that_standard_output_is_closed(process):
    command = process("--help", preexec_fn=lambda: os.close(1))
    _, errors = command.communicate()
    assert (command.returncode, errors) == (2, b"Error: standard output is closed\n")


@pytest.mark.parametrize("called", ["venv/bin/ragstone", "ragstone", "venv/bin/python -m ragstone"])
def test_what_it_prints_as_next_can_be_pasted(tmp_path, called):
    (tmp_path / "venv").symlink_to(sys.prefix)
    path = str(tmp_path / "venv" / "bin") if called == "ragstone" else os.defpath
    pasted = {"shell": True, "cwd": tmp_path, "env": {"PATH": path}, "text": True}
    first = subprocess.check_output(f"{called} demo", **pasted)
    next_, install, _ = first.splitlines()[-3:]
    assert next_.strip() == f"{called} demo --samples shoes.jsonl"
    assert subprocess.check_output(next_, **pasted)
    assert subprocess.check_output(install.partition(' "')[0] + " --help", **pasted)
