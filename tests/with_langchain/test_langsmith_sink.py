"""Outcomes as LangSmith's feedback: its real client, and a server on loopback that answers as LangSmith's API does."""

import json
import pickle
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import pytest
from langsmith import Client, utils
from langsmith.utils import LangSmithError

from ragstone import Monitor, Sample, Score, Unscored
from ragstone.live import Record
from ragstone_langchain import LangSmithFeedbackSink

from ..support.http_server import HTTPServer  # noqa: TID252
from .samples import NeedsNothing, judge

PROJECT = {
    "id": str(uuid4()),
    "name": "rag",
    "tenant_id": str(uuid4()),
    "start_time": "2026-01-01T00:00:00",
    "reference_dataset_id": None,
}
RUN = str(uuid4())


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
def server(service, monkeypatch):
    with HTTPServer(service.answer) as server:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "a-key")
        monkeypatch.setenv("LANGSMITH_PROJECT", "rag")
        monkeypatch.setenv("LANGSMITH_TRACING", "false")
        # The client remembers what it once read of the environment.
        for read in (utils.get_env_var, utils.get_tracer_project):
            getattr(read, "cache_clear", bool)()
        yield server
    for read in (utils.get_env_var, utils.get_tracer_project):
        getattr(read, "cache_clear", bool)()


def scored(value=0.5, run_id=RUN, **changes):
    given = {"metric": "demo", "value": value, "reason": "1 of 2.", "version": "1", **changes}
    return Record("q1", Score(**given), judge="gpt-test", run_id=run_id)


def test_a_score_is_on_its_run(service, server):
    LangSmithFeedbackSink().write([scored()])
    sent = service.only
    assert (sent["run_id"], sent["key"], sent["score"], sent["comment"]) == (RUN, "demo", 0.5, "1 of 2.")
    assert sent["feedback_source"]["metadata"] == {"version": "1", "judge": "gpt-test"}
    assert sent["session_id"] == PROJECT["id"]
    assert server.requests[-1].headers["x-api-key"] == "a-key"


def test_what_is_unscored_says_why(service, server):
    outcome = Unscored(metric="demo", reason="timeout", detail="60 s \ud800", version="1")
    LangSmithFeedbackSink(Client(api_url=server.url, api_key="k", auto_batch_tracing=False), project="rag").write(
        [Record("q1", outcome, run_id=RUN)]
    )
    assert service.only.get("score") is None
    assert service.only["comment"] == "timeout: 60 s \\ud800"


def test_a_repeat_replaces_another_version_does_not_and_what_is_of_no_run_is_passed_over(service, server):
    sink = LangSmithFeedbackSink()
    sink.write([scored(), scored(), *(scored(0.1, run_id=none) for none in (None, "", "span-7"))])
    pickle.loads(pickle.dumps(sink)).write([scored(0.75, reason="")])
    assert (service.only["score"], service.only["comment"]) == (0.75, "")
    LangSmithFeedbackSink().write([scored(version="2"), scored(metric="other")])
    assert len({UUID(name) for name in service.feedback}) == 3


def test_what_is_not_taken_raises(service, server, caplog):
    sink = LangSmithFeedbackSink(project="another")
    with pytest.raises(LangSmithError, match="another not found"):
        sink.write([scored()])
    service.refusals = 1
    with pytest.raises(LangSmithError, match="out of order"):
        LangSmithFeedbackSink().write([scored()])


def test_a_monitor_sends_again_what_was_not_taken(service, server, caplog):
    service.refusals = 1
    monitor = Monitor([NeedsNothing(llm=judge())], sinks=[LangSmithFeedbackSink()])
    monitor.submit(Sample(id="q1", user_input="Who?", metadata={"run_id": RUN}))
    assert monitor.close(60)
    assert (service.only["run_id"], service.only["score"]) == (RUN, 1.0)
    assert not service.only["comment"]  # no text without store_text
    assert monitor.stats().sinks["langsmith"].failures == 1
