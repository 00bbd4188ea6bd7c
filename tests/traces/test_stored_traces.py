"""Stored traces are read by the rules of live runs, and what is no sample says why."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragstone.sample import BadLine, Row
from ragstone.sources import SourceError, rows_of, traces


def span(key: str, above: str | None = None, kind: str = "CHAIN", trace: str = "t", **rest: Any) -> dict[str, Any]:
    """A span as OpenTelemetry's SDK prints it, with OpenInference's attributes."""
    values = {"input.value": rest.pop("asked", None), "output.value": rest.pop("said", None)}
    found = [{"document.content": text} for text in rest.pop("found", ())]
    attributes = {"openinference.span.kind": kind, **values, **({"retrieval.documents": found} if found else {})}
    context = {"trace_id": trace, "span_id": key}
    return {"name": key, "context": context, "parent_id": above, "attributes": attributes | rest, **rest.pop("top", {})}


ASKED = {"asked": "Who wrote Emma?", "said": "Jane Austen did."}
APP = span("app", **ASKED)
NOVEL = "Emma is a novel by Jane Austen."
FAILED = {"status": {"status_code": "ERROR", "description": "TimeoutError: slow"}}
SAMPLES: Mapping[str, tuple[list[dict[str, Any]], tuple[str, ...]]] = {
    "an outermost search counts": (
        [APP, span("s", "app", "RETRIEVER", found=[NOVEL]), span("in", "s", "RETRIEVER", found=["Inner."])],
        (NOVEL,),
    ),
    "a search that failed has found nothing": (
        [
            APP,
            {**span("s", "app", "RETRIEVER", found=["Lost."]), **FAILED},
            span("t", "app", "RETRIEVER", found=[NOVEL]),
        ],
        (NOVEL,),
    ),
    "a reranker chooses from what it was given": (
        [
            APP,
            span("s", "app", "RETRIEVER", found=[NOVEL, "It rains."]),
            span(
                "r",
                "app",
                "RERANKER",
                **{
                    "reranker.input_documents": [{"document.content": NOVEL}, {"document.content": "It rains."}],
                    "reranker.output_documents": [{"document.content": NOVEL}],
                },
            ),
        ],
        (NOVEL,),
    ),
    "a web server's span is passed by": (
        [span("GET /", None, "UNKNOWN"), span("app", "GET /", **ASKED), span("s", "app", "RETRIEVER", found=[NOVEL])],
        (NOVEL,),
    ),
    "the span above is not in the file": ([span("app", "elsewhere", **ASKED)], ()),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_spans_are_read_as_runs_are(name: str) -> None:
    spans, contexts = SAMPLES[name]
    (row,) = traces(spans)
    assert isinstance(row, Row)
    sample = row.sample
    assert (sample.user_input, sample.response, sample.id) == (ASKED["asked"], ASKED["said"], "t")
    assert sample.retrieved_contexts == contexts


NO_SAMPLES: Mapping[str, tuple[list[Any], str]] = {
    "a circle": ([span("a", "b", **ASKED), span("b", "a")], "below each other"),
    "several without the one above": ([span("a", "x", **ASKED), span("b", "x")], "2 spans are below 'x'"),
    "a model alone": ([span("m", kind="LLM", **ASKED)], "a model was called outside of any chain"),
    "a search alone": ([span("s", kind="RETRIEVER", found=[NOVEL])], "no answer followed the retrieval"),
    "cancelled": ([{**APP, "status": {"status_code": "ERROR", "description": "CancelledError()"}}], "cancelled"),
    "unnamed": ([span("a", asked="Why?", said='{"told": "So it is.", "k": 3}')], "fields={'response': 'told'}"),
    "of wrong types": ([{"trace_id": 5, "span_id": [1], "parent_id": {}, "attributes": 7}], "no span says"),
    "no span": (["oops"], "line 1: is no span of a trace"),
}


@pytest.mark.parametrize("name", NO_SAMPLES)
def test_what_is_no_sample_says_why(name: str) -> None:
    items, problem = NO_SAMPLES[name]
    (row,) = traces(items)
    assert isinstance(row, BadLine)
    assert problem in row.problem


def test_the_user_names_fields_and_tools() -> None:
    spans = [
        span("app", asked="Who wrote Emma?", said='{"told": {"text": "Jane Austen."}}'),
        span("look up", "app", "TOOL", said='[{"content": "Emma is a novel."}, {"content": "It rains."}]'),
    ]
    (row,) = traces(spans, {"response": "told.text"}, retriever_tools=["look up"])
    assert isinstance(row, Row)
    assert row.sample.response == "Jane Austen."
    assert row.sample.retrieved_contexts == ("Emma is a novel.", "It rains.")


def test_a_tool_that_is_not_there_is_said() -> None:
    *_, last = traces([APP, span("look up", "app", "TOOL", said="x")], retriever_tools=["lookup"])
    assert isinstance(last, BadLine)
    assert last.problem == "retriever_tools: no tool is called 'lookup'; there are 'look up'"
    with pytest.raises(SourceError, match="names tools of stored traces, and there are none"):
        rows_of([{"question": "Who?"}], retriever_tools=["lookup"])


def test_a_failed_run_has_no_answer_and_says_why() -> None:
    (row,) = traces([{**span("app", asked="Who?", said="Half an"), **FAILED}])
    assert isinstance(row, Row)
    assert (row.sample.response, row.error) == (None, "TimeoutError: slow")


def test_spans_of_many_traces_lie_between(tmp_path: Path) -> None:
    """A trace's spans may be as far apart as a thousand other traces are; several outermost spans are samples each."""
    others = [span("app", trace=f"t{number}", **ASKED) for number in range(1_500)]
    found = span("s", "app", "RETRIEVER", trace="t0", found=[NOVEL])
    path = tmp_path / "spans.jsonl"
    path.write_text(
        "\n".join(map(json.dumps, [*others[:900], found, *others[900:], span("b", trace="t1499", **ASKED)]))
    )
    rows = [row.sample for row in rows_of(path) if isinstance(row, Row)]
    assert rows[0].retrieved_contexts == (NOVEL,)
    assert [row.id for row in rows[-2:]] == ["t1499", "t1499/2"]
    assert len(rows) == 1_501


def test_a_long_way_down_is_walked() -> None:
    below = [span(f"{number}", f"{number - 1}" if number else "app", asked="x") for number in range(3_000)]
    (row,) = traces([APP, *below])
    assert isinstance(row, Row)


@pytest.mark.parametrize(("keys", "ids"), [(("n1", "n2"), ("n1", "n2")), (("n1", ""), ())])
def test_ids_of_documents_are_those_of_the_contexts_unless_one_has_none(keys: Any, ids: Any) -> None:
    texts = (NOVEL, "It rains.")
    found = [{"document.content": text, "document.id": key} for text, key in zip(texts, keys, strict=True)]
    (row,) = traces([APP, span("s", "app", "RETRIEVER", **{"retrieval.documents": found})])
    assert isinstance(row, Row)
    assert (row.sample.retrieved_contexts, row.sample.retrieved_ids) == (texts, ids)
