"""A call that hangs hides nothing: all others are asked, and what is judged comes out when the run is ended."""

import asyncio

import pytest

from ragstone import Criterion, Limits
from ragstone.batch.run import BatchRun
from ragstone.testing import FakeLLM

ROWS = [{"user_input": f"Question {number}.", "response": "Yes."} for number in range(1000)]


def test_all_others_are_judged_and_what_is_judged_comes_out_when_the_run_is_ended():
    async def until_only_one_is_left():
        answered, only_one_is_left = [], asyncio.Event()

        async def hangs(request):
            """Never answers what one metric asks about the row 7."""
            if "Question 7." in request.user and "Is it slow?" in request.user:
                await asyncio.Event().wait()
            answered.append(request)
            if len(answered) == 2 * len(ROWS) - 1:
                asyncio.get_running_loop().call_later(0.1, only_one_is_left.set)
            return {"evidence": [], "verdict": "yes"}

        judge = FakeLLM(hangs)
        metrics = [Criterion("slow", "Is it slow?", llm=judge), Criterion("quick", "Is it quick?", llm=judge)]
        run = BatchRun(ROWS, metrics, limits=Limits(max_concurrency=2))
        task = asyncio.ensure_future(run.all())
        await only_one_is_left.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return run.report()

    report = asyncio.run(until_only_one_is_left())
    records = list(report.results(samples=True))
    assert {record.row for record in records} == set(range(len(ROWS)))
    (seventh,) = [record for record in records if record.row == 7]
    assert (seventh.outcome.metric, seventh.sample.user_input) == ("quick", "Question 7.")
