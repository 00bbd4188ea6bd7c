"""`ragstone metrics`, and how `--help` groups the commands."""

import json

from ragstone.metrics.names import metric_names

from ..support.command import said  # noqa: TID252


def test_each_metric_says_what_it_asks_and_needs():
    listed = {each["metric"]: each for each in json.loads(said("metrics", "--json"))}
    assert sorted(listed) == sorted(metric_names())
    assert all(each["question"].endswith("?") and each["needs"] for each in listed.values())
    assert listed["faithfulness"]["groups"] == ["rag"]
    assert listed["context_precision"]["calls"] == {"together": 1, "one_by_one": 3}  # of three contexts
    text = said("metrics")
    assert "faithfulness: Does the answer rest on the contexts?" in text
    assert max(map(len, text.splitlines())) <= 80


def test_commands_stand_by_what_they_are_for():
    text = said("--help")
    places = [
        text.index(words) for words in ("Score:", "score ", "Labels:", "label ", "Live:", "live ", "Set-up:", "pull ")
    ]
    assert places == sorted(places)
    assert "More:" not in text
