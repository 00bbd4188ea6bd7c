"""A call that hangs hides nothing: all others are asked, and what is judged comes out, also when the run is ended."""

import asyncio

import pytest

from ragstone import BaseLLM, Criterion, LLMReply, Unscored, aevaluate

from .clock import run_on_a_clock

ROWS = [{"user_input": f"Question {number}.", "response": "Yes."} for number in range(1000)]


class Hangs(BaseLLM):
    """Never answers what one metric asks about the row 7."""

    model = "hangs"

    async def agenerate(self, request, /):
        if "Question 7." in request.user and "Is it slow?" in request.user:
            await asyncio.Event().wait()
        return LLMReply('{"evidence": [], "verdict": "yes"}')


def metrics():
    judge = Hangs()
    return [Criterion("slow", "Is it slow?", llm=judge), Criterion("quick", "Is it quick?", llm=judge)]


def test_all_others_are_judged_and_what_is_judged_comes_out_when_the_run_is_ended():
    seen = []

    async def until_only_one_is_left():
        enough = asyncio.Event()

        def on_result(records):
            seen.append(records)
            if len(seen) == len(ROWS) - 1:
                enough.set()

        options = {"max_concurrency": 2, "call_timeout": None, "on_result": on_result}
        run = asyncio.ensure_future(aevaluate(ROWS, metrics(), **options))
        await enough.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(until_only_one_is_left())
    assert len(seen) == len(ROWS)
    assert {records[0].row for records in seen[:-1]} == set(range(len(ROWS))) - {7}
    assert [(record.row, record.outcome.metric) for record in seen[-1]] == [(7, "quick")]
    assert seen[-1][0].sample.user_input == "Question 7."


def test_a_call_over_a_network_has_two_minutes_and_one_in_this_process_has_all_day():
    report = run_on_a_clock(aevaluate(ROWS[:9], metrics(), max_concurrency=4))
    assert [each.row for each in report.results() if each.outcome.metric == "quick"] == list(range(9))
    (hung,) = (each for each in report.results() if isinstance(each.outcome, Unscored))
    assert (hung.row, hung.outcome.reason) == (7, "timeout")
    assert hung.outcome.detail == "TimeoutError: the judge 'hangs' did not reply within 120 s (call_timeout)"

    class Patient(Hangs):
        in_turn = True

        async def agenerate(self, request, /):
            await asyncio.sleep(3_000)
            return LLMReply('{"evidence": [], "verdict": "yes"}')

    report = run_on_a_clock(aevaluate(ROWS[:2], Criterion("slow", "Is it slow?", llm=Patient())))
    assert [each.outcome.value for each in report.results()] == [1.0, 1.0]


def test_a_line_every_half_minute_names_the_call_that_hangs(capsys):
    run_on_a_clock(aevaluate(ROWS[:9], metrics(), max_concurrency=4, progress="lines", total=9))
    assert capsys.readouterr().err.splitlines() == [
        f"8/9 samples, 18 judge calls, 1 in flight, 0 unscored, 1 call waits for {seconds} s"
        for seconds in (30, 60, 90)
    ]
