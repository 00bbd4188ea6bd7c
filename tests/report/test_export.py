"""Tables of results: CSV that no spreadsheet runs, and data frames with nothing that is NaN."""

import csv
import io
import json
import math
import sys

import pytest

from ragstone import Sample, Verdict
from ragstone.report import Report
from ragstone.results.frames import FRAME_COLUMNS, neutral
from ragstone.results.record import Record

from .reports import rich, scored, unscored

SAMPLES = [
    Sample(user_input="=1+1", retrieved_contexts=["a", "b"], response='say "hi",\nthen'),
    Sample(response="@cmd", retrieved_contexts=[]),
]


@pytest.fixture
def two():
    verdict = Verdict(id="1", kind="claim", text="-x", verdict="supported")
    scores = [
        scored(0.5),
        scored(-0.25, "other"),
        scored(1.0, "third", passed=True, verdicts=[verdict], breakdown={"a": 0.5}),
    ]
    records = [Record("=HYPERLINK(1)", score, "judge", 0) for score in scores]
    return Report.of([*records, Record("plain", unscored(), "judge", 1)], samples=SAMPLES)


def test_a_wide_frame_has_a_row_for_each_sample_and_a_column_for_each_metric():
    given = [
        Record("a", scored(0.5), "judge", 0),
        Record("a", scored(1.0, "other"), "judge", 0),
        Record("b", unscored(), "judge", 1),
        Record("b", scored(0.25, "response"), "judge", 1),
    ]
    frame = Report.of(given, samples=[Sample(response="Yes.", retrieved_contexts=["x"])]).to_pandas(wide=True)
    assert list(frame.columns) == [
        "row", "sample_id", "user_input", "retrieved_contexts", "response", "reference", "demo", "other", "response score",
    ]  # fmt: skip
    assert frame[["sample_id", "response", "demo", "other", "response score"]].astype(object).where(frame.notna(), None).values.tolist() == [
        ["a", "Yes.", 0.5, 1.0, None], ["b", None, None, None, 0.25],
    ]  # fmt: skip


def read_csv(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


def test_csv(two, tmp_path):
    two.to_csv(tmp_path / "a.csv")
    rows = read_csv(tmp_path / "a.csv")
    assert list(rows[0]) == list(FRAME_COLUMNS)
    assert [row["row"] for row in rows] == ["0", "0", "0", "1"]
    assert [row["value"] for row in rows] == ["0.5", "-0.25", "1.0", ""]
    assert [row["passed"] for row in rows] == ["", "", "True", ""]
    assert [row["unscored"] for row in rows] == ["", "", "", "timeout"]
    assert {row["sample_id"] for row in rows} == {"'=HYPERLINK(1)", "plain"}
    assert (rows[0]["user_input"], rows[3]["response"]) == ("'=1+1", "'@cmd")
    assert (rows[0]["response"], rows[0]["retrieved_contexts"]) == ('say "hi",\nthen', '["a", "b"]')
    assert (rows[3]["user_input"], rows[3]["retrieved_contexts"]) == ("", "")
    assert json.loads(rows[2]["verdicts"])[0]["text"] == "-x"
    assert json.loads(rows[2]["breakdown"]) == {"a": 0.5}
    assert rows[3]["reason"] == "after 60 s"


@pytest.mark.parametrize("sign", "=+-@\uff1d\uff0b\uff0d\uff20")
def test_every_form_of_a_formula_is_defused(sign):
    for before in ("", " ", "\t", "\r", "\n", "\u3000", "\ufeff", " \ufeff "):
        assert neutral(f"{before}{sign}1+1") == f"'{before}{sign}1+1"
        assert neutral(f"a{before}{sign}1") == f"a{before}{sign}1"


def test_csv_of_any_text(tmp_path):
    text = 'a"b,c\r\n\x00\udcff\u202e;\t'
    Report.of([]).to_csv(tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text().strip() == ",".join(FRAME_COLUMNS)
    rich(text).to_csv(tmp_path / "a.csv")
    rows = read_csv(tmp_path / "a.csv")
    assert len(rows) == 12
    assert {row["response"] for row in rows} == {text.replace("\udcff", "\ufffd").replace("\x00", "\ufffd")}


def test_pandas(two):
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    frame = two.to_pandas()
    assert list(frame.columns) == list(FRAME_COLUMNS)
    assert frame["value"].tolist() == [0.5, -0.25, 1.0, pandas.NA]
    assert frame["value"].mean() == pytest.approx(1.25 / 3)
    assert frame["passed"].tolist() == [pandas.NA, pandas.NA, True, pandas.NA]
    assert frame["user_input"][0] == "=1+1"  # no spreadsheet
    assert not any(isinstance(cell, float) and math.isnan(cell) for column in frame for cell in frame[column])
    assert len(Report.of([]).to_pandas()) == 0


def test_polars_and_parquet(two, tmp_path):
    polars = pytest.importorskip("polars", reason="pip install polars")
    frame = two.to_polars()
    assert frame.columns == list(FRAME_COLUMNS)
    assert frame["value"].to_list() == [0.5, -0.25, 1.0, None]
    assert frame["passed"].to_list() == [None, None, True, None]
    assert Report.of([]).to_polars().schema == frame.schema, "an empty one has the same types"
    assert frame.schema["row"] == polars.Int64
    two.to_parquet(tmp_path / "a.parquet")
    assert polars.read_parquet(tmp_path / "a.parquet").equals(frame)
    rich("\udcff\x00").to_parquet(tmp_path / "c.parquet")
    assert len(polars.read_parquet(tmp_path / "c.parquet")) == 12


def test_what_is_not_installed_is_said(two, tmp_path, monkeypatch):
    exports = {"polars": two.to_polars, "pyarrow": lambda: two.to_parquet(tmp_path / "a"), "pandas": two.to_pandas}
    for missing, export in exports.items():
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(ImportError, match=f"needs {missing}, .* pip install"):
            export()
    assert list(tmp_path.iterdir()) == []
