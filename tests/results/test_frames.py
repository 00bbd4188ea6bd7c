"""Frames are results: what was written of a report or by a cluster is read back, and what is none says what it lacks."""

import json

import pandas as pd
import pytest

from ragstone import ContextRelevancy, Evidence, Sample, Score, Turn, Unscored, Usage, Verdict, compare, evaluate
from ragstone.batch import Scorer
from ragstone.labels.drawing import draw_samples
from ragstone.report import Report, ResultsError
from ragstone.results.record import Record
from ragstone.sources import SourceError, rows_of
from ragstone.testing import FakeLLM

TEXTS = ['- a list, said "he"\nagain', "'=1+1", "Émile \U0001f600 [1] {x}", "'tis"]
ROWS = [
    {"id": f"q{i}", "question": f"Who wrote {i}?", "contexts": ["Ann did. It rains.", "Bob."][: 1 + i % 2]}
    for i in range(12)
]


def given():
    """Records with everything that a record may have of a frame's columns."""
    for row, text in enumerate(TEXTS):
        sample = Sample(
            user_input=text, retrieved_contexts=["It rains.", text], response=f"It {text}", reference=text,
            reference_ids=["d1", "7"], retrieved_ids=["d1"], metadata={"doc": text, "n": {"a": [1, None]}},
            history=[Turn(role="user", content=text)], **({"id": "q0"} if row == 0 else {}),
        )  # fmt: skip
        at = Evidence(field="retrieved_contexts", chunk=1, start=0, end=3, text=text[:3])
        verdict = Verdict(
            id="1", kind="claim", text=text, verdict="no", probability=0.25, evidence=[at], lowers_score=True
        )
        facts = {
            "judge": "gpt-4", "row": row, "sample": sample, "group": f"doc={row % 2}", "setup": "granularity=chunk", "rate": 0.5,
            "submitted_at": 1.79e9, "run_name": "chain", "tags": ("a", "b"), "user_id": "u", "thread_id": "t", "chosen_by": "error",
        }  # fmt: skip
        score = Score(
            metric="faithfulness", value=0.375, passed=bool(row % 2), reason=text, breakdown={"supported": 0.1},
            verdicts=[verdict], usage=Usage(llm_calls=2, input_tokens=None, output_tokens=7, seconds=0.1), version="3",
        )  # fmt: skip
        failed = Unscored(metric="other", reason="timeout", detail=text, version="1")
        yield from (Record(sample.id or str(row + 1), outcome, **facts) for outcome in (score, failed))


FORMS = {
    "own.parquet": lambda report, path: report.to_parquet(path),
    "own.csv": lambda report, path: report.to_csv(path),
    "lines.jsonl": lambda report, path: report.to_pandas().to_json(path, orient="records", lines=True, double_precision=15),
    "list.json": lambda report, path: report.to_pandas().to_json(path, orient="records", double_precision=15),
    "packed.jsonl.gz": lambda report, path: report.to_pandas().to_json(path, orient="records", lines=True, double_precision=15),
    "polars.ndjson": lambda report, path: report.to_polars().write_ndjson(path),
    "with_nulls_left_out.jsonl": lambda report, path: path.write_text("".join(
        json.dumps({name: cell for name, cell in row.items() if cell is not None}) + "\n" for row in report.to_polars().to_dicts()
    )),
    "sorted.parquet": lambda report, path: report.to_pandas().sort_values(["metric", "row"], ascending=False).to_parquet(path),
    "by_metric": lambda report, path: report.to_pandas().to_parquet(path, partition_cols=["metric"]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_report_comes_back_from_every_form(form, tmp_path):
    report = Report.of(given())
    FORMS[form](report, tmp_path / form)
    found = Report.load(tmp_path / form)
    by_row = sorted(found.results(samples=True), key=lambda record: (record.row, record.outcome.metric))
    assert by_row == list(report)
    assert (found.figures()["metrics"], found.by("tags")) == (report.figures()["metrics"], report.by("tags"))


def test_types_that_another_tool_gave_are_read(tmp_path):
    report = Report.of(given())
    report.to_csv(tmp_path / "a.csv")
    frame = pd.read_csv(tmp_path / "a.csv").drop(columns=["user_input", "response"])
    frame["retrieved_contexts"] = frame["retrieved_contexts"].map(json.loads)
    assert str(frame["version"].dtype) == "int64"
    frame.astype({"row": float, "version": float}).to_parquet(tmp_path / "b.parquet")
    first, *_ = Report.load(tmp_path / "b.parquet").results(samples=True)
    assert (first.row, first.outcome.version, first.outcome.passed) == (0, "3", False)
    assert first.outcome.usage.input_tokens is None
    assert first.sample.retrieved_contexts == ("It rains.", TEXTS[0])


def metric():
    return ContextRelevancy(llm=FakeLLM({"ids": [1]}), threshold=0.4)


def dask_writes(scorer, rows, folder, form):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    with dask.config.set({"dataframe.convert-string": False, "scheduler": "synchronous"}):
        # More than ten parts: the tenth comes after the second.
        scored = frames.from_pandas(pd.DataFrame(rows), npartitions=12).map_partitions(scorer, meta=scorer({}))
        options = {"orient": "records", "lines": True, "double_precision": 15} if form == "json" else {}
        getattr(scored, f"to_{form}")(str(folder), **options)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # pandas', of Dask
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_what_a_cluster_wrote_is_worth_what_one_process_gives(form, tmp_path):
    rows = [*ROWS, {"id": "bad", "question": "Who?", "contexts": [3]}]
    folder = tmp_path / "scored"
    dask_writes(Scorer(metric()), rows, folder, form)
    (folder / "_SUCCESS").touch()
    (folder / ".part.crc").write_bytes(b"\x00")
    (folder / "zz-empty.json").touch()
    one, found = evaluate(rows, metric(), progress=False), Report.load(folder)
    assert [record.row for record in found] == list(range(12))
    assert [record.sample for record in found.results(samples=True)] == [
        record.sample for record in one.results(samples=True)
    ]
    assert [record.outcome.verdicts for record in found] == [record.outcome.verdicts for record in one]
    mine, theirs = one["context_relevancy"], found["context_relevancy"]
    assert (mine.interval, mine.passed, mine.total) == (pytest.approx(theirs.interval), theirs.passed, theirs.total)
    assert [bad.problem for bad in found.bad_rows] == [bad.problem for bad in one.bad_rows]
    assert compare(one, found).metrics["context_relevancy"].ties == 12
    assert len(draw_samples(found, n=12).entries) == 12
    assert "context_relevancy" in found.html()


def test_rows_without_ids_count_on_from_batch_to_batch(tmp_path):
    rows = [{name: cell for name, cell in row.items() if name != "id"} for row in ROWS]
    for number in range(3):
        Scorer(metric())(rows[4 * number :][:4]).to_parquet(tmp_path / f"part-{number}.parquet")
    found = Report.load(tmp_path)
    assert [record.row for record in found] == list(range(12))
    assert compare(evaluate(rows, metric(), progress=False), found).metrics["context_relevancy"].pairs == 12
    pd.read_parquet(tmp_path).sort_values("metric").to_parquet(tmp_path / "sorted.parquet")
    assert len(Report.load(tmp_path / "sorted.parquet")) == 12


def frame(**changes):
    whole = Report.of(given()).to_pandas()
    return whole.drop(columns=changes.pop("drop", [])).assign(**changes)


def cut(path):
    Report.of(given()).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-40])


