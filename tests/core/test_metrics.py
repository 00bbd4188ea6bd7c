"""Every metric against its rows of the table in `cases.py`."""

import asyncio
import math
from functools import partial
from itertools import groupby

import numpy as np
import pytest

from ragstone import Criterion, LLMReply, Sample
from ragstone.metrics.names import make_metric, metric_class, metric_names
from ragstone.testing import FakeDecisions, FakeEmbedder, FakeLLM, by_step

from ..support.judges import fenced  # noqa: TID252
from .cases import CASES, FIELDS, ITEMS


def in_words(request, given):
    """The reply to a request of one item: a word, or probabilities with the likeliest one."""
    if isinstance(given, dict) and given.keys() != set(request.choices):
        data = fenced(request)[0]
        given = next(given[text] for text in reversed(data.values()) if text in given)
    if isinstance(given, str):
        return given
    if not isinstance(given, dict):
        first, *others = request.choices
        given = {first: given, **dict.fromkeys(others, (1 - given) / len(others))}
    # A tie is a no.
    return LLMReply(max(reversed(given), key=given.__getitem__), probabilities=given)


def filled_in(form, given):
    """A value of a form: what is written, or a word for each number, the last number first."""
    if isinstance(given, list):
        ((name, listing),) = form["properties"].items()
        fields = listing["items"].get("properties")
        return {name: [dict.fromkeys(fields, each) if fields else each for each in given]}
    reply = {}
    for (name, items), words in zip(form["properties"].items(), given.split("/"), strict=True):
        answers = list(zip(items["properties"].items(), words.split(), strict=True))
        reply[name] = {
            number: {"evidence": [1, 1], "verdict": word} if "properties" in one else word
            for (number, one), word in reversed(answers)
        }
    return reply


def said(given, request):
    if request.choices:
        return in_words(request, given)
    return given if isinstance(given, dict) else filled_in(request.schema, given)


# By metric: the step that lists the items, the kinds of verdicts, and the steps that give them.
STEPS = {
    "faithfulness": ("claims", {"claim": "verdicts"}),
    "context_recall": ("claims", {"claim": "verdicts"}),
    "response_completeness": ("parts", {"part": "answered"}),
    "summarization_score": ("questions", {"question": "answers"}),
    "context_precision": (None, {"context": "useful"}),
}


def together(name, case):
    """What a judge says that is asked together, so that the verdicts of the row come out."""
    words = {kind: [word.strip("-") for word in listed] for kind, listed in case.listed.items()}
    if name == "factual_correctness":
        of = {text: words[f"{text}_claim"] for text in ("response", "reference")}
        claims = {text: ITEMS[: len(of_text)] for text, of_text in of.items()}
        return {"claims": claims, "verdicts": "/".join(" ".join(of_text) for of_text in of.values())}
    if name == "alignment_coverage":
        given = {"claims": ITEMS[: len(words["claim"])], "questions": ITEMS[: len(words["source_answer"])]}
        kinds = {"claim": "verdicts", "source_answer": "source_answers", "summary_answer": "summary_answers"}
    else:
        step, kinds = STEPS[name]
        given = {step: ITEMS[: len(*words.values())]}
    said = {kinds[kind]: " ".join(each) for kind, each in words.items()}
    return given | {step: all_.replace("useful", "yes").replace("useless", "no") for step, all_ in said.items()}


def judges(name, case):
    """Who is asked, and who writes for a decision model."""
    gives = together(name, case) if case.gives is None else case.gives
    steps = {step: partial(said, given) for step, given in gives.items() if step not in ("decide", None)}
    llm = FakeLLM(by_step(**steps), asking="together" if case.way == "together" else "one_by_one",
                  gives_probabilities=case.way == "graded")  # fmt: skip
    if case.way != "decisions":
        return {"llm": llm}
    shares = gives["decide"]
    decisions = FakeDecisions(lambda question, _: next(p for item, p in shares.items() if item in question.instruction))
    return {"llm": decisions, "writer": llm}


def placed(angles):
    """An embedder that places the texts behind the first at these angles to it."""
    radians = np.radians([0.0, *angles])
    rows = np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)
    return FakeEmbedder(vectors=lambda texts: rows)


def made(name, case, asked):
    embedder = None if case.angles is None else placed(case.angles)
    if name == "graded":
        return Criterion(name, "How is it?", **asked, **case.options)
    return make_metric(name, dict(case.options), asked["llm"], embedder, writer=asked.get("writer"))


