"""Scoring, resuming and what is kept, with a judge of known words; everything around it is real."""

import json

import pytest
from agreement.lines import read_lines
from agreement.rows import DataError, read_folder
from agreement.scoring import FAILED_IN_A_ROW, JudgeError, Settings, needs_embedder, score_folder
from agreement.table import write_table

from ragstone import SummarizationScore
from ragstone.calibration import Calibration
from ragstone.calibration.facts import prompts_digest, settings_of
from ragstone.testing import FakeEmbedder, FakeLLM

from .data import MARK, judge, summary_row, tiny, write


def run(folder, out, llm, *, limit=None, **settings):
    score_folder(
        read_folder(folder), read_folder(folder, limit), out, Settings(limit=limit, **settings), llm, FakeEmbedder()
    )
    return read_lines(out / "scores" / f"{settings.get('name', 'ragstone')}.jsonl")


def test_every_row_gets_a_line(tmp_path):
    lines = run(tiny(tmp_path / "data"), tmp_path / "out", judge())
    assert len(lines) == 6 + 8 + 6 + 2 * 9
    assert {line.unscored for line in lines} == {None}
    assert {(line.file, line.metric) for line in lines} == {
        ("pairs", "response_relevancy"),
        ("refusals", "response_relevancy"),
        ("sentences", "context_relevancy"),
        ("summaries", "alignment_coverage"),
        ("summaries", "summarization_score"),
    }


def test_the_rows_own_sentences_are_judged(tmp_path):
    llm = judge()
    lines = run(tiny(tmp_path / "data"), tmp_path / "out", llm, metrics=["context_relevancy"])
    assert len(lines) == 6
    for line in lines:
        assert [mark[:2] for mark in line.sentences] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert line.value == sum(mark[2] for mark in line.sentences) / 4
    asked = "\n".join(request.user for request in llm.requests)
    assert "and sleeps." in asked


def test_refusals_keep_their_probability(tmp_path):
    lines = run(tiny(tmp_path / "data"), tmp_path / "out", judge(), metrics=["response_relevancy"])
    refusals = {line.id: line for line in lines if line.file == "refusals"}
    # In these rows a target of 1 has an answer and 0 a refusal, so that the two cannot be mixed up unseen.
    flags = {name: line.parts["noncommittal_probability"] for name, line in refusals.items()}
    assert all(0.0 <= flag <= 1.0 for flag in flags.values())
    assert flags["r0"] > flags["r1"]


def test_nothing_is_asked_twice(tmp_path):
    folder, out = tiny(tmp_path / "data"), tmp_path / "out"
    first = run(folder, out, judge(), limit=2)
    few = judge()
    whole = run(folder, out, few)
    once = judge()
    run(folder, tmp_path / "other", once)
    again = judge()
    assert run(folder, out, again) == whole
    assert again.requests == []
    assert {line.key for line in first} < {line.key for line in whole}
    asked = {(request.task, request.user) for request in few.requests}
    assert 0 < len(asked) < len({(request.task, request.user) for request in once.requests})


def test_a_run_that_broke_off_goes_on(tmp_path):
    folder, out, llm = tiny(tmp_path / "data"), tmp_path / "out", judge()

    def until_called_off(request):
        if len(llm.requests) > 20:
            raise KeyboardInterrupt
        return llm.generate(request)

    with pytest.raises(KeyboardInterrupt):
        run(folder, out, FakeLLM(until_called_off, asking="one_by_one"))
    kept = read_lines(out / "scores" / "ragstone.jsonl")
    rest = judge()
    whole = run(folder, out, rest)
    before = {(request.task, request.user) for request in llm.requests[:20]}
    assert not before & {(request.task, request.user) for request in rest.requests}
    assert {line.key for line in kept} < {line.key for line in whole}
    write_table(out)


def test_a_complete_run_that_is_made_again_and_broken_off_keeps_its_lines(tmp_path):
    folder, out = tiny(tmp_path / "data"), tmp_path / "out"
    whole = run(folder, out, judge(), metrics=["context_relevancy"])
    (out / "journal.db").unlink()
    llm = judge()

    def until_called_off(request):
        if len(llm.requests) > 6:
            raise KeyboardInterrupt
        return llm.generate(request)

    with pytest.raises(KeyboardInterrupt):
        run(folder, out, FakeLLM(until_called_off, asking="one_by_one"), metrics=["context_relevancy"])
    assert {line.key for line in read_lines(out / "scores" / "ragstone.jsonl")} == {line.key for line in whole}


def test_what_another_run_wrote_meanwhile_stays(tmp_path):
    folder, out, llm = tiny(tmp_path / "data"), tmp_path / "out", judge()
    others = []

    def meanwhile(request):
        if not others:
            others.append(True)
            run(folder, out, judge(), metrics=["alignment_coverage"])
        return llm.generate(request)

    lines = run(folder, out, FakeLLM(meanwhile, asking="one_by_one"), metrics=["summarization_score"])
    assert {line.metric for line in lines} == {"alignment_coverage", "summarization_score"}


