"""What is committed: numbers without texts, from which the tables come out again."""

import json
import re
import shutil

import pytest
from agreement.files import Label, Line, read_records
from agreement.summary import write_summary
from agreement.table import write_table

from .conftest import BENCHMARK

RUNS = sorted(path.parent for path in (BENCHMARK / "results").glob("*/rows.jsonl"))
QUICK = ("xstest", "wikieval", "wikieval_contexts")
ID = re.compile(r"[\w.<>:/+-]{1,80}")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_files_hold_no_text_and_are_small(run):
    for path in [run / "rows.jsonl", *run.glob("scores/*.jsonl")]:
        assert path.stat().st_size < 300_000
        kind = Label if path.name == "rows.jsonl" else Line
        for record in read_records(path, kind):
            texts = re.findall(r'"([^"]*)"', record.model_dump_json())
            assert [text for text in texts if text and not ID.fullmatch(text)] == []


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run, id=run.name, marks=() if run.name in QUICK else pytest.mark.slow)
        for run in RUNS
        if (run / "scores").is_dir()
    ],
)
def test_the_committed_table_comes_out_of_the_committed_scores(run, tmp_path):
    shutil.copytree(run, tmp_path / run.name, ignore=shutil.ignore_patterns("journal.db*"))
    markdown, _ = write_table(tmp_path / run.name)
    assert markdown.read_text() == (run / markdown.name).read_text(), f"python benchmarks/agreement table {run}"


def test_summary_has_before_and_after(tmp_path):
    def estimate(value):
        return {"value": value, "low": value - 0.1, "high": value + 0.1, "units": 25}

    def run(folder, **figures):
        common = {"file": "response_relevancy__wikieval", "metric": "response_relevancy", "label": "human"}
        table = [
            {
                **common,
                "statistic": "pairwise accuracy",
                "reading": reading,
                "floors": {"longer": estimate(0.5)},
                "best": "longer",
                "systems": [
                    {
                        "system": "ragstone",
                        "estimate": estimate(value),
                        "minus_floor": estimate(value - 0.5),
                        "minus_count": estimate(value - figures["count"]) if reading == "expected" else None,
                    }
                ],
            }
            for reading, value in figures.items()
        ]
        folder.mkdir(parents=True)
        (folder / "table.json").write_text(json.dumps({"table": table}))

    run(tmp_path / "before" / "wiki", value=0.6, count=0.6)
    run(tmp_path / "wiki", value=0.9, count=0.7, expected=0.9)
    marks = "<!-- summary: by `python benchmarks/agreement summary` -->\nold\n<!-- end of summary -->"
    (tmp_path / "README.md").write_text(f"Above\n{marks}\nBelow\n")
    text = write_summary(tmp_path).read_text()
    assert text.startswith("Above\n<!--")
    assert text.endswith("<!-- end of summary -->\nBelow\n")
    assert "old" not in text
    (line,) = [line for line in text.splitlines() if line.startswith("| wikieval |")]
    cells = [cell.split()[0] for cell in line.split("|")[6:-1]]
    assert cells == ["0.60", "0.90", "0.70", "0.90", "+0.20", "longer", "+0.40"]
    assert "mean of the 1 sets: +0.20 [+0.10, +0.30]; ahead in 1." in text
    assert write_summary(tmp_path).read_text() == text
