"""A metric of somebody's own, by the steps of CONTRIBUTING.md: one file, and it works wherever ragstone's do."""

import asyncio
import importlib
import sys

import pytest

from ragstone import Metric, Sample
from ragstone.registry import make_metric
from ragstone.testing import FakeDecisions, FakeLLM, assert_score

POLITE = '''
from dataclasses import dataclass

from ragstone import Metric
from ragstone.judging import TEXT, distinct, listing, record
from ragstone.metrics.asking import ask_items
from ragstone.metrics.values import verdicts_of

_LIST = "List the requests that a response makes of its reader."
_ASK = "Decide whether requests are polite."


@dataclass(frozen=True, kw_only=True)
class Polite(Metric):
    """Share of a response's requests that are polite; higher is better."""

    name, version, required_fields = "polite", "1", ("response",)
    prompts = {"requests": _LIST, "polite": _ASK}

    at_most: int = 3

    def _flow(self, sample):
        requests = yield from self.ask_json(
            "requests", {"response": sample.response}, "List the requests.",
            record(requests=listing(TEXT, 1, self.at_most)), lambda value: distinct(value["requests"], "request"))
        answers = yield from ask_items(self, "polite", {"response": sample.response}, requests)
        polite = sum(answer.choice == "yes" for answer in answers)
        return self._score(polite / len(requests), f"{polite} of {len(requests)} are polite.",
                           verdicts=verdicts_of("request", requests, answers, "yes"))
'''
SAMPLE = Sample(response="Please sit. Shut up.")


def reply(request):
    """A judge for either way of asking."""
    if request.task == "polite.requests":
        assert 'Reply with bare JSON: {"requests": [TEXT]}.' in request.user
        return {"requests": ["Please sit.", "Shut up."]}
    if request.choices:
        return "yes" if "<question" in request.user and "Please sit.\n</question" in request.user else "no"
    return {"answers": {"1": "yes", "2": "no"}}


@pytest.fixture
def name(tmp_path, monkeypatch):
    (tmp_path / "manners.py").write_text(POLITE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield "manners:Polite"
    sys.modules.pop("manners", None)


def polite(question, texts):
    """A decision model, which writes none of the requests."""
    assert texts == {"response": SAMPLE.response}
    return float("Please sit.\n</question" in question.instruction)


JUDGES = {
    "together": (FakeLLM(reply), 2),
    "one by one": (FakeLLM(reply, asking="one_by_one"), 3),
    "decisions": (FakeDecisions(polite), 2),
}


@pytest.mark.parametrize("way", JUDGES)
def test_it_is_named_as_the_others_are_and_scores_in_all_three_ways(name, way):
    judge, calls = JUDGES[way]
    writer = FakeLLM(reply) if way == "decisions" else None
    metric = make_metric(name, {"at_most": 2}, judge, writer=writer)
    outcome = metric.score(SAMPLE)
    assert outcome.value == asyncio.run(metric.ascore(SAMPLE)).value == 0.5
    assert [(v.kind, v.verdict, v.lowers_score) for v in outcome.verdicts] == [
        ("request", "yes", False),
        ("request", "no", True),
    ]
    assert outcome.usage.llm_calls == calls


class Length(Metric):
    name, version, required_fields = "length", "1", ("response",)
    higher_is_better, needs_llm = False, False

    def _flow(self, sample):
        return self._score(len(sample.response) / 10, "")


def test_where_lower_is_better_a_threshold_is_the_greatest_value_that_passes():
    scores = [Length(threshold=0.5).score(Sample(response="x" * n)) for n in (4, 5, 6)]
    assert [score.passed for score in scores] == [True, True, False]
    assert assert_score({"response": "xx"}, Length(), at_least=0.5).value == 0.2
    with pytest.raises(AssertionError, match="length is 0.800, at most 0.5 is wanted"):
        assert_score({"response": "x" * 8}, Length(), at_least=0.5)
