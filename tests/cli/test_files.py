"""The files that a command writes: none is one that it reads, or writes for something else; each can be written."""

import os
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
def files(rows):
    """What each command uses, under its own name."""
    rows(*(row(i) for i in range(6)))
    Journal("j.db").close()
    for name in ("c.json", "r.jsonl", "r2.jsonl"):
        Path(name).write_text("paid for")
    Path("link").symlink_to("rows.jsonl")
    Path("hard").hardlink_to("j.db")
    return {path.name: path for path in Path().iterdir() if path.is_file()}


def contents(files):
    return {name: path.read_bytes() for name, path in files.items()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("score rows.jsonl --out link", "--out link: is the input FILE itself"),
        ("score rows.jsonl --report sub/../rows.jsonl", "--report sub/../rows.jsonl: is the input FILE itself"),
        ("score rows.jsonl --out new --report sub/../new", "--report sub/../new: is --out new itself"),
        ("score rows.jsonl --llm local:c.json --out c.json", "--out c.json: is --llm c.json itself"),
        ("score rows.jsonl --report -", "--report -: does not go to standard output; name a file"),
        ("correct r.jsonl --labels r2.jsonl --page r2.jsonl", "--page r2.jsonl: is --labels r2.jsonl itself"),
        ("report j.db --out hard", "--out hard: is the input itself"),
    ],
)
def test_none_is_another_one(run, server, files, arguments, message):
    before = contents(files)
    command, *given = arguments.split()
    judge = ["--llm", server.url] if command == "score" and "--llm" not in given else []
    done = run(command, *judge, *given)
    assert done.exit_code == 2
    assert message in done.stderr
    assert contents(files) == before
    assert not any(Path(name).exists() for name in ("new", "-"))
    assert server.seen == []


def test_the_input_is_not_overwritten_where_it_is_piped_but_a_device_may_be_named_twice(process, server, score, six):
    before = six.read_bytes()
    with six.open("rb") as piped:
        command = process("score", "-", *ONE, "--out", six, "--llm", server.url, stdin=piped)
        _, errors = command.communicate()
    assert (command.returncode, six.read_bytes()) == (2, before)
    assert errors.endswith(b": is the input FILE itself; name another file\n")
    assert score(six, *ONE, "--out", os.devnull, "--report", os.devnull).exit_code == 0


@pytest.mark.parametrize(("path", "message"), [("none/x", "none/x: cannot "), ("sub/..", "is a directory")])
def test_what_cannot_be_written_is_said_before_the_judge_is_asked(run, server, files, path, message):
    assert files
    judged = ("rows.jsonl", *ONE, "--llm", server.url)
    labelled = ("correct", "r.jsonl", "--labels", "r2.jsonl", "--page")
    for command in (("score", *judged, "--out"), labelled, ("score", *judged, "--report")):
        done = run(*command, path)
        assert (done.exit_code, message in done.stderr) == (2, True)
    assert "/v1/chat/completions" not in [seen.path for seen in server.seen]
