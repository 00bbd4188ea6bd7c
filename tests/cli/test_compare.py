"""`ragstone compare`: a gate's exit status."""

import json

import pytest

from .conftest import row


@pytest.fixture
def scored(score, rows, tmp_path):
    """Scores rows to a result file by `ragstone score` itself."""

    def make(name, *given, options=()):
        path = tmp_path / f"{name}.jsonl"
        found = score(rows(*given, name=f"{name}-rows.jsonl"), "--metric", "context_relevancy", "--out", path, *options)
        assert found.exit_code == 0, found.output
        return path

    return make


def changed(path, **more):
    """Return a copy of a result file in which all lines say something else."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    target = path.with_name("b.jsonl")
    target.write_text(
        "".join(json.dumps({**line, **more} if "id" in line else {"ragstone_results": 1}) + "\n" for line in lines)
    )
    return target


@pytest.mark.parametrize(
    ("change", "drops", "status"),
    [
        ({}, ["0.02"], 0),
        ({"value": 0.0}, ["0.02"], 1),
        ({"value": 0.0}, ["0.02", "context_relevancy=1"], 0),
        ({"metric": "other"}, ["0.02"], 2),
        ({"value": 0.0}, ["context_relevancy=2%"], 2),
        ({"value": 0.0}, ["nan"], 2),
        ({"value": 0.0}, ["-0.1"], 2),
        ({"value": 0.0}, ["faithfulness=0.02"], 2),
    ],
)
def test_a_drop_is_the_exit_status(run, scored, change, drops, status):
    a = scored("a", *(row(i, id=f"q{i}") for i in range(200)))  # fewer equal pairs may hide a drop
    found = run("compare", a, changed(a, **change), *(word for drop in drops for word in ("--allow-drop", drop)))
    assert found.exit_code == status, found.output
    if status == 2:
        assert found.stdout == ""
    else:
        said = "not worse by this judge" if not change else "worse by this judge"
        allowed = ", but no more than allowed" if change and status == 0 else ""
        assert f"context_relevancy: {said}{allowed}: " in found.stdout.splitlines()[-1]


@pytest.mark.parametrize(("rarest", "status"), [("0.05", 0), ("0", 3), ("1", 2), ("-0.1", 2)])
def test_what_is_rare_is_looked_for_where_one_says_so(run, scored, rarest, status):
    a = scored("a", *(row(i, id=f"q{i}") for i in range(80)))
    assert run("compare", a, changed(a), "--allow-drop", "0.02", "--rarest", rarest).exit_code == status


def test_a_gate_that_cannot_tell_is_3_and_markdown_says_so(run, scored):
    a = scored("a", row(1, id="q1"))
    found = run("compare", a, changed(a), "--allow-drop", "0.02", "--markdown")
    assert found.exit_code == 3
    assert found.stdout.startswith("**`b.jsonl compared with a.jsonl`**\n\n| metric | `a` | `b` | change |")
    assert (
        "- `context_relevancy`: cannot tell: 1 sample with a score in both, and an interval needs two." in found.stdout
    )
