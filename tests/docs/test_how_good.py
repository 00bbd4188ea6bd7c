"""The tutorial "How good is my app, really?", followed step by step, with labels by a script that reads the texts."""

import json
import re
import shlex
from pathlib import Path

import pytest

from ..labels.population import label_of, made, write  # noqa: TID252
from ..report.reports import data_of  # noqa: TID252
from ..support.command import command  # noqa: TID252
from .test_pages import ROOT

NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
PAGE = ROOT / "docs" / "tutorials" / "how-good.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the checkout: docs/")


def ragstone(line):
    done = command(*shlex.split(line.removeprefix("ragstone ").replace(" --open", "")))
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
    draw, correct, page = re.findall(r"^ragstone .*$", text, re.MULTILINE)
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


@pytest.mark.parametrize("words", [{}, {1.0: "yes", 0.0: "no"}])
def test_how_far_two_people_agree(words, tmp_path, monkeypatch, capsys):
    """Both say yes of 20, no of 10; Ann alone says yes of 6, and Bob of 4; Bob skips one that Ann labels."""
    monkeypatch.chdir(tmp_path)
    report, _ = made(41)
    for name, answers in (("ann", [1.0] * 26 + [0.0] * 15), ("bob", [1.0] * 20 + [0.0] * 16 + [1.0] * 4)):
        labels = [
            label_of(
                report,
                f"q{i}",
                words.get(said, said),
                **({"kind": "claim", "item": "1", "text": "So."} if words else {}),
            )
            for i, said in enumerate(answers)
        ]
        skipped = [label_of(report, "q40", None, skipped=True)] if name == "bob" else []
        write(Path(f"{name}.jsonl"), reversed([*labels, *skipped]))
    page = (ROOT / "docs" / "labels.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(import pandas.*?)```", page, re.DOTALL)
    exec(block, {})
    by_chance = (26 * 24 + 14 * 16) / 40**2
    assert float(capsys.readouterr().out) == pytest.approx((30 / 40 - by_chance) / (1 - by_chance))
