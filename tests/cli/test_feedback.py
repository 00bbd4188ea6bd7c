"""`ragstone live feedback` and `ragstone live forget`."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragstone import Sample, Score
from ragstone.live import Feedback, Record, SQLiteSink
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Choice, Pending
from ragstone.results.read import open_results

Run = Callable[..., Any]


def database(path: Path, records: Iterable[Record], thumbs: Iterable[tuple[str, str]] = ()) -> Path:
    with closing(SQLiteSink(path)) as sink:
        sink.write(list(records))
        sink.feedback([Feedback(sample_id=name, value=value, at=float(at)) for at, (name, value) in enumerate(thumbs)])
    return path


def record(name: str, **more: Any) -> Record:
    outcome = Score(metric="context_relevancy", value=0.5, reason="", version="1")
    return Record(name, outcome, "j", **{"submitted_at": 1_000.0, **more})


def contents(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as reader:
        return reader.execute(query).fetchall()


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    """An outbox in which a sample waits."""
    path = tmp_path / "o.db"
    with closing(Outbox(path)) as opened, opened.transaction():
        choice = Choice("context_relevancy", "1", 1.0, "rate")
        sample = Sample(id="waits", metadata={"user_id": "ann"})
        opened.add(Pending(sample, "waits", 1_000.0, [choice]), mine=False)
    return path


def test_feedback(run: Run, tmp_path: Path) -> None:
    db = database(tmp_path / "r.db", [record("a")])
    done = run("live", "feedback", db, "a", "down", "--comment", "No.")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"sqlite:{db}: kept thumbs_down\n", "")
    done = run("live", "feedback", db, "waits", "up", "--json")
    assert json.loads(done.stdout) == {"sample_id": "waits", "kept": "thumbs_up", "has_outcome": False}
    assert done.stderr == "Note: no outcome of sample 'waits' is there (yet)\n"
    said = open_results(db).feedback()
    assert {name: (each.value, each.comment) for name, each in said.items()} == {
        "a": ("thumbs_down", "No."),
        "waits": ("thumbs_up", None),
    }


def test_forget(run: Run, tmp_path: Path, outbox: Path) -> None:
    db = database(tmp_path / "r.db", [record("a", user_id="ann"), record("b"), record("c")], [("waits", "thumbs_up")])
    done = run("live", "forget", db, "--id", "b")
    assert (done.exit_code, done.stdout) == (0, f"sqlite:{db}: removed 1 outcome, 0 feedback\n")
    done = run(
        "live", "forget", db, "--user", "ann", "--outbox", outbox
    )  # what was said of a sample that only the outbox has
    assert done.stdout == (
        f"{outbox}: removed 1 sample, 0 outcomes and feedback that waited\nsqlite:{db}: removed 1 outcome, 1 feedback\n"
    )
    assert run("live", "forget", db, "--user", "None").stdout.endswith("removed 0 outcomes, 0 feedback\n")
    done = run("live", "forget", db, "--older-than", "90d", "--outbox", outbox, "--json")
    assert json.loads(done.stdout) == {"samples": 0, "waiting": 0, "outcomes": 1, "feedback": 0}
    assert contents(db, "SELECT * FROM outcomes") == contents(outbox, "SELECT * FROM samples") == []


WRONG = [
    ((), "exactly one of --older-than, --user and --id"),
    (("--id", "a", "--user", "b"), "exactly one of --older-than, --user and --id"),
    (("--user", ""), "exactly one of --older-than, --user and --id"),
    (("--older-than", "a week"), "--older-than a week: is no time; write 90d, 24h or 30m"),
    (("--id", "a", "--outbox", "no.db"), "--outbox no.db: there is no such file"),
    (("--id", "a", "--outbox", "r.db"), "is no outbox; name another file as the outbox"),
]


@pytest.mark.parametrize(
    ("options", "message"), WRONG, ids=lambda each: " ".join(each) if isinstance(each, tuple) else ""
)
def test_what_cannot_be_is_said_and_nothing_is_removed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    db = database(tmp_path / "r.db", [record("a")])
    done = run("live", "forget", "r.db", *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert len(contents(db, "SELECT * FROM outcomes")) == 1


@pytest.mark.parametrize(
    "command", [("live", "feedback", "{}", "a", "up"), ("live", "forget", "{}", "--id", "a")], ids=lambda each: each[1]
)
def test_no_database_is_made(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    for name, message in (
        (f"{tmp_path}/no.db", "no such file; name the database of a Monitor's"),
        (f"{tmp_path}/text", "not a ragstone results database"),
        (f"{tmp_path}/r.jsonl", "is no database; a results file is for `ragstone report"),
        ("mysql://me:secret@host/db", "is not a PostgreSQL URL"),
        ("postgresql://me:secret@127.0.0.1:1/db", "sql"),
    ):
        (tmp_path / "text").write_text("a text\n" * 100)
        (tmp_path / "r.jsonl").write_text('{"ragstone": 1}\n')
        done = run(*(name if word == "{}" else word for word in command))
        assert done.exit_code == 2, done.output
        assert message in " ".join(done.stderr.split())
        assert "secret" not in done.stderr.replace(name, "")
    assert not (tmp_path / "no.db").exists()
