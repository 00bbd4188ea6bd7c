"""Limits of a run, and what it cost."""

import re
from dataclasses import dataclass

import pytest

from ragstone import ContextRelevancy, Faithfulness, Limits, Metric, Score, evaluate
from ragstone.batch.estimation import synthetic_reply
from ragstone.judge import LLMReply
from ragstone.report import Report
from ragstone.testing import FakeLLM

ROWS = [{"question": f"Q{i}?", "contexts": [f"C{i}. D."], "answer": f"A{i}. B."} for i in range(10)]


def counted():
    return FakeLLM(LLMReply('{"ids": [1]}', 100, 50))


@dataclass(frozen=True, kw_only=True)
class Length(Metric):
    name = "length"
    version = "1"
    required_fields = ("response",)
    needs_llm = False

    def _flow(self, sample):
        yield from ()
        return self._score(1.0, reason="so it is", verdicts=())


def reasons(report):
    return ["scored" if isinstance(each.outcome, Score) else each.outcome.reason for each in report.results()]


@pytest.mark.parametrize("limit", [{"max_calls": 4}, {"max_tokens": 4 * 160}, {"max_cost": 4.4 * 2e-4}])
def test_what_has_no_room_is_over_budget_and_costs_nothing(limit):
    llm = counted()
    report = evaluate(ROWS, ContextRelevancy(llm=llm), price=(1.0, 2.0), limits=Limits(max_concurrency=1, **limit))
    scored = reasons(report).count("scored")
    assert sorted(set(reasons(report))) == ["over_budget", "scored"]
    assert len(llm.requests) == scored == 4
    first = next(each.outcome for each in report.results() if not isinstance(each.outcome, Score))
    assert first.detail.startswith(f"{next(iter(limit))}: the budget has no room")
    assert first.usage.llm_calls == 0


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("size", [30, 100, 1_000])
@pytest.mark.parametrize("limit", [{"max_tokens": 3_000}, {"max_cost": 3e-3}])
def test_a_cap_of_tokens_holds_whatever_the_server_counts(size, one_by_one, limit):
    """The estimate is about 30: what calls really take is learnt from the first one, which goes alone."""

    def reply(request):
        return LLMReply("yes" if request.choices else synthetic_reply(request).text, size - 5, 5)

    llm = FakeLLM(reply, asking="one_by_one" if one_by_one else "together")
    rows = [{"contexts": ["C."], "answer": f"A{i}. B{i}. D{i}."} for i in range(150)]
    report = evaluate(rows, Faithfulness(llm=llm), progress=False, price=(1.0, 1.0), limits=Limits(**limit))
    assert len(llm.requests) * size <= 3_000
    assert report.spent.llm_calls == report.usage.llm_calls == len(llm.requests)
    assert {"over_budget"} <= set(reasons(report)) <= {"scored", "over_budget"}


def test_a_judge_that_fails_is_not_asked_one_call_at_a_time_for_ever():
    llm = FakeLLM(ConnectionError("down"))
    report = evaluate(ROWS, ContextRelevancy(llm=llm), limits=Limits(max_tokens=10_000), progress=False)
    assert (set(reasons(report)), len(llm.requests)) == ({"judge_error"}, 10)


def test_a_reply_that_is_shared_counts_as_no_call():
    llm = counted()
    report = evaluate(ROWS[:1] * 8, ContextRelevancy(llm=llm), limits=Limits(max_concurrency=1, max_calls=2))
    assert (reasons(report).count("scored"), len(llm.requests)) == (8, 1)


@pytest.mark.parametrize("calls_at_once", [1, 16, 64])
@pytest.mark.parametrize("fails", ["503", "429", "no reply", "bad replies", "for good"])
def test_no_try_goes_beyond_the_calls_that_are_allowed(calls_at_once, fails):
    class RefusedError(Exception):
        status_code, retry_after = (429 if fails == "429" else 503), 0.001

    errors = {"no reply": ConnectionError("cut"), "bad replies": "no JSON", "for good": RefusedError()}

    def answer(request):
        if fails == "for good" or len(llm.requests) % 3 == 0:
            return errors.get(fails, RefusedError())
        return synthetic_reply(request)

    llm, rows = FakeLLM(answer), [{"contexts": [f"C{i}. D."], "answer": f"A{i}. B."} for i in range(100)]
    limits = Limits(max_calls=47, max_concurrency=calls_at_once)
    report = evaluate(rows, Faithfulness(llm=llm, asking="together"), limits=limits, progress=False)
    assert len(llm.requests) == report.spent.llm_calls <= 47
    assert "over_budget" in reasons(report) or fails == "no reply"


def test_what_a_run_spent_and_what_its_results_are_worth(tmp_path):
    options = {"journal": tmp_path / "j.db", "price": (1.0, 2.0), "limits": Limits(max_concurrency=1)}
    evaluate(ROWS[:4], ContextRelevancy(llm=counted()), **options)
    llm = counted()
    report = evaluate(ROWS, ContextRelevancy(llm=llm), **options)
    assert (report.usage.llm_calls, report.spent.llm_calls, len(llm.requests)) == (10, 6, 6)
    said = "Spent in this run: 6 judge calls, 900 tokens, cost 0.0012; 10 samples, 4 of an earlier run."
    assert said in str(report)
    assert said in report.html()
    again = evaluate(ROWS, ContextRelevancy(llm=counted()), **options)
    assert (again.usage.llm_calls, again.spent.llm_calls, again.spent.input_tokens) == (10, 0, 0)
    assert "Spent in this run: 0 judge calls, 0 tokens, cost 0.0000; 10 samples, 10 of an earlier run." in str(again)
    again.to_json(path := tmp_path / "results.jsonl")
    loaded = Report.load(path)
    assert (loaded.usage.llm_calls, loaded.spent) == (10, None)


def test_no_evaluation_is_begun_that_cannot_be_ended():
    llm = FakeLLM(synthetic_reply)
    report = evaluate(
        ROWS, Faithfulness(llm=llm, asking="together"), limits=Limits(max_calls=5)
    )  # two rounds of one call
    assert reasons(report).count("scored") == 2
    assert len(llm.requests) == 4


def test_money_needs_a_price():
    with pytest.raises(ValueError, match="max_cost: needs a price"):
        evaluate(ROWS, ContextRelevancy(llm=counted()), limits=Limits(max_cost=1.0))
    for price in ((1.0,), (-1.0, 2.0), (1.0, float("nan"))):
        with pytest.raises(ValueError, match="price: .* is none; pass the price of a million"):
            evaluate(ROWS, ContextRelevancy(llm=counted()), price=price)


def test_a_metric_that_asks_no_judge_costs_nothing():
    report = evaluate(ROWS, Length(), limits=Limits(max_tokens=1, max_calls=1))
    assert set(reasons(report)) == {"scored"}


def test_the_report_says_what_the_judge_cost():
    report = evaluate(ROWS, ContextRelevancy(llm=counted()), price=(1.0, 2.0))
    assert re.search(r" tokens out, cost 0\.0020$", str(report), re.MULTILINE)
    assert "cost" not in str(evaluate(ROWS, ContextRelevancy(llm=counted())))
    silent = FakeLLM(LLMReply('{"ids": [1]}'))
    assert re.search(
        r"cost unknown$", str(evaluate(ROWS, ContextRelevancy(llm=silent), price=(1.0, 2.0))), re.MULTILINE
    )