def listed(verdicts):
    """The verdicts by kind as the table writes them; those on passages say nothing of the score."""
    by_kind = {}
    for each in verdicts:
        if each.kind != "passage":
            by_kind.setdefault(each.kind, []).append("-" * each.lowers_score + each.verdict)
    return by_kind


def where(evidence, sample):
    text = sample.texts(evidence.field)[evidence.chunk or 0]
    assert text[evidence.start : evidence.end] == evidence.text
    chunk = "" if evidence.chunk is None else f"[{evidence.chunk}]"
    return f"{evidence.field}{chunk}: {evidence.text}"


ROWS = [pytest.param(name, case, id=f"{name}-{i}") for name, cases in CASES.items() for i, case in enumerate(cases)]


@pytest.mark.parametrize(("name", "case"), ROWS)
def test_a_row_of_the_table(name, case):
    asked = judges(name, case)
    metric = made(name, case, asked)
    sample = Sample(**FIELDS | dict(case.sample))
    if name == "context_precision":  # it takes a reference where there is one
        sample = sample.model_copy(update={"reference": None})
    else:
        hidden = {"user_input", "response", "reference"}.difference(metric.judged_by(sample))
        sample = sample.model_copy(update=dict.fromkeys(hidden, "ZEBRA."))
    outcome = metric.score(sample)
    check_requests(case, asked, outcome)
    if case.value is None:
        assert (outcome.reason, case.said in outcome.detail) == ("undefined", True)
        return
    assert (outcome.value, case.said in outcome.reason) == (pytest.approx(case.value, abs=1e-6), True)
    assert asyncio.run(metric.ascore(sample)).value == outcome.value
    check_numbers(case, outcome)
    check_verdicts(case, outcome, sample)
    assert all({each.kind, each.verdict} & metric.costs.keys() for each in outcome.verdicts if each.lowers_score)
    if name != "response_relevancy":  # its cosines are in no verdict
        counted = outcome.breakdown.get("count") if "expected" in outcome.breakdown else outcome.value
        assert type(metric).value_of(outcome.verdicts, sample, vars(metric)) == counted
    else:
        first, *texts = metric.embedder.calls[0]
        assert (first, len(texts), outcome.usage.embed_calls) == (sample.user_input, len(case.angles), 1)


def check_requests(case, asked, outcome):
    requests = [request for judge in asked.values() for request in judge.requests]
    assert (outcome.usage.llm_calls, len(requests)) == (case.calls, case.calls)
    if case.way == "decisions":
        assert len(asked["writer"].requests) == len(case.gives) - 1, "only what is written"
        return
    assert not any("ZEBRA" in request.user for request in requests)
    if case.sees is not None:
        assert sorted(" ".join(fenced(request)[0]) for request in requests) == sorted(case.sees)


def check_numbers(case, outcome):
    known = outcome.breakdown
    assert all(number or math.copysign(1, number) == 1 for number in (outcome.value, *known.values())), "never -0.0"
    if case.breakdown is not None:
        assert known == pytest.approx(dict(case.breakdown), abs=1e-6)
    if "expected" in known:
        assert outcome.value == known["expected" if outcome.version.endswith("+expected") else "count"]


def check_verdicts(case, outcome, sample):
    if case.verdicts is not None:
        assert listed(outcome.verdicts) == case.listed
    if case.evidence is not None:
        assert [where(each, sample) for verdict in outcome.verdicts for each in verdict.evidence] == case.evidence
    if case.probabilities is not None:
        assert [verdict.probability for verdict in outcome.verdicts] == pytest.approx(case.probabilities, abs=1e-6)
    for kind, verdicts in groupby(outcome.verdicts, key=lambda verdict: verdict.kind):
        ids = [verdict.id for verdict in verdicts]
        if kind not in ("citation", "passage") and {"citation"}.isdisjoint(case.listed):
            assert ids == [str(i) for i in range(1, len(ids) + 1)]


def test_every_metric_has_rows_in_every_way():
    asking = {name for name in metric_names() if metric_class(name).needs_llm}
    assert CASES.keys() == {*asking, "graded"}
    for name, cases in CASES.items():
        ways = {case.way for case in cases}
        assert {"together", "decisions"} <= ways
        assert ways & {"one_by_one", "graded"}, name
