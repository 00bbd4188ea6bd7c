"""The recipes of docs/sinks.md, run: with a span of OpenTelemetry's SDK, against a server on loopback."""

import base64
import json
import re
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from ragstone import Score, Unscored
from ragstone.live import Record

from ..support.http_server import HTTPServer  # noqa: TID252

PAGE = Path(__file__).parents[2] / "docs" / "sinks.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the checkout: docs/")


def recipe(title):
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    namespace = {}
    exec(re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1], namespace)
    return namespace["sinks"]


@pytest.fixture
def server(monkeypatch):
    said = {"data": [{"id": "1"}], "accepted": 1, "rejected": 0, "errors": []}
    with HTTPServer(lambda _: (200, json.dumps(said).encode())) as server:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
        yield server


def submitted(sinks):
    """A score and a lack of one that were submitted in a span, a score that was not; and the span's ids."""
    with TracerProvider(shutdown_on_exit=False).get_tracer("app").start_as_current_span("answer") as span:
        origin = sinks[0].origin()
    score = Score(metric="demo", value=0.5, reason="1 of 2.", version="1")
    lack = Unscored(metric="other", reason="timeout", detail="60 s", version="1")
    records = [Record("a", score, "j", origin=origin), Record("a", lack, "j", origin=origin), Record("b", score, "j")]
    context = span.get_span_context()
    return records, f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_phoenix(server):
    sinks = recipe("Phoenix")
    records, _, span_id = submitted(sinks)
    sinks[1].write(records)
    sinks[1].write(records[2:])
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/span_annotations?sync=true")
    about = {"annotator_kind": "LLM", "identifier": "ragstone 1", "metadata": {"judge": "j", "sample_id": "a"}}
    expected = [
        {"span_id": span_id, "name": "demo", "result": {"score": 0.5, "explanation": "1 of 2."}, **about},
        {"span_id": span_id, "name": "other", "result": {"label": "timeout", "explanation": "60 s"}, **about},
    ]
    assert json.loads(request.body) == {"data": expected}
    client = pytest.importorskip("phoenix.client", reason="the vendor's client: pip install arize-phoenix-client")
    client.Client(base_url=server.url).spans.log_span_annotations(span_annotations=expected, sync=True)
    theirs = server.requests[-1]
    assert (theirs.method, theirs.path) == (request.method, request.path)
    assert json.loads(theirs.body) == json.loads(request.body)


def test_langfuse(server):
    sinks = recipe("Langfuse")
    records, trace_id, _ = submitted(sinks)
    sinks[1].write(records)
    sinks[1].write(records)
    first, again = server.requests
    assert (first.method, first.path) == ("POST", "/api/public/scores")
    assert base64.b64decode(first.headers["authorization"].removeprefix("Basic ")) == b"pk:sk"
    (sent,) = json.loads(first.body)
    assert first.body == again.body
    about = {"version": "1", "judge": "j", "sample_id": "a"}
    assert sent == {
        "id": sent["id"], "traceId": trace_id, "name": "demo", "value": 0.5, "dataType": "NUMERIC",
        "comment": "1 of 2.", "metadata": about,
    }  # fmt: skip
    langfuse = pytest.importorskip("langfuse", reason="the vendor's client: pip install langfuse")
    client = langfuse.Langfuse(public_key="pk", secret_key="sk", base_url=server.url, tracing_enabled=False)
    request = langfuse.api.CreateScoreRequest(
        id=sent["id"], trace_id=trace_id, name="demo", value=0.5, data_type="NUMERIC", comment="1 of 2.", metadata=about
    )
    client.api.scores.create(request=[request])
    theirs = server.requests[-1]
    assert (theirs.method, theirs.path, theirs.headers["authorization"]) == (
        first.method,
        first.path,
        first.headers["authorization"],
    )
    assert json.loads(theirs.body) == [sent]


@pytest.mark.parametrize("title", ["Phoenix", "Langfuse"])
def test_what_the_server_refuses_raises(title, server, monkeypatch):
    with HTTPServer(lambda _: (404, b"{}")) as refusing:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", refusing.url)
        monkeypatch.setenv("LANGFUSE_BASE_URL", refusing.url)
        sinks = recipe(title)
        with pytest.raises(OSError, match="404"):
            sinks[1].write(submitted(sinks)[0])
