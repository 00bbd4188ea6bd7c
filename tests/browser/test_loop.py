"""The whole way, by commands and clicks: score, label in the browser, correct, compare, report."""

import json
import re
import sys

import pytest
from click.testing import CliRunner

from ragstone.cli.main import cli
from ragstone.report import Report

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


def judge():
    return FakeLLM(reply, model="loop")
"""


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with the results of two systems over 80 questions: a has a false answer to each third, b to each fifth."""
    folder = tmp_path_factory.mktemp("loop")
    (folder / "loop_judge.py").write_text(JUDGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        for system, each in (("a", 3), ("b", 5)):
            rows = [
                {"id": f"q{i}", "user_input": f"What is fact {i}?", "retrieved_contexts": [f"Fact {i} is red."],
                 "response": f"Fact {i} is {'red' if i % each else 'blue'}."} for i in range(80)
            ]  # fmt: skip
            (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            run(
                "score",
                "rows.jsonl",
                "--metric",
                "faithfulness",
                "--llm",
                "loop_judge:judge",
                "--out",
                f"{system}.jsonl",
            )
        sys.modules.pop("loop_judge")
    return folder


@pytest.fixture(autouse=True)
def _there(scored, monkeypatch):
    monkeypatch.chdir(scored)


def run(*args):
    done = CliRunner().invoke(cli, list(map(str, args)))
    assert done.exit_code == 0, done.output
    return done.stdout


def labelled(show, folder, name, *, most=1_000):
    """Label at most so many samples of label.html by what stands on the page, and return what names its answers."""
    page = show((folder / "label.html").read_text())
    shown = set()
    for i in range(most):
        if not page.get_by_role("button", name="lock and go on").count():
            break
        if i == 0:
            page.get_by_role("button", name="one score").click()
        answer = page.get_by_role("region", name=re.compile("^answer"))
        shown.add(answer.get_attribute("aria-label"))
        true = answer.inner_text() in page.get_by_role("region", name="context 1").inner_text()
        page.get_by_role("group", name="score").get_by_role("button", name=str(int(true)), exact=True).click()
        page.get_by_role("button", name="lock and go on").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="download labels").click()
    download.value.save_as(folder / name)
    return shown


def intervals(text):
    return [tuple(map(float, ends)) for ends in re.findall(r"interval ([-+]?[\d.]+) \u2013 ([-+]?[\d.]+)\)", text)]


def test_from_scores_to_a_mean_that_people_would_give(show, scored):
    run("label", "a.jsonl", "-n", 30, "--out", "label.html")
    assert labelled(show, scored, "labels.jsonl") == {"answer"}
    said = run("correct", "a.jsonl", "--labels", "labels.jsonl")
    ((low, high),) = intervals(said)
    truth, by_judge = 53 / 80, Report.load("a.jsonl").summary()["faithfulness"].mean
    assert low <= truth <= high
    assert f"{by_judge:.3f}" in said
    run("correct", "a.jsonl", "--labels", "labels.jsonl", "--page", "report.html")
    page = show((scored / "report.html").read_text())
    text = page.inner_text("body")
    assert text.index("labels alone") < text.index("Scores")
    labelled(show, scored, "other.jsonl", most=25)
    assert re.search(
        r"score +25 +1\.000", run("correct", "a.jsonl", "--labels", "labels.jsonl", "--labels", "other.jsonl")
    )
    assert intervals(run("correct", "a.jsonl", "--labels", "other.jsonl")) != [(low, high)]


def test_from_two_systems_to_a_difference_that_people_would_give(show, scored):
    run("label", "a.jsonl", "b.jsonl", "-n", 40, "--out", "label.html")
    assert labelled(show, scored, "pairs.jsonl") == {"answer", "answer 1 of 2", "answer 2 of 2"}
    said = run("correct", "a.jsonl", "b.jsonl", "--labels", "pairs.jsonl")
    (people,) = (line for line in said.splitlines() if "people would say" in line)
    (low, high) = intervals(people)[-1]
    assert low <= 64 / 80 - 53 / 80 <= high, said
