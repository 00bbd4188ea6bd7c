"""`ragstone score` with a journal, rates and time-outs."""

import json
import os
import re
import sqlite3
from contextlib import closing

from ragstone.batch.journal import Journal

from ..support.openai_server import error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import answer, row

ONE = ("--metric", "context_relevancy")


def asked(server):
    return sum(seen.path.endswith("/chat/completions") for seen in server.seen)


def written(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    lines.sort(key=lambda line: line["row"])
    return [{name: value for name, value in line.items() if name != "usage"} for line in lines]


def test_nothing_is_judged_twice_but_what_failed_or_has_other_options(score, rows, server, tmp_path):
    given, journal = rows(row(1), row(2)), tmp_path / "j.db"
    server.reply = lambda body: error(400, "no")
    assert score(given, "--journal", journal).exit_code == 1
    server.reply = answer
    runs = []
    for option in ("--journal", "--resume"):
        done = score(given, "--out", tmp_path / "out", option, journal)
        assert done.exit_code == 0
        table, _, _spent = done.stdout.partition("Spent in this run")
        runs.append((table, written(tmp_path / "out"), asked(server)))
    assert runs[0] == runs[1]
    score(given, *ONE, "--journal", journal, "--asking", "one_by_one")
    assert asked(server) == runs[0][2] + 12


def test_a_journal_in_use_is_refused_with_who_uses_it(score, rows, server, tmp_path):
    with Journal(tmp_path / "j.db"):
        done = score(rows(row(1)), *ONE, "--journal", tmp_path / "j.db", "--out", tmp_path / "out.jsonl")
    assert (done.exit_code, asked(server), (tmp_path / "out.jsonl").exists()) == (2, 0, False)
    (line,) = [line for line in done.stderr.splitlines() if "j.db" in line]
    assert line.startswith(f"Error: --journal {tmp_path / 'j.db'}: is in use by process {os.getpid()} on ")
    assert "Traceback" not in done.stderr


def test_rates(score, rows, server, tmp_path):
    done = score(rows(row(1), row(2)), *ONE, "--rpm", "6000", "--tpm", "6000000", "--out", tmp_path / "out.jsonl")
    assert [line["row"] for line in written(tmp_path / "out.jsonl")] == [0, 1]
    assert (asked(server), "2/2" in done.stdout) == (2, True)


def test_a_journal_that_takes_no_more_ends_the_run_with_the_table(score, rows, server, tmp_path):
    journal = tmp_path / "j.db"

    def reply(body):
        if "book 3?" in str(body):
            with closing(sqlite3.connect(journal, timeout=60)) as connection:
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                for (table,) in tables:
                    stop = "BEGIN SELECT raise(ABORT, 'no more'); END"
                    connection.execute(f"CREATE TRIGGER no_{table} BEFORE INSERT ON {table} {stop}")
        return answer(body)

    server.reply = reply
    done = score(rows(*(row(i) for i in range(9))), *ONE, "--concurrency", "1", "--journal", journal)
    assert done.exit_code == 2
    assert re.search(r"^context_relevancy +0\.250 .* 3/3$", done.stdout, re.MULTILINE)
    assert re.search(rf"^Error: --journal {journal}: .*no more", done.stderr, re.MULTILINE)
