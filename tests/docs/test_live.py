"""docs/live.md and docs/operations.md: the first screen runs, each promise has its test, Slack gets an alarm."""

import ast
import json
import re

import pytest

from ragstone.live import Alarm, Alert

from ..support.http_server import HTTPServer  # noqa: TID252
from ..support.judges import served  # noqa: TID252
from ..support.openai_server import OpenAIServer  # noqa: TID252
from .test_pages import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the checkout: docs/")


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def first_screen():
    """The first block and what the page says that it prints."""
    return re.search(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", page("live.md"), re.MULTILINE | re.DOTALL
    ).groups()


def test_the_first_screen_shows_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, printed = first_screen()
    with OpenAIServer(served, models=["gpt-5-mini"]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        exec(code.replace('"local"', '"openai:gpt-5-mini"'), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == printed.splitlines()[:2]
    assert [line.split()[0] for line in lines[:6]] == [line.split()[0] for line in printed.splitlines()[:6]]
    assert all(line.endswith(" 1/1") for line in lines[2:6])


@pytest.mark.model
def test_the_first_screen_as_it_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, printed = first_screen()
    exec(code, {})
    actual, score = capsys.readouterr().out, re.compile(r"\d\.\d{3}")
    assert score.sub("", actual) == score.sub("", printed)
    # The calls of a round are computed together. Which do, by the machine's load, has moved a score by .02.
    assert [*map(float, score.findall(actual))] == pytest.approx([*map(float, score.findall(printed))], abs=0.03)


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_promise_names_tests_that_exist():
    promises = page("live.md").split("\n## What is promised\n")[1].split("\nNot promised:")[0]
    rows = [line for line in promises.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 9
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row.rpartition("| ")[0] + row.rpartition("| ")[2])
        assert named, row
        for file, function in named:
            assert function in functions(ROOT / "tests" / "live" / file), row


def test_an_alarm_goes_to_slack(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = page("operations.md").split("### Alarms to Slack")[1]
    code = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]
    code = code.replace("from ragstone import Monitor\n", "")
    alarm = Alarm(metric="a", below=0.8, at=2.0, samples=90, mean=0.86, recent_samples=9, recent_mean=0.61, lowest=())
    with HTTPServer(lambda _: (200, b"ok")) as slack:
        monkeypatch.setenv("SLACK_WEBHOOK", slack.url)
        names = {"Monitor": lambda *args, **options: options}
        exec(code, names)
        names["monitor"]["on_alarm"](alarm)
    (request,) = slack.requests
    assert json.loads(request.body) == {"text": str(alarm)}
    assert names["monitor"]["alerts"] == Alert("faithfulness", below=0.8)
