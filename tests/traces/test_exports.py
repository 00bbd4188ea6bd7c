"""Traces that real SDKs wrote are read as the live handlers read the same runs; tests/traces/make has written them."""

import json
from pathlib import Path

import pytest

from ragstone.sources import SourceError, traces

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
# What a file does not say cannot be read: of a workflow's run it has objects' texts, and not the answer itself.
UNREADABLE = "openinference-llama_index-agent.jsonl"


@pytest.mark.parametrize("name", sorted({*EXPECTED} - {UNREADABLE}))
def test_equal_to_the_live_handler(name: str) -> None:
    samples = [row.sample for row in traces(DATA / name, retriever_tools=["search_velin"]) if hasattr(row, "sample")]
    read = [(each.user_input, [*each.retrieved_contexts], each.response) for each in samples]
    assert sorted(read) == sorted(tuple(each.values()) for each in EXPECTED[name])


def test_what_is_not_there_is_a_reason() -> None:
    with pytest.raises(SourceError, match="no question under a known name; it has 'init_state'"):
        [*traces(DATA / UNREADABLE)]


def run(key: str, **about: object) -> dict[str, object]:
    return {"id": key, "trace_id": "1", "parent_run_id": None if key == "1" else "1", **about}


def test_what_a_tracer_wrote_for_want_of_json_is_no_text() -> None:
    node = "<NodeWithScore(node=TextNode(id_=1), score=0.4)>"
    root = run("1", run_type="chain", inputs="Who?", outputs={"response": "Jane.", "source_nodes": [node]})
    search = run("2", run_type="retriever", inputs="Who?", outputs=[{"page_content": "Jane wrote it."}])
    (row,) = traces([root, search])
    assert row.sample.retrieved_contexts == ("Jane wrote it.",)
    (row,) = traces([run("1", run_type="chain", inputs="Who?", outputs="null")])
    assert not hasattr(row, "sample"), "an abandoned stream's"
