"""The examples that send scores to tracing products: a span of OpenTelemetry's SDK, a server on loopback."""

import base64
import json
from importlib import import_module
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from ragstone import Score, Unscored
from ragstone.live import OpenTelemetrySink, Record

from ..support.http_server import HTTPServer  # noqa: TID252

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the checkout: examples/")


@pytest.fixture
def products(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return import_module("live.tracing_products")


@pytest.fixture
def server(monkeypatch):
    said = {"data": [{"id": "1"}], "accepted": 1, "rejected": 0, "errors": []}
    with HTTPServer(lambda _: (200, json.dumps(said).encode())) as server:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
        yield server


def submitted():
    """A score and a lack of one that were submitted in a span, a score that was not; and the span's ids."""
    with TracerProvider(shutdown_on_exit=False).get_tracer("app").start_as_current_span("answer") as span:
        origin = OpenTelemetrySink().origin()
    score = Score(metric="demo", value=0.5, reason="1 of 2.", version="1")
    lack = Unscored(metric="other", reason="timeout", detail="60 s", version="1")
    records = [Record("a", score, "j", origin=origin), Record("a", lack, "j", origin=origin), Record("b", score, "j")]
    context = span.get_span_context()
    return records, f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_phoenix(server, products):
    records, _, span_id = submitted()
    products.to_phoenix(records)
    products.to_phoenix(records[2:])
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


def test_langfuse(server, products):
    records, trace_id, _ = submitted()
    products.to_langfuse(records)
    products.to_langfuse(records)
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


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [("to_phoenix", 404, "404"), ("to_langfuse", 404, "404"), ("to_langfuse", 207, "refused")],
)
def test_what_the_server_refuses_raises(name, status, error, server, products, monkeypatch):
    with HTTPServer(lambda _: (status, b"refused")) as refusing:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", refusing.url)
        monkeypatch.setenv("LANGFUSE_BASE_URL", refusing.url)
        with pytest.raises(OSError, match=error):
            getattr(products, name)(submitted()[0])
