"""Systems side by side: written by hand, so that every figure is known."""

import json

import pytest
from agreement.files import Label, Line, read_records, write_records
from agreement.rows import DataError, read_folder
from agreement.table import together, write_table

from .data import tiny


@pytest.fixture
def out(tmp_path):
    """A folder with the labels of the tiny rows, and no scores."""
    write_records(
        tmp_path / "out" / "rows.jsonl",
        (Label.of(row) for rows in read_folder(tiny(tmp_path / "data")).values() for row in rows),
    )
    return tmp_path / "out"


def put(out, name, lines):
    path = out / "scores" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def pair_line(number, value, **more):
    line = {"file": "pairs", "id": f"r{number}", "metric": "response_relevancy", "value": value, "unscored": None}
    return {**line, "parts": {}, "calls": 2, "input_tokens": 10, "output_tokens": 3, "seconds": 1.5, **more}


def table(out):
    markdown, data = write_table(out)
    return markdown.read_text(), json.loads(data.read_text())


def found(content, statistic, system="ragstone", **fields):
    (entry,) = (
        each
        for each in content["table"]
        if each["statistic"] == statistic and all(each[name] == value for name, value in fields.items())
    )
    return entry, next((each for each in entry["systems"] if each["system"] == system), None)


def test_systems_side_by_side(out):
    ours = [pair_line(2 * i + t, 0.9 if t else 0.1) for i in range(4) for t in (0, 1)]
    # A peer writes the file with its folder and the metric by its class; it lost one row, and is right in one pair.
    theirs = [
        pair_line(
            2 * i + t,
            0.5 + (0.1 if t == (i == 0) else 0.0),
            file="a/pairs.jsonl",
            metric="ResponseRelevancy",
            calls=None,
        )
        for i in range(4)
        for t in (0, 1)
        if (i, t) != (3, 0)
    ]
    theirs.append(pair_line(6, None, unscored="TimeoutError", metric="ResponseRelevancy", calls=None))
    put(out, "ragstone", ours)
    put(out, "peer-1.0", theirs)
    markdown, content = table(out)
    entry, own = found(content, "pairwise accuracy")
    _, peer = found(content, "pairwise accuracy", "peer-1.0")
    assert (own["estimate"]["value"], own["rows"], own["ours_minus"]) == (1.0, 8, None)
    assert peer["estimate"]["value"] == pytest.approx(1 / 3, abs=1e-5)
    assert (peer["rows"], peer["shared"], peer["estimate"]["units"]) == (7, 7, 3)
    assert peer["ours_minus"]["value"] == pytest.approx(2 / 3, abs=1e-5)
    floors = {name: floor["value"] for name, floor in entry["floors"].items()}
    assert floors == {"longer": 0.0, "shorter": 1.0, "words": floors["words"]}  # refusals are longer; no embedder
    assert (entry["best"], own["minus_floor"]["value"], peer["minus_floor"]) == ("shorter", 0.0, None)
    costs = {cost["system"]: cost for cost in content["cost"]}
    assert costs["ragstone"]["calls"] == 16
    assert costs["ragstone"]["seconds"] == 12.0
    assert costs["peer-1.0"]["calls"] is None
    assert (costs["peer-1.0"]["scored"], costs["peer-1.0"]["rows"]) == (7, 8)
    assert costs["peer-1.0"]["unscored"] == {"TimeoutError": 1}
    assert "| 1.00 [0.51, 1.00] | 0.33 [" in markdown  # Wilson's: that all are right leaves a doubt
    assert " (n 3); ours +0.67 [" in markdown  # of 4 pairs
    assert "TimeoutError 1" in markdown


def test_answerable_rows_and_probabilities_are_told_apart(out):
    """Of six rows two have nothing relevant (each one sentence of four, the last); all is chosen everywhere."""
    marks = [[p, s, True, 0.9 if (p, s) == (1, 1) else 0.2] for p in (0, 1) for s in (0, 1)]
    line = {"file": "sentences", "metric": "context_relevancy", "value": 0.4, "sentences": marks}
    values = [{"value": v, "parts": {"count": 1.0, "expected": v}} for v in (0.1, 0.4, 0.5, 0.2, 0.4, 0.3)]
    put(out, "ragstone", [{**line, "id": f"s{i}", **each} for i, each in enumerate(values)])
    markdown, content = table(out)
    every, own = found(content, "sentence F1")
    _, answerable = found(content, "sentence F1, answerable rows")
    assert (own["rows"], own["estimate"]["value"]) == (6, pytest.approx(4 / 6 * 0.4, abs=1e-5))
    assert (answerable["rows"], answerable["estimate"]["value"]) == (4, pytest.approx(0.4))
    floors = {name: floor["value"] for name, floor in every["floors"].items()}
    assert floors[every["best"]] == max(floors.values())
    assert own["minus_floor"]["value"] == pytest.approx(own["estimate"]["value"] - max(floors.values()), abs=1e-5)
    error, _ = found(content, "mean error of the share", reading="value")
    assert error["best"] == min(error["floors"], key=lambda name: error["floors"][name]["value"])
    _, graded = found(content, "rho of the share", reading="expected")
    assert graded["minus_count"] is None  # hard verdicts do not vary here
    assert f"| {every['best']} 0." in markdown


@pytest.mark.parametrize(
    "line", ["3", '{"file": "f", "id": "i", "metric": "m", "value": NaN}']
)  # fmt: skip
def test_lines_of_another_form_are_named(out, line):
    path = put(out, "peer", [pair_line(0, 1.0)])
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(DataError, match=r"peer\.jsonl, line 2: is no line of a row"):
        read_records(path, Line)


def test_a_line_that_a_kill_cut_short_is_passed_over(out):
    path = put(out, "peer", [pair_line(0, 1.0)])
    path.write_text(path.read_text() + '{"file": "pai')
    assert [line.id for line in read_records(path, Line)] == ["r0"]


def test_draws_are_averaged():
    def line(draw, value, chosen, unscored=None):
        return Line(
            file="f", id="i", metric="m", value=value, unscored=unscored, draw=draw, calls=1, input_tokens=None,
            parts={} if value is None else {"a": value}, sentences=None if value is None else ((0, 0, chosen, value),),
        )  # fmt: skip

    one = together([line(0, 0.2, True), line(1, 0.4, True), line(2, 0.6, False), line(3, None, None, "timeout")])
    assert one.value == one.parts["a"] == one.sentences[0][3] == pytest.approx(0.4)
    assert one.sentences[0][2] is True
    assert (one.calls, one.input_tokens, one.unscored) == (4, None, None)
    assert together([line(0, 0.2, True), line(1, 0.4, False)]).sentences[0][2] is False
    assert together([line(0, None, None, "timeout"), line(1, None, None, "judge_error")]).unscored == "timeout"
