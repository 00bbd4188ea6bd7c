"""The example that writes outcomes as lines of JSON."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from ragstone import Score, Unscored
from ragstone.live import CallableSink, Record

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the checkout: examples/")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    return import_module("live.json_lines")


def test_a_line_for_each_outcome(example: ModuleType) -> None:
    hostile = "a\nb\u2028\ud800"
    score = Score(metric="demo", value=0.5, reason=hostile, version="1")
    lack = Unscored(metric="demo", reason="timeout", detail="60 s", version="1")
    sink = CallableSink(example.append)
    sink.write([Record(hostile, score, judge="j", submitted_at=1.5), Record("b", lack)])
    sink.write([Record("b", score)])
    first, second, third = (json.loads(line) for line in Path("outcomes.jsonl").read_text("ascii").splitlines())
    assert (first["id"], first["value"], first["reason"], first["judge"]) == (hostile, 0.5, hostile, "j")
    assert (second["id"], second["reason"], "value" in second, third["value"]) == ("b", "timeout", False, 0.5)


def test_it_runs(example: ModuleType) -> None:
    example.main()
    said = json.loads(Path("outcomes.jsonl").read_text("ascii"))
    assert (said["id"], said["metric"], said["value"]) == ("q1", "context_relevancy", 0.5)
