"""The whole way, by commands and clicks: score, label in the browser, correct, report."""

import json
import re

import pytest

from ragstone.report import Report

from ..support.command import said  # noqa: TID252

pytestmark = pytest.mark.browser
JUDGE = """
import re

from ragstone.testing import FakeLLM


def reply(request):
    if request.task.endswith("claims"):
        return {"claims": [re.search(r"Fact [0-9]+ is [a-z]+[.]", request.user)[0]]}
    number, word = re.findall(r"Fact ([0-9]+) is (red|blue)", request.user)[-1]
    supported = (word == "red") != (int(number) % 7 == 0)  # one of seven it judges wrongly
    return {"verdicts": {"1": {"evidence": [], "verdict": "supported" if supported else "not_in_source"}}}


def loop_judge():
    return FakeLLM(reply, model="loop")
"""


def labelled(page, name):
    """Label all samples by what stands on the page."""
    page.get_by_role("button", name="one score").click()
    while page.get_by_role("button", name="lock and go on").count():
        answer = page.get_by_role("region", name="answer")
        true = answer.inner_text() in page.get_by_role("region", name="context 1").inner_text()
        page.get_by_role("group", name="score").get_by_role("button", name=str(int(true)), exact=True).click()
        page.get_by_role("button", name="lock and go on").click()
    assert "correct a.jsonl --labels labels.jsonl" in page.inner_text("main")
    with page.expect_download() as download:
        page.get_by_role("button", name="download labels").click()
    download.value.save_as(name)


def test_from_scores_to_a_mean_that_people_would_give(show, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loop_judge.py").write_text(JUDGE)
    rows = [
        {"id": f"q{i}", "user_input": f"What is fact {i}?", "retrieved_contexts": [f"Fact {i} is red."],
         "response": f"Fact {i} is {'red' if i % 3 else 'blue'}."} for i in range(80)
    ]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said("score", "rows.jsonl", "--metric", "faithfulness", "--llm", "loop_judge:loop_judge", "--out", "a.jsonl")
    said("label", "a.jsonl", "-n", 30, "--out", "label.html")
    labelled(show((tmp_path / "label.html").read_text()), "labels.jsonl")
    printed = said("correct", "a.jsonl", "--labels", "labels.jsonl", "--page", "report.html")
    low, high = map(float, re.search(r"([\d.]+) \u2013 ([\d.]+)", printed).groups())
    assert low <= 53 / 80 <= high
    assert f"{Report.load('a.jsonl')['faithfulness'].mean:.3f}" in printed
    text = show((tmp_path / "report.html").read_text()).inner_text("body")
    assert text.index("labels alone") < text.index("Scores")
