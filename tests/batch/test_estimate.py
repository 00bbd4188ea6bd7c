"""What a batch would cost: the first round to the token, the rest near what a plausible judge makes of it."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMRequest,
    Metric,
    ResponseCompleteness,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.batch.estimation import estimate
from ragstone.judging import ask, tokens
from ragstone.judging.reply import record, whole
from ragstone.sources import rows_of
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone.text import split_sentences

from ..support.command import command  # noqa: TID252

EXAMPLES = str(Path(__file__).parents[2] / "examples" / "samples.jsonl")


def plausible(request):
    """What a capable judge writes: a claim or question for each sentence, one answer per item."""
    step = request.task.split(".")[1]
    data = request.user
    if request.choices:
        return request.choices[-1]
    if step == "claims":
        return {"claims": [text for text, _, _ in split_sentences(between(data, "summary"), "en")]}
    if step == "parts":
        return {"parts": [text for text, _, _ in split_sentences(between(data, "question"), "en")]}
    if request.task == "summarization_score.questions":
        found = [text for text, _, _ in split_sentences(between(data, "text"), "en")][:10]
        return {"items": [{"keyphrase": text[:12], "question": f"Is it so that {text[:50]}?"} for text in found]}
    if step == "questions":
        n = request.schema["properties"]["questions"]["minItems"]
        flagged = "noncommittal" in json.dumps(request.schema)
        asked = [f"What is part {i} of the answer that was given here about?" for i in range(n)]
        return {"questions": [{"question": q, "noncommittal": False} if flagged else q for q in asked]}
    if step == "sentences":
        return {"ids": [request.schema["properties"]["ids"]["items"]["minimum"]]}
    if step == "verdicts":
        ids = request.schema["properties"]["verdicts"]["properties"]
        return {"verdicts": {i: {"evidence": [1], "verdict": "supported"} for i in ids}}
    return {"answers": dict.fromkeys(request.schema["properties"]["answers"]["properties"], "yes")}


def between(prompt, name):
    return re.search(rf"<{name} (\w+)>\n(.*)\n</{name} \1>", prompt, re.DOTALL)[2]


def all_five(llm):
    return [
        SummarizationScore(llm=llm),
        AlignmentCoverage(llm=llm, source="retrieved_contexts"),
        ResponseRelevancy(llm=llm, embedder=FakeEmbedder()),
        ContextRelevancy(llm=llm),
        ResponseCompleteness(llm=llm),
    ]


def samples():
    return [row.sample for row in rows_of(EXAMPLES)]


def size(requests):
    return sum(tokens(request.system, request.user) for request in requests)


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("place", range(5))
def test_the_first_round_is_exact_and_the_whole_within_a_factor_of_two(asking, place):
    judge = FakeLLM(plausible, asking=asking)
    metric = all_five(judge)[place]
    expected = estimate(EXAMPLES, metric)
    assert judge.requests == []  # nobody was asked

    first, calls, written = [], 0, 0
    for sample in samples():
        flow = metric.flow(sample)
        first += [request for request in next(flow) if isinstance(request, LLMRequest)]
        flow.close()
        calls += metric.score(sample).usage.llm_calls
    written = sum(tokens(FakeLLM(plausible).generate(request).text) for request in judge.requests)

    (found,) = expected.metrics
    assert (found.first_calls, found.first_input_tokens) == (len(first), size(first))
    assert judge.requests, "the run asked"
    assert calls == len(judge.requests)
    rounds = {"alignment_coverage": 2, "response_completeness": 2}
    if not metric.asks_one_by_one:
        rounds["summarization_score"] = 2
    assert found.rounds == rounds.get(metric.name, 1)
    for supposed, real in (
        (found.calls, calls),
        (found.input_tokens, size(judge.requests)),
        (found.output_tokens, written),
    ):
        assert real / 2 <= supposed <= real * 2
    assert found.embed_calls == (3 if metric.name == "response_relevancy" else 0)


def test_many_rows_add_up():
    metrics = all_five(FakeLLM(plausible))
    one, two = estimate(samples(), metrics), estimate(samples() * 2, metrics)
    assert two.samples == 6
    assert (two.calls, two.input_tokens, two.output_tokens) == (
        2 * one.calls,
        2 * one.input_tokens,
        2 * one.output_tokens,
    )
    assert two.rounds == one.rounds == 2


def test_what_would_not_be_asked_is_counted_by_reason():
    llm = FakeLLM(plausible)
    rows = [
        {"question": "Why?", "contexts": ["So it is."], "answer": "So."},
        {"question": "Why?", "answer": "So."},
        {"question": "Why?", "contexts": [" "], "answer": "So."},
        {"question": "Why?", "contexts": ["word " * 4000], "answer": "So."},
        "no sample",
    ]
    found = estimate(rows, ContextRelevancy(llm=llm, max_input_tokens=1000))
    (metric,) = found.metrics
    assert (found.samples, found.bad_rows, metric.evaluations, metric.calls) == (4, 1, 4, 1)
    assert metric.unscored == {"missing_input": 1, "empty_input": 1, "over_budget": 1}
    assert "unscored by context_relevancy, without a call: 1 over_budget" in str(found)
    assert "1 row held no sample" in str(found)


def test_money():
    metrics = all_five(FakeLLM(plausible))
    found = estimate(samples(), metrics, price=(2.0, 8.0))
    assert found.cost == pytest.approx((found.input_tokens * 2 + found.output_tokens * 8) / 1e6)
    assert sum(each.cost for each in found.metrics) == pytest.approx(found.cost)
    assert str(found).splitlines()[0].endswith("cost")
    free = estimate(samples(), metrics)
    assert free.cost is None
    assert "cost" not in str(free)
    assert estimate(samples(), metrics, price=(0.0, 0.0)).cost == 0.0


@dataclass(frozen=True, kw_only=True)
class Own(Metric):
    """A user's metric; `kind` says what it does behind its first round."""

    name: ClassVar[str] = "own"
    version: ClassVar[str] = "1"
    required_fields: ClassVar = ("response",)
    prompts: ClassVar = {"mark": "Mark it."}
    kind: str = ""

    def _flow(self, sample):
        if self.kind == "raises at once":
            raise RuntimeError("mine")
        request = self.request("mark", {"response": sample.response}, "Mark.", record(mark=whole(3, 5)))
        reply = yield from ask(request, lambda reply: json.loads(reply.text))
        while self.kind == "for ever":
            yield (request,)
        return self._score(reply["mark"] / 5, "Marked.")


def test_a_metric_that_never_ends_is_followed_as_far_as_it_goes():
    (found,) = estimate([Sample(response="Good. Bad.")], Own(llm=FakeLLM(plausible), kind="for ever")).metrics
    assert (found.calls, found.first_round_only, found.unscored) == (1, 1, {})


def test_a_metric_that_raises_before_it_asks_is_unscored():
    found = estimate([Sample(response="Good.")], Own(llm=FakeLLM(plausible), kind="raises at once"))
    assert found.metrics[0].unscored == Counter(judge_error=1)
    assert found.calls == 0


@pytest.mark.parametrize("judge", [["--llm", "openai:gpt-5-mini"]])
def test_dry_run_needs_no_judge(judge, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    result = command("score", EXAMPLES, "--dry-run", "--price", "0.25", "2", *judge)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split()[-1] == "cost"
    assert "together" in result.output
