"""`ragstone demo`: it needs nothing, says that it is recorded, and its recording fits today's prompts and judge."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from ragstone import Unscored
from ragstone.cli.demo import RECORDING, demo_report
from ragstone.results.record import decode_reply

RECORDED = json.loads(RECORDING.read_text("utf-8"))


@pytest.fixture(scope="module")
def values():
    """Each sample's values by metric; None where there is none."""
    report = demo_report(RECORDED)
    outcomes = [(each.sample_id, each.outcome) for each in report.results()]
    if lacking := [each.detail for _, each in outcomes if isinstance(each, Unscored) and each.reason == "judge_error"]:
        pytest.fail(f"{len(lacking)} outcomes of {len(outcomes)} lack recorded replies: {lacking[0]}", pytrace=False)
    found = {}
    for sample_id, outcome in outcomes:
        found.setdefault(sample_id, {})[outcome.metric] = outcome.value
    return found


def test_it_prints_scores_with_evidence_and_writes_a_page(run, values, tmp_path, monkeypatch):
    for module in ("xllamacpp", "onnxruntime", "tokenizers", "openai", "ragstone.local"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    done = run("demo")
    assert done.exit_code == 0, done.stderr
    for part in (
        f"\nquestion: {RECORDED['samples'][1]['user_input']}\n",
        f"padded retrieval  context_relevancy  {values['padded retrieval']['context_relevancy']:.3f}",
        "    sentence 6: irrelevant",
        f"The replies are recorded, of {RECORDED['judge']} on {RECORDED['date']}. No model was asked",
        f"{(tmp_path / 'ragstone-demo' / 'report.html').as_uri()}",
        "ragstone[local]",
        "ragstone score shoes.jsonl",
    ):
        assert part in done.stdout
    assert "<!doctype html>" in (tmp_path / "ragstone-demo" / "report.html").read_text("utf-8")
    assert (tmp_path / "ragstone-demo" / ".gitignore").read_text() == "*\n"


def test_a_page_that_cannot_be_written(run, tmp_path):
    done = run("demo", "--report", tmp_path / "none" / "page.html")
    assert (done.exit_code, "cannot write: there is no folder" in done.stderr) == (2, True)


def test_its_samples_can_be_scored(run, score, tmp_path):
    samples = tmp_path / "shoes.jsonl"
    for _ in range(2):  # README's command can be run again
        assert run("demo", "--samples", samples).exit_code == 0
    assert "good answer" in score(samples, "--metric", "faithfulness", "--explain").stdout
    samples.write_text(mine := samples.read_text().replace("good", "mine"))
    assert (run("demo", "--samples", samples).exit_code, samples.read_text()) == (2, mine)


@pytest.mark.model
def test_the_judge_says_what_was_recorded():
    for extra in ("xllamacpp", "onnxruntime", "tokenizers"):
        pytest.importorskip(extra)
    spec = importlib.util.spec_from_file_location("record_demo", Path(__file__).with_name("record_demo.py"))
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    again = script.record()
    shared = again["replies"].keys() & RECORDED["replies"].keys()  # a claim in other words is asked about in others
    assert len(shared) > 0.8 * len(RECORDED["replies"])
    for key in shared:
        probabilities = decode_reply(RECORDED["replies"][key]).probabilities
        found = decode_reply(again["replies"][key]).probabilities
        assert probabilities is None or found == pytest.approx(probabilities, abs=0.05)
