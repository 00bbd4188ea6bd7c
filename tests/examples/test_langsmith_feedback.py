"""The example that writes LangSmith's feedback: its real client, and a server on loopback that answers as its API does."""

import json
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from langsmith import utils

from ragstone import ContextRelevancy, Monitor, Sample, Score, Unscored
from ragstone.live import CallableSink, Record
from ragstone.testing import FakeLLM

from ..support.http_server import HTTPServer  # noqa: TID252

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = str(uuid4())
PROJECT = {
    "id": str(uuid4()),
    "name": "rag",
    "tenant_id": str(uuid4()),
    "start_time": "2026-01-01T00:00:00",
    "reference_dataset_id": None,
}

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the checkout: examples/")


class LangSmith:
    """What the service keeps of feedback: by id; a second one of an id is a conflict."""

    def __init__(self):
        self.feedback = {}
        self.refusals = 0

    def answer(self, request):
        path = urlsplit(request.path)
        if (request.method, path.path) == ("GET", "/info"):
            return 200, json.dumps(
                {"version": "0.14.0", "batch_ingest_config": {"use_multipart_endpoint": True}}
            ).encode()
        if (request.method, path.path) == ("GET", "/sessions"):
            return 200, json.dumps([PROJECT] if parse_qs(path.query)["name"] == ["rag"] else []).encode()
        if self.refusals:
            self.refusals -= 1
            return 422, b'{"detail": "out of order"}'
        body = json.loads(request.body)
        if request.method == "PATCH":
            self.feedback[path.path.rpartition("/")[2]] |= body
            return 200, b"{}"
        assert (request.method, path.path) == ("POST", "/feedback")
        if body["id"] in self.feedback:
            return 409, b'{"detail": "it is there"}'
        self.feedback[body["id"]] = body
        return 200, b"{}"

    @property
    def only(self):
        (feedback,) = self.feedback.values()
        return feedback


@pytest.fixture
def service():
    return LangSmith()


@pytest.fixture
def to_langsmith(service, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.delitem(sys.modules, "live.langsmith_feedback", raising=False)  # it remembers its client
    # The client remembers what it once read of the environment.
    remembering = (utils.get_env_var, utils.get_tracer_project)
    with HTTPServer(service.answer) as server:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "a-key")
        monkeypatch.setenv("LANGSMITH_PROJECT", "rag")
        monkeypatch.setenv("LANGSMITH_TRACING", "false")
        for read in remembering:
            getattr(read, "cache_clear", bool)()
        yield import_module("live.langsmith_feedback").to_langsmith
        assert {request.headers["x-api-key"] for request in server.requests} == {"a-key"}
    for read in remembering:
        getattr(read, "cache_clear", bool)()


def scored(value=0.5, run_id=RUN, **changes):
    given = {"metric": "demo", "value": value, "reason": "1 of 2.", "version": "1", **changes}
    return Record("q1", Score(**given), judge="gpt-test", run_id=run_id)


def test_an_outcome_is_on_its_run_and_a_repeat_replaces_it(service, to_langsmith):
    to_langsmith([scored(), scored(run_id=None)])
    sent = service.only
    assert (sent["run_id"], sent["key"], sent["score"], sent["comment"]) == (RUN, "demo", 0.5, "1 of 2.")
    assert sent["feedback_source"]["metadata"] == {"version": "1", "judge": "gpt-test"}
    assert sent["session_id"] == PROJECT["id"]
    to_langsmith([scored(0.75, reason="")])
    assert (service.only["score"], service.only["comment"]) == (0.75, "")
    to_langsmith([scored(version="2"), scored(metric="other")])
    assert len(service.feedback) == 3


def test_what_is_unscored_has_no_score_and_says_why(service, to_langsmith):
    lack = Unscored(metric="demo", reason="timeout", detail="60 s \ud800", version="1")
    to_langsmith([Record("q1", lack, run_id=RUN)])
    assert service.only.get("score") is None
    assert service.only["comment"].startswith("timeout: 60 s ")


def test_a_monitor_sends_again_what_was_not_taken(service, to_langsmith):
    service.refusals = 1
    metric = ContextRelevancy(llm=FakeLLM({"ids": [1]}))
    monitor = Monitor(metric, sinks=[CallableSink(to_langsmith)])
    monitor.submit(Sample(id="q1", user_input="Who?", retrieved_contexts=["Ann."], metadata={"run_id": RUN}))
    assert monitor.close(60)
    assert (service.only["run_id"], service.only["score"]) == (RUN, 1.0)
    assert monitor.stats().sinks["call:to_langsmith"].failures == 1
