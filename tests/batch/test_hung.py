"""A call that hangs hides nothing: all others are asked, and what is judged comes out when the run is ended."""

import asyncio

import pytest

from ragstone import Criterion, aevaluate
from ragstone.testing import FakeLLM

ROWS = [{"user_input": f"Question {number}.", "response": "Yes."} for number in range(1000)]


async def hangs(request):
    """Never answers what one metric asks about the row 7."""
    if "Question 7." in request.user and "Is it slow?" in request.user:
        await asyncio.Event().wait()
    return {"evidence": [], "verdict": "yes"}


def metrics():
    judge = FakeLLM(hangs)
    return [Criterion("slow", "Is it slow?", llm=judge), Criterion("quick", "Is it quick?", llm=judge)]


def test_all_others_are_judged_and_what_is_judged_comes_out_when_the_run_is_ended():
    seen = []

    async def until_only_one_is_left():
        enough = asyncio.Event()

        def on_result(records):
            seen.append(records)
            if len(seen) == len(ROWS) - 1:
                enough.set()

        options = {"max_concurrency": 2, "on_result": on_result}
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