DAMAGED = {
    "wide.parquet": (lambda path: Report.of(given()).to_pandas(wide=True).to_parquet(path), r"lacks 'metric', 'version', 'judge', 'setup'.*wide=True"),
    "dropped.csv": (lambda path: frame(drop=["judge"]).to_csv(path), "lacks 'judge'"),
    "foreign.csv": (lambda path: path.write_text("question,answer\nWho?,Ann.\n"), r"has no results: .*`ragstone score .*foreign.csv`"),
    "foreign.json": (lambda path: path.write_text('[{"question": "Who?"}]'), "has no results"),
    "columns.json": (lambda path: frame().to_json(path), "has no results"),
    "pickle.pkl": (lambda path: frame().to_pickle(path), "has no results"),
    "empty": (lambda path: path.mkdir(), "has no results"),
    "cut.parquet": (cut, r"cut.parquet: cannot be read after row 0: "),
    "spark.csv": (lambda path: frame().to_csv(path, escapechar="\\", doublequote=False), "cannot be read after row .*option"),
    "twice.parquet": (
        lambda path: pd.concat([frame(), frame()]).sort_values("metric", kind="stable").to_parquet(path), "has two outcomes of"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_no_frame_of_results_says_what_is_missing(name, tmp_path):
    write, message = DAMAGED[name]
    write(tmp_path / name)
    with pytest.raises(ResultsError, match=message):
        Report.load(tmp_path / name)


def test_a_damaged_row_is_left_out_and_said(tmp_path):
    path = tmp_path / "a.jsonl"
    frame(verdicts=["[]", "[", *["[]"] * 6]).to_json(path, orient="records", lines=True)
    with path.open("a") as file:
        file.write('{"row": 9, "sam')
    found = Report.load(path)
    assert len(found) == 7
    assert found.notes[0] == "left out 2 rows without an outcome: a.jsonl row 2, a.jsonl row 9"


def test_labels_need_the_columns_of_texts(tmp_path):
    frame(drop=["user_input", "retrieved_contexts", "response", "reference", "history", "metadata", "reference_ids", "retrieved_ids"]).to_parquet(tmp_path / "a.parquet")  # fmt: skip
    found = Report.load(tmp_path / "a.parquet")
    assert found["faithfulness"].mean == 0.375
    with pytest.raises(ValueError, match="texts"):
        draw_samples(found, metric="faithfulness")


@pytest.mark.parametrize("form", ["own.parquet", "own.csv", "lines.jsonl"])
def test_a_frame_is_not_scored_again_as_samples(form, tmp_path):
    FORMS[form](Report.of(given()), tmp_path / form)
    with pytest.raises(SourceError, match="holds results"):
        list(rows_of(tmp_path / form))
