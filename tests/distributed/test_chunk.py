"""What every engine runs: rows in, plain dicts out, within the limits of one process, nothing judged twice."""

import json
import threading
from pathlib import Path

import pytest

from ragstone import Sample
from ragstone.distributed import Spec, score_chunk

from . import people as here  # the same file as the one that specs name, loaded apart


@pytest.fixture(autouse=True)
def people(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import people

    return people


def spec(judge="people:judge", **more):
    return Spec(metrics=["context_relevancy"], judge=judge, **more)


def test_what_fails_is_data_and_touches_nothing_else():
    rows = [*here.rows(4), {"id": "x", "response": 5}, "no row", Sample(id="s", user_input="Who is person 4?")]
    found = score_chunk(rows, spec("people:fails_on_odd"))
    assert [(each["id"], each["status"], each.get("reason")) for each in found if each["status"] != "scored"] == [
        ("q1", "unscored", "judge_error"),
        ("q3", "unscored", "judge_error"),
        ("5", "bad_row", None),
        ("6", "bad_row", None),
        ("s", "unscored", "missing_input"),
    ]
    assert "ConnectionError: refused" in found[1]["detail"]
    assert found[5]["detail"] == "is str, not a Sample or a dict"
    json.dumps(found)
    named = spec(fields={"user_input": "query", "retrieved_contexts": "chunks"})
    found = score_chunk([{"query": "Who?", "chunks": ["Ann. It rains."]}, {"query": "Who?"}], named)
    assert [(each["id"], each["row"], each["status"]) for each in found] == [("1", 0, "scored"), ("2", 1, "bad_row")]


def test_judge_is_made_once_and_limits_hold_for_all_chunks_of_a_process(people):
    named = spec("people:watched", max_concurrency=5, share_replies=False)
    people.watched.most = 0
    threads = [threading.Thread(target=score_chunk, args=(here.rows(40, 40 * i), named.to_json())) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert people.watched.most == 5
    made = len(people.made)
    for _ in range(3):
        score_chunk(here.rows(2), spec(call_timeout=1234))
    assert len(people.made) == made + 1


def test_nothing_is_judged_twice_and_what_failed_is_asked_again(tmp_path, openai_server):
    down = threading.Event()
    server = openai_server(lambda body: {"error": 1} if down.is_set() else '{"ids": [1]}')
    named = spec(f"m@{server.url}", journal=str(tmp_path))
    down.set()
    assert {each["status"] for each in score_chunk(here.rows(5), named)} == {"unscored"}
    down.clear()
    assert {each["status"] for each in score_chunk(here.rows(5), named)} == {"scored"}
    calls = len(server.seen)
    more = score_chunk(here.rows(10)[::-1], spec(f"m@{server.url}", journal=str(tmp_path), max_concurrency=3))
    assert len(server.seen) == calls + 5
    assert [each["id"] for each in more] == [f"q{i}" for i in range(10)][::-1]


def test_event_loop_of_a_spec_ends_when_others_came_after_it():
    for i in range(12):
        score_chunk(here.rows(1), spec(call_timeout=100 + i))
    alive = [thread for thread in threading.enumerate() if thread.name == "ragstone-chunks"]
    for thread in alive[:-4]:
        thread.join(30)
    assert sum(thread.is_alive() for thread in alive) <= 4


def test_replies_are_shared_within_a_run_only(openai_server):
    server = openai_server(lambda body: '{"ids": [1]}')
    named = spec(f"m@{server.url}")
    for run, calls in (("a", 2), ("a", 2), ("b", 4)):
        score_chunk(here.rows(2), named, run)
        assert len(server.seen) == calls
