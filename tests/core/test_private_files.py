"""What a run leaves on the disk is its owner's alone, whatever the umask."""

import json
import os
import re
import stat

import pytest

from ragstone import ContextRelevancy, Sample
from ragstone.batch import evaluate
from ragstone.live import Budget, Monitor, SQLiteSink
from ragstone.testing import FakeLLM

from ..support.command import command  # noqa: TID252

ROWS = [{"user_input": "Who?", "retrieved_contexts": ["Ann. It rains."], "response": "Ann."}]
REPLY = '{"ids": [1]}'


@pytest.fixture
def umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder):
    """The mode of each file and folder, by its path."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): oct(stat.S_IMODE(path.lstat().st_mode)) for path in paths}


def files_of_batches(place):
    metric = ContextRelevancy(llm=FakeLLM(REPLY))
    report = evaluate(ROWS, [metric], journal=place / "journal.db", progress=False)
    report.to_json(place / "report.json")
    report.to_csv(place / "report.csv")
    report.to_parquet(place / "report.parquet")
    report.save(place / "report.html")


def files_of_commands(place, url):
    given = place.parent / f"{place.name}.rows"
    given.write_text(json.dumps(ROWS[0]))
    out = ["--out", place / "out.jsonl", "--report", place / "page.html", "--journal", place / "score.db"]
    for args in (
        ["score", given, "--metric", "context_relevancy", "--llm", url, *out],
        ["report", place / "sink.db", "--out", place / "monitor.html"],
    ):
        result = command(*args)
        assert result.exit_code == 0, result.output


def files_of_a_monitor(place):
    monitor = Monitor(
        [ContextRelevancy(llm=FakeLLM(REPLY))],
        sinks=SQLiteSink(place / "sink.db"),
        budget=Budget(calls_per_day=100),
        outbox=place / "outbox.db",
    )
    monitor.submit(Sample(**ROWS[0]))
    assert monitor.flush(60).remaining == 0
    left = modes(place)  # while the databases are open
    monitor.close()
    return left


LEFT = """
journal.db report.csv report.html report.json report.parquet
outbox.db outbox.db-shm outbox.db-wal outbox.db.owner-OWNER
sink.db sink.db-shm sink.db-wal
monitor.html out.jsonl page.html score.db
"""


def test_every_file_of_a_run(tmp_path, umask, openai_server):
    place = tmp_path / "left"
    place.mkdir()
    url = openai_server(lambda body: REPLY).url
    files_of_batches(place)
    left = files_of_a_monitor(place)
    files_of_commands(place, url)
    left |= modes(place)
    assert {re.sub(r"owner-.*", "owner-OWNER", each) for each in left} == set(LEFT.split())
    assert {each: mode for each, mode in left.items() if mode != "0o600"} == {}


def test_a_mode_that_the_user_chose_stays(tmp_path, openai_server):
    chosen = ["journal.db", "report.json", "sink.db", "out.jsonl", "page.html", "monitor.html"]
    for name in chosen:
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o640)
    files_of_batches(tmp_path)
    files_of_a_monitor(tmp_path)
    files_of_commands(tmp_path, openai_server(lambda body: REPLY).url)
    left = modes(tmp_path)
    assert {name: left[name] for name in chosen} == dict.fromkeys(chosen, "0o640")
