"""A Ray cluster of its own on this machine: results as data, and an actor killed over its work."""

import json
import os
import signal
import threading

import pytest

pytest.importorskip("ray")
import ray
import ray.data

from ragstone.distributed import Spec, SpecError, score_on_ray

from ..support.openai_server import Answer, chat  # noqa: TID252 - under importlib mode tests are no package
from ..support.waiting import soon  # noqa: TID252
from .people import asked, rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # Ray's own are not ours


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()  # what this process started; never `ray stop`, which ends every Ray of the machine


def spec(server, **more):
    return Spec(metrics=["context_relevancy"], judge=f"m@{server.url}", **more)


def test_results_are_rows_of_one_schema(openai_server):
    def reply(body):
        odd = int(str(body["messages"]).partition("Who is person ")[2].partition("?")[0]) % 2
        return Answer({"error": {"message": "no"}}, status=400) if odd else '{"ids": [1]}'

    server = openai_server(reply)
    empty = {**rows(1)[0], "id": "empty", "user_input": None, "retrieved_contexts": None}
    source = ray.data.from_items([*rows(40), empty])
    found = score_on_ray(source, spec(server, repeat=2, max_concurrency=8), workers=2, batch_rows=10).take_all()
    of = {(row["id"], row["draw"]): row for row in found}
    assert len(found) == len(of) == 81
    assert (of["q0", 1]["value"], of["q1", 0]["value"]) == (0.5, None)
    assert json.loads(of["q1", 0]["result"])["reason"] == "judge_error"
    assert [row["status"] for row in found].count("bad_row") == 1
    assert server.max_in_flight <= 8
    with pytest.raises(SpecError, match="cannot be divided among 3 workers"):
        score_on_ray(source, spec(server, max_concurrency=2), workers=3)


def test_killed_actor_loses_nothing_and_only_calls_in_flight_are_made_again(tmp_path, openai_server):
    server = openai_server(lambda body: Answer(chat('{"ids": [1]}'), delay=0.05))

    def kill():
        soon(lambda: len(server.seen) > 100)
        name = next(path.name for path in tmp_path.iterdir())  # HOST-PID-TOKEN.outcomes
        os.kill(int(name.rsplit("-", 2)[1]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    named = spec(server, max_concurrency=8, journal=str(tmp_path))
    found = score_on_ray(ray.data.from_items(rows(400)), named, workers=2, batch_rows=50).take_all()
    killer.join()
    assert sorted(row["id"] for row in found) == sorted(row["id"] for row in rows(400))
    assert {row["status"] for row in found} == {"scored"}
    assert len(asked(server)) == 400
    assert asked(server).total() <= 400 + 4
    before = len(server.seen)
    again = score_on_ray(ray.data.from_items(rows(400)), named, workers=2, batch_rows=30).take_all()
    assert len(again) == 400
    assert len(server.seen) == before
