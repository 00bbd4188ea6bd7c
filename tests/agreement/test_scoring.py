"""Scoring, resuming and what is kept, with a judge of known words; everything around it is real."""

import asyncio
import json

import pytest
from agreement.files import Line, read_records
from agreement.rows import DataError, read_folder
from agreement.scoring import FAILED_IN_A_ROW, JudgeError, Settings, score_folder
from agreement.table import write_table

from ragstone.testing import FakeEmbedder, FakeLLM

from .data import MARK, judge, tiny, write


def run(folder, out, llm, *, limit=None, **settings):
    score_folder(read_folder(folder), read_folder(folder, limit), out, Settings(**settings), llm, FakeEmbedder())
    return read_records(out / "scores" / f"{settings.get('name', 'ragstone')}.jsonl", Line)


def test_every_row_gets_a_line(tmp_path):
    lines = run(tiny(tmp_path / "data"), tmp_path / "out", judge())
    assert len(lines) == 6 + 2 * 8 + 6 + 2 * 9
    assert {line.unscored for line in lines} == {None}
    assert {(line.file, line.metric) for line in lines} == {
        ("pairs", "response_relevancy"),
        ("pairs", "response_completeness"),
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


def test_a_run_that_broke_off_goes_on(tmp_path):
    folder, out, llm = tiny(tmp_path / "data"), tmp_path / "out", judge()

    def until_called_off(request):
        if len(llm.requests) > 20:
            raise KeyboardInterrupt
        return llm.generate(request)

    with pytest.raises(KeyboardInterrupt):
        run(folder, out, FakeLLM(until_called_off, asking="one_by_one"))
    kept = read_records(out / "scores" / "ragstone.jsonl", Line)
    rest = judge()
    whole = run(folder, out, rest)
    before = {(request.task, request.user) for request in llm.requests[:20]}
    assert not before & {(request.task, request.user) for request in rest.requests}
    assert {line.key for line in kept} < {line.key for line in whole}


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


def test_no_text_is_kept(tmp_path):
    out = tmp_path / "out"
    run(tiny(tmp_path / "data"), out, judge(), limit=1)
    write_table(out)
    kept = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith("journal")]
    assert {path.name for path in kept} == {"rows.jsonl", "run.json", "ragstone.jsonl", "table.md", "table.json"}
    for path in kept:
        assert MARK not in path.read_text()
        assert "house" not in path.read_text()


def test_a_row_that_takes_too_long_has_no_score_in_later_runs_either(tmp_path):
    folder, out = tiny(tmp_path / "data"), tmp_path / "out"

    class Slow(FakeLLM):
        async def agenerate(self, request, /):
            await asyncio.sleep(60.0 if f"{MARK} 1 seen" in request.user else 0.0)
            return self.generate(request)

    slow = Slow(judge().generate, asking="one_by_one")
    options = {"metrics": ["context_relevancy"], "row_timeout": 0.5}
    first = run(folder, out, slow, **options)
    assert {line.id: line.unscored for line in first if line.unscored} == {"s1": "timeout"}
    again = judge()
    assert run(folder, out, again, **options)[1].unscored == "timeout"  # though it would be quick now
    assert not [request for request in again.requests if f"{MARK} 1 seen" in request.user]
    assert json.loads(write_table(out)[1].read_text())["cost"][0]["row_timeout"] == 0.5
    with pytest.raises(DataError, match=r"made with row_timeout 0\.5, not None"):
        run(folder, out, judge(), metrics=["context_relevancy"])


def test_a_judge_that_is_gone_ends_the_run(tmp_path):
    folder = tmp_path / "data"
    write(folder / "many.jsonl", [json.loads(line) | {"id": f"{i} {line[:12]}"} for i in range(8)
                                  for line in (tiny(tmp_path / "t") / "a" / "sentences.jsonl").read_text().splitlines()])  # fmt: skip
    gone = FakeLLM(lambda request: ConnectionError("nobody there"), asking="one_by_one")
    with pytest.raises(JudgeError, match="failed 20 times in a row. Run the same command again"):
        run(folder, tmp_path / "out", gone)
    lines = read_records(tmp_path / "out" / "scores" / "ragstone.jsonl", Line)
    assert [line.unscored for line in lines] == ["judge_error"] * FAILED_IN_A_ROW
    back = run(folder, tmp_path / "out", judge())
    assert len(back) == 48
    assert all(line.value is not None for line in back)