def test_rows_that_have_not_all_labels(tmp_path):
    targets = [{"coverage": i / 4, "alignment": None if i % 2 else i / 5} for i in range(4)] + [{"coverage": None}]
    folder = tmp_path / "data"
    write(folder / "some.jsonl", [summary_row(i, i // 2, **target) for i, target in enumerate(targets)])
    run(folder, tmp_path / "out", judge())
    table = json.loads(write_table(tmp_path / "out")[1].read_text())["table"]
    rows = {(e["label"], e["of"], s["rows"]) for e in table for s in e["systems"] if e["statistic"] == "rho pooled"}
    assert rows == {("coverage", 4, 4), ("alignment", 2, 2)}


def test_draws(tmp_path):
    lines = run(tiny(tmp_path / "data"), tmp_path / "out", judge(), metrics=["context_relevancy"], repeat=3, limit=2)
    assert [(line.id, line.draw) for line in lines] == [(name, draw) for name in ("s0", "s1") for draw in range(3)]
    content = json.loads(write_table(tmp_path / "out")[1].read_text())
    (cost,) = content["cost"]
    assert (cost["rows"], cost["calls"], cost["draw_sd"]) == (2, sum(line.calls for line in lines), 0.0)


def test_another_judge_or_option_has_no_place_in_the_folder(tmp_path):
    folder, out = tiny(tmp_path / "data"), tmp_path / "out"
    run(folder, out, judge(), limit=1)
    with pytest.raises(DataError, match="made with judge 'fake', not 'other'; give another --out, or another --name"):
        run(folder, out, judge("other"), limit=1)
    options = {"summarization_score": {"length_penalty": False}}
    with pytest.raises(DataError, match="made with options"):
        run(folder, out, judge(), limit=1, options=options)
    with pytest.raises(DataError, match="made with repeat 1, not 2"):
        run(folder, out, judge(), limit=1, repeat=2)
    lines = run(folder, out, judge(), limit=1, options=options, name="plain")
    assert all(line.value == line.parts["qa"] for line in lines if line.metric == "summarization_score")
    assert {
        found["system"] for e in json.loads(write_table(out)[1].read_text())["table"] for found in e["systems"]
    } == {
        "ragstone",
        "plain",
    }


def test_calibrated(tmp_path):
    folder, out, llm = tiny(tmp_path / "data"), tmp_path / "out", judge()
    metric = SummarizationScore(llm=llm)
    calibration = Calibration(
        metric=metric.name, version=metric.version, prompts=prompts_digest(metric), judge=llm.model, item="score",
        settings=settings_of(metric, "score"), weights={"judge": 1.0}, intercept=-1.0,
    )  # fmt: skip
    settings = {"metrics": [metric.name], "limit": 3}
    plain = run(folder, out, llm, **settings)
    lines = run(folder, out, llm, name="calibrated", options={metric.name: {"calibration": calibration}}, **settings)
    assert [line.parts["uncalibrated"] for line in lines] == [line.value for line in plain]
    assert all(line.value < line.parts["uncalibrated"] for line in lines)
    assert {line.version for line in lines} == {f"{metric.version}+cal:{calibration.digest}"}
    write_table(out)
    assert f"calibration={calibration.digest}" in (out / "table.md").read_text()


def test_lines_of_an_older_version_go(tmp_path):
    folder, out = tiny(tmp_path / "data"), tmp_path / "out"
    version = run(folder, out, judge(), metrics=["context_relevancy"])[0].version
    scores = out / "scores" / "ragstone.jsonl"
    scores.write_text(scores.read_text().replace(f'"version": "{version}"', '"version": "0"'))
    lines = run(folder, out, judge(), metrics=["context_relevancy"], limit=2)
    assert [(line.id, line.version != "0") for line in lines] == [("s0", True), ("s1", True)]


def test_no_text_is_kept(tmp_path):
    out = tmp_path / "out"
    run(tiny(tmp_path / "data"), out, judge())
    write_table(out)
    kept = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith("journal")]
    assert {path.name for path in kept} == {"rows.jsonl", "run.json", "ragstone.jsonl", "table.md", "table.json"}
    for path in kept:
        assert MARK not in path.read_text()
        assert "house" not in path.read_text()


def test_a_judge_that_is_gone_ends_the_run(tmp_path):
    folder = tmp_path / "data"
    write(folder / "many.jsonl", [json.loads(line) | {"id": f"{i} {line[:12]}"} for i in range(8)
                                  for line in (tiny(tmp_path / "t") / "a" / "sentences.jsonl").read_text().splitlines()])  # fmt: skip
    gone = FakeLLM(lambda request: ConnectionError("nobody there"), asking="one_by_one")
    with pytest.raises(JudgeError, match="failed 20 times in a row. Run the same command again"):
        run(folder, tmp_path / "out", gone)
    lines = read_lines(tmp_path / "out" / "scores" / "ragstone.jsonl")
    assert [line.unscored for line in lines] == ["judge_error"] * FAILED_IN_A_ROW
    back = run(folder, tmp_path / "out", judge())
    assert len(back) == 48
    assert all(line.value is not None for line in back)


def test_a_row_that_cannot_be_scored_says_why(tmp_path):
    broken = FakeLLM(lambda request: "perhaps", asking="one_by_one")
    lines = run(tiny(tmp_path / "data"), tmp_path / "out", broken, metrics=["context_relevancy"])
    assert {(line.value, line.unscored, line.sentences) for line in lines} == {(None, "judge_unparseable", None)}
    content = json.loads(write_table(tmp_path / "out")[1].read_text())
    assert content["table"] == []
    assert content["cost"][0]["unscored"] == {"judge_unparseable": 6}


def test_needs_embedder(tmp_path):
    data = read_folder(tiny(tmp_path))
    assert needs_embedder(data, Settings())
    assert not needs_embedder(data, Settings(metrics=["context_relevancy", "summarization_score"]))
    del data["pairs"], data["refusals"]
    assert not needs_embedder(data, Settings())
