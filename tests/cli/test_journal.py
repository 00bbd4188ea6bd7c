"""`ragstone score` with a journal, repeats, rates and time-outs."""

import json
import os
import re
import signal

import pytest

from ..support.openai_server import HANG, error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import judge, row

ONE = ("--metric", "context_relevancy")


def asked(server):
    return sum(seen.path.endswith("/chat/completions") for seen in server.seen)


def written(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "usage"} for line in lines]


@pytest.mark.parametrize("option", ["--journal", "--resume"])
def test_nothing_is_judged_twice(score, six, server, tmp_path, option):
    runs = []
    for name in ("a", "b"):
        done = score(six, "--out", tmp_path / name, option, tmp_path / "j.db")
        assert done.exit_code == 0
        runs.append((done.stdout, written(tmp_path / name), asked(server)))
    assert runs[0] == runs[1]


def test_other_options_are_other_results(score, six, server, tmp_path):
    score(six, *ONE, "--journal", tmp_path / "j.db")
    score(six, *ONE, "--journal", tmp_path / "j.db", "--asking", "one_by_one")
    assert asked(server) == 6 + 36


def test_what_failed_is_asked_again(score, six, server, tmp_path):
    server.reply = lambda body: error(401, "expired")
    assert score(six, *ONE, "--journal", tmp_path / "j.db").exit_code == 1
    server.reply = judge
    assert score(six, *ONE, "--journal", tmp_path / "j.db").exit_code == 0


@pytest.mark.usefixtures("untraced")
def test_ctrl_c_says_how_to_go_on(score, rows, server, tmp_path):
    def reply(body):
        if "book 3" in str(body):
            os.kill(os.getpid(), signal.SIGINT)
        return judge(body)

    server.reply = reply
    given, journal = rows(*(row(i) for i in range(30))), tmp_path / "j.db"
    done = score(given, *ONE, "--concurrency", "1", "--journal", journal)
    assert done.exit_code == 130
    assert done.stderr.endswith(
        "Interrupted: the table is of what was scored so far. "
        f"Run the same command again to go on from there: {journal} has it.\n"
    )
    server.reply = judge
    before = asked(server)
    done = score(given, *ONE, "--journal", journal, "--out", tmp_path / "out.jsonl")
    assert (done.exit_code, len(written(tmp_path / "out.jsonl"))) == (0, 30)
    assert asked(server) == 30
    assert before < 30


def test_a_file_that_is_no_journal_is_left_alone(score, six, server, tmp_path):
    (tmp_path / "out.jsonl").write_text("paid for\n")
    (tmp_path / "other.jsonl").write_bytes(six.read_bytes())
    done = score(six, *ONE, "--journal", tmp_path / "other.jsonl", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 2
    assert f"--journal {tmp_path / 'other.jsonl'}: is no journal" in done.stderr
    assert (tmp_path / "out.jsonl").read_text() == "paid for\n"
    assert asked(server) == 0


def test_a_full_disk_ends_the_run_with_the_table(process, server, rows, tmp_path):
    limited = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (300_000,) * 2)\n"
        "from ragstone.cli import main\nmain()"
    )
    given = rows(*(row(i) for i in range(2000)))
    command = process("score", given, *ONE, "--journal", tmp_path / "j.db", "--llm", server.url, code=limited)
    shown, errors = command.communicate()
    assert command.returncode == 2
    assert re.search(rb"^context_relevancy +0\.250 ", shown, re.MULTILINE)
    assert re.search(rb"Error: --journal \S+j\.db: .*is there room on the disk\?", errors)


def test_repeat(score, six, server, tmp_path):
    done = score(six, *ONE, "--repeat", "3", "--out", tmp_path / "out.jsonl")
    assert [(line["line"], line["draw"]) for line in written(tmp_path / "out.jsonl")] == [
        (line, draw) for line in range(1, 7) for draw in range(3)
    ]
    assert asked(server) == 18
    assert "18/18" in done.stdout


def test_a_call_that_takes_too_long(score, six, server):
    server.reply = lambda body: HANG if "book 3" in str(body) else judge(body)
    for option in ("--call-timeout", "--sample-timeout"):
        done = score(six, *ONE, option, "0.4")
        assert "5/6" in done.stdout
        assert re.search(r"1 timeout\n +first: line 4: TimeoutError: .*0\.4 s", done.stdout)


def test_rates_reach_the_gate(score, rows, server):
    done = score(rows(*(row(i) for i in range(3))), *ONE, "--rpm", "6000", "--tpm", "6000000")
    assert (done.exit_code, asked(server)) == (0, 3)


@pytest.mark.parametrize("option", ["--rpm", "--tpm", "--call-timeout", "--sample-timeout", "--repeat"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "nan", "inf", "1e999"])
def test_options_out_of_range(score, six, server, option, value):
    assert score(six, option, value).exit_code == 2
    assert asked(server) == 0
