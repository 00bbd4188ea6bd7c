"""What the peers' scripts share; the peers live in environments of their own."""

import asyncio
import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "agreement" / "peers"
SENTENCES = (("In 1937 , cast members sang .", "Others slept ."), ("Others slept .", "Yes."))


def load(name):
    """Import a script as it imports its neighbours, by its bare name."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PEERS / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


scorelines, readings = load("scorelines"), load("readings")


def test_a_limit_takes_whole_groups_and_labelled_rows_only(tmp_path):
    def written(name, task, rows):
        use = {"metric": "Summarization + ContextRelevancy", "task": task, "target": 1}
        lines = [{"id": f"r{i}", "use": use | more.pop("use", {}), **more} for i, more in enumerate(rows)]
        (tmp_path / name).write_text("".join(json.dumps(each) + "\n" for each in lines))

    written("b.jsonl", "pairwise", [{"pair_id": f"p{i // 2}"} for i in range(6)])
    written("a.jsonl", "binary", [{"use": {"target": None if i < 2 else 0}, "pair_id": "p"} for i in range(6)])
    written("c.jsonl", "correlation", [{"doc_id": f"d{i % 2}"} for i in range(6)])
    found = [each.file + each.data["id"] for each in scorelines.rows(tmp_path, limit=3)]
    assert found == ["ar2", "ar3", "ar4", "br0", "br1", "br2", "br3", "cr0", "cr2", "cr4"]
    assert {each.metrics for each in scorelines.rows(tmp_path)} == {("AlignmentCoverage", "ContextRelevancy")}


def test_a_line_cut_short_is_scored_again_and_known_by_its_files_name_alone(tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_bytes(b'{"file": "A_open/f.jsonl", "id": "1", "metric": "m"}\n{"file": "f", "id": "2", "me')
    assert scorelines.done(out) == {("f", "1", "m")}
    assert out.read_bytes().endswith(b'"m"}\n')


def test_a_failure_is_named_and_its_message_is_not_kept():
    async def fails(_):
        raise KeyError("secret text")

    async def no_number(_):
        return scorelines.Found(math.nan, {"part": 1.0})

    async def waits(_):
        await asyncio.Event().wait()

    found = [asyncio.run(scorelines.found(each, {}, 0.05)) for each in (fails, no_number, waits)]
    assert found[0] == scorelines.Found(None, unscored="KeyError")
    assert [(each.value, each.unscored) for each in found[1:]] == [(None, "not finite"), (None, "timeout")]


@pytest.mark.parametrize(
    ("said", "places"),
    [
        ("Insufficient Information", []),
        ("Here they are: OTHERS slept.", [(0, 1), (1, 0)]),
        ('["cast members sang", "Others slept."]', [(0, 0), (0, 1), (1, 0)]),
        ("sang", []),  # too short a part
        ("Nobody of the cast members sang.", []),  # invented
    ],
)
def test_sentences_that_the_judge_quoted(said, places):
    assert [mark[:2] for mark in readings.chosen(said, SENTENCES) if mark[2]] == places


def test_qa_is_what_length_does_not_explain():
    parts = readings.qa_and_conciseness(0.6 * 0.5 + (1 - 50 / 200) * 0.5, "x" * 200, "y" * 50)
    assert (parts["qa"], parts["conciseness"]) == (pytest.approx(0.6), 0.75)
