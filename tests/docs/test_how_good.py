"""The tutorial "How good is my app, really?", followed step by step, with labels by a script that reads the texts."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragstone.cli.main import cli

from ..report.reports import data_of  # noqa: TID252
from .test_pages import ROOT

NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
PAGE = ROOT / "docs" / "tutorials" / "how-good.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the checkout: docs/")


def ragstone(line):
    done = CliRunner().invoke(cli, shlex.split(line.removeprefix("$ ragstone ").replace(" --open", "")))
    assert done.exit_code == 0, done.output
    return done.stdout


def numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


def label():
    """Answer what the page asks of each drawn sample, as a person does who reads it."""
    entries = data_of(Path("label.html").read_text())["samples"]
    with Path("labels.jsonl").open("w") as file:
        for entry in entries:
            texts = {name: text for _, _, name, text in entry["texts"]}
            right = texts["context 1"].split()[-1] == texts["answer"].split()[-1]
            (item,) = entry["items"]
            said = {**item, "answer": "yes" if right else "no", "draw": entry["draw"], "ragstone_label": 1}
            print(json.dumps({**entry["of"], **said}), file=file)


def test_every_step_gives_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(blocks[0], names)
    judge = re.search(r"(\d\.\d+)  ", capsys.readouterr().out)[1]
    assert f"By this judge, {100 * float(judge):.0f} % of the answers are right." in text
    draw, correct, page = re.findall(r"^\$ ragstone .*$", text, re.MULTILINE)
    ragstone(draw)
    label()
    table = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
    printed = ragstone(correct)
    assert NUMBER.sub("", printed).split() == NUMBER.sub("", table).split()
    assert numbers(printed) == pytest.approx(numbers(table), abs=0.02, rel=0.1)  # a better estimator may move the last
    exec(blocks[1], names)
    low, high = names["corrections"]["grounded"].corrected.low, names["corrections"]["grounded"].corrected.high
    right = [each.retrieved_contexts[0].split()[-1] == each.response.split()[-1] for each in names["samples"]]
    truth = sum(right) / len(right)
    assert f"In this example {100 * truth:.0f} % of the answers are right" in text
    assert low < truth < high < float(judge)
    ragstone(page)
    assert "labels alone" in Path("report.html").read_text()
