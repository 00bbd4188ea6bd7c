"""The files that a command writes: none is one that it reads, or writes for something else; each can be written."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from ragstone.batch.journal import Journal

from .conftest import row

ONE = ("--metric", "context_relevancy")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()


@pytest.fixture
def files(score, rows):
    """What each command uses, under its own name."""
    given = rows(*(row(i, noncommittal=i % 2 == 0) for i in range(6)))
    assert score(given, *ONE, "--out", "r.jsonl").exit_code == 0
    Path("r2.jsonl").write_bytes(Path("r.jsonl").read_bytes())
    with closing(Journal("j.db")) as journal:
        journal.flush()
    Path("c.json").write_text("paid for")
    Path("link").symlink_to("rows.jsonl")
    Path("hard").hardlink_to("j.db")
    return {path.name: path for path in Path().iterdir() if path.is_file()}


def contents(files):
    return {name: path.read_bytes() for name, path in files.items()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("score rows.jsonl --out rows.jsonl", "--out rows.jsonl: is the input FILE itself"),
        ("score rows.jsonl --report sub/../rows.jsonl", "--report sub/../rows.jsonl: is the input FILE itself"),
        ("score rows.jsonl --report link", "--report link: is the input FILE itself"),
        ("score link --journal rows.jsonl", "--journal rows.jsonl: is the input FILE itself"),
        ("score rows.jsonl --journal j.db --out j.db", "--journal j.db: is --out j.db itself"),
        ("score rows.jsonl --journal j.db --out hard", "--journal j.db: is --out hard itself"),
        ("score rows.jsonl --journal j.db --report sub/../j.db", "--journal j.db: is --report sub/../j.db itself"),
        ("score rows.jsonl --out new --report sub/../new", "--report sub/../new: is --out new itself"),
        ("score rows.jsonl --journal new --out new", "--journal new: is --out new itself"),
        ("score rows.jsonl --calibration c.json --out c.json", "--out c.json: is --calibration c.json itself"),
        ("score rows.jsonl --llm local:c.json --out c.json", "--out c.json: is --llm c.json itself"),
        ("score rows.jsonl --embedder local:c.json --report c.json", "--report c.json: is --embedder c.json itself"),
        ("score rows.jsonl --report -", "--report -: does not go to standard output; name a file"),
        ("score rows.jsonl --journal -", "--journal -: does not go to standard output; name a file"),
        ("compare r.jsonl r2.jsonl --report sub/../r.jsonl", "--report sub/../r.jsonl: is the input A itself"),
        ("compare r.jsonl r2.jsonl --report sub/../r2.jsonl", "--report sub/../r2.jsonl: is the input B itself"),
        ("compare r.jsonl r2.jsonl --report -", "--report -: does not go to standard output; name a file"),
        ("calibrate rows.jsonl --out link", "--out link: is the input FILE itself"),
        ("calibrate rows.jsonl --journal j.db --out hard", "--journal j.db: is --out hard itself"),
        ("calibrate rows.jsonl --journal new --out sub/../new", "--journal new: is --out sub/../new itself"),
        ("calibrate rows.jsonl --out c.json --llm local:c.json", "--out c.json: is --llm c.json itself"),
        ("calibrate rows.jsonl --out -", "--out -: does not go to standard output; name a file"),
        ("report j.db --out hard", "--out hard: is the database itself"),
        ("report sqlite:///j.db --out j.db", "--out j.db: is the database itself"),
    ],
)
def test_none_is_another_one(run, server, files, arguments, message):
    before, asked = contents(files), len(server.seen)
    command, *given = arguments.split()
    judge = ["--llm", server.url] if command in ("score", "calibrate") and "--llm" not in given else []
    done = run(command, *judge, *given, *(["--metric", "response_relevancy"] if command == "calibrate" else []))
    assert done.exit_code == 2
    assert message in done.stderr
    assert contents(files) == before
    assert not any(Path(name).exists() for name in ("new", "-"))
    assert len(server.seen) == asked


def test_a_device_may_be_named_twice(score, six):
    assert score(six, *ONE, "--out", os.devnull, "--report", os.devnull).exit_code == 0


@pytest.mark.parametrize("command", ["score", "calibrate"])
@pytest.mark.parametrize(
    ("path", "message"),
    [("none/x", "no such folder: "), ("rows.jsonl/x", "no such folder: "), ("sub/..", "is a directory")],
)
def test_what_cannot_be_written_is_said_before_the_judge_is_asked(run, server, six, command, path, message):
    del six
    given = (*ONE, "--llm", server.url)
    for option in ("--out", "--report") if command == "score" else ("--out",):
        done = run(command, "rows.jsonl", *given, option, path)
        assert done.exit_code == 2
        assert message in done.stderr
    assert "/v1/chat/completions" not in [seen.path for seen in server.seen]


def test_an_empty_name(score, six):
    done = score(six, *ONE, "--out", "")
    assert (done.exit_code, "--out : is a folder; name a file in it" in done.stderr) == (2, True)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("score rows.jsonl --out sub/x", "--out sub/x: the folder "),
        ("score rows.jsonl --out fixed", "--out fixed: cannot be written to"),
        ("score rows.jsonl --out sub/closed/x", "--out sub/closed/x: Permission denied"),
        ("score rows.jsonl --report sub/x", "--report sub/x: the folder "),
        ("calibrate rows.jsonl --out sub/x", "--out sub/x: the folder "),
        ("calibrate rows.jsonl --out fixed", "--out fixed: cannot be written to"),
    ],
)
def test_rights_are_looked_at_before_the_judge_is_asked(run, server, six, arguments, message):
    del six
    Path("fixed").write_text("paid for")
    Path("fixed").chmod(0o444)
    Path("sub/closed").mkdir(mode=0)
    Path("sub").chmod(0o555)
    try:
        done = run(*arguments.split(), *ONE, "--llm", server.url)
    finally:
        Path("sub").chmod(0o755)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "/v1/chat/completions" not in [seen.path for seen in server.seen]
    assert Path("fixed").read_text() == "paid for"
