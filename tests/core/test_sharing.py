"""One metric for everyone: nothing of a sample stays in it, and nothing waits for anything else."""

import asyncio
import contextvars
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragstone import (
    ContextRelevancy,
    LLMReply,
    LLMRequest,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
    Usage,
)
from ragstone.judging import Meter
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import AsyncLLM, Slow, SyncLLM, all_metrics, step, truth  # noqa: TID252

SAMPLES = [
    Sample(
        user_input=f"Alpha {i} is so. Beta {i} is so. Which say word{i % 5}?",
        retrieved_contexts=[f"It has word{j} here." for j in range(i % 7 + 1)],
        response=f"Alpha {i} is so [1]." if i % 3 else "I do not know.",
        reference=f"It has word{i % 3} here.",
        id=str(i),
    )
    for i in range(16)
]
SIX = Sample(user_input="Which say word1?", retrieved_contexts=[f"It has word{i} here." for i in range(6)])
TENANT = contextvars.ContextVar("TENANT", default="nobody")
LARGE = Sample(user_input="?", retrieved_contexts=["x" * 7000])  # split in a thread


def plain(outcome):
    """An outcome without what its run took."""
    return outcome.model_copy(update={"usage": Usage()})


def test_metrics_samples_and_outcomes_are_frozen():
    for metric in all_metrics(truth):
        with pytest.raises(dataclasses.FrozenInstanceError):
            metric.llm = None
    outcome = ContextRelevancy(llm=FakeLLM(truth)).score(SIX)
    for thing, name in ((SIX, "response"), (outcome, "value"), (outcome.verdicts[0], "id")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(thing, name, None)


async def interleaving(request):
    """Answers truthfully, after letting every other task go on."""
    for _ in range(len(request.user) % 5 + 1):
        await asyncio.sleep(0)
    return truth(request)


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("index", range(14))
def test_many_threads_and_tasks_share_a_metric_that_holds_nothing_of_a_sample(index, asking):
    metric = all_metrics(truth, asking)[index]
    metric.score(SAMPLES[-1])
    metric.score(SAMPLES[1])
    before = dict(vars(metric))
    alone = [plain(metric.score(sample)) for sample in SAMPLES]
    assert len({repr(outcome) for outcome in alone}) > 1, "the samples differ"
    with ThreadPoolExecutor(8) as pool:
        assert [plain(o) for o in pool.map(metric.score, SAMPLES)] == alone
    assert vars(metric) == before
    shared = dataclasses.replace(metric, llm=FakeLLM(interleaving, asking=asking))

    async def tasks():
        return await asyncio.gather(*(shared.ascore(sample) for sample in SAMPLES))

    assert [plain(o) for o in asyncio.run(tasks())] == alone


def test_however_many_calls_hang_the_next_one_is_made():
    together = threading.Barrier(70, timeout=20)

    async def many():
        llm = SyncLLM(lambda request: f"{together.wait()}")
        return await asyncio.gather(*(llm.agenerate(LLMRequest("demo", "", "", {})) for _ in range(70)))

    assert len(asyncio.run(many())) == 70


def test_an_async_judge_that_blocks_on_another_is_told_instead_of_waiting_for_itself():
    blocks = AsyncLLM(lambda request: AsyncLLM(truth).generate(request))
    with pytest.raises(RuntimeError, match="called the sync method of another: await its async one"):
        ContextRelevancy(llm=blocks).score(SIX)


@pytest.mark.parametrize("way", ["sync", "sync in a loop", "async"])
@pytest.mark.parametrize("half", ["sync half", "async half"])
def test_one_half_is_enough_for_a_round_at_once_and_context_variables_are_seen(half, way):
    """Six requests that wait for each other: only concurrent ones ever end."""
    together, all_here, seen = threading.Barrier(6, timeout=20), asyncio.Event(), []

    def in_threads(request):
        seen.append((TENANT.get(), threading.get_ident()))
        together.wait()
        return truth(request)

    async def on_a_loop(request):
        seen.append((TENANT.get(), asyncio.get_running_loop()))
        if len(seen) == 6:
            all_here.set()
        await asyncio.wait_for(all_here.wait(), 20)
        return truth(request)

    llm = SyncLLM(in_threads) if half == "sync half" else AsyncLLM(on_a_loop)
    metric = ContextRelevancy(llm=llm, asking="one_by_one")

    async def inside():
        return metric.score(SIX) if "sync in" in way else await metric.ascore(SIX)

    def run():
        TENANT.set("somebody")
        return metric.score(SIX) if way == "sync" else asyncio.run(inside())

    outcome = contextvars.copy_context().run(run)
    assert outcome.value == pytest.approx(1 / 6)
    assert [who for who, _ in seen] == ["somebody"] * (6 + 6)
    if half == "async half" and way.startswith("sync"):
        assert len({where for _, where in seen}) == 1, "one loop for one object"
    if half == "sync half" and way == "async":
        assert threading.get_ident() not in {where for _, where in seen}


def test_under_uvloop():
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")
    if not hasattr(asyncio, "Runner"):
        pytest.skip("no asyncio.Runner")

    async def inside():
        metric = ContextRelevancy(llm=SyncLLM(truth))
        return metric.score(SIX), await metric.ascore(SIX)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sync, asynchronous = runner.run(inside())
    assert plain(sync) == plain(asynchronous)


@pytest.mark.parametrize("error", [OSError("reset"), TimeoutError("slow")])
@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_a_providers_error_is_raised_not_scored(asking, error):
    for metric in all_metrics(lambda request: error, asking):
        with pytest.raises(type(error)):
            metric.score(SAMPLES[7])
        with pytest.raises(type(error)):
            asyncio.run(metric.ascore(SAMPLES[7]))


def test_a_failing_request_cancels_its_siblings_and_so_does_cancelling_ascore():
    for failing, error in ((True, OSError), (False, asyncio.CancelledError)):

        async def run(failing=failing):
            all_here = asyncio.Event()

            async def hang(request):
                if failing and len(slow.began) == 3:
                    raise OSError("one failed")
                if len(slow.began) == 6 + 6:
                    all_here.set()
                await asyncio.Event().wait()

            slow = Slow(hang)
            metric = ContextRelevancy(llm=FakeLLM(slow, asking="one_by_one"))
            task = asyncio.ensure_future(metric.ascore(SIX))
            if not failing:
                await all_here.wait()
                task.cancel()
            await asyncio.wait([task], timeout=20)
            assert slow.cancelled == len(slow.began) - failing
            await task

        with pytest.raises(error):
            asyncio.run(run())


@pytest.mark.parametrize("failing", [0, 15])
def test_a_failing_request_keeps_queued_ones_from_starting(failing):
    """Also when it is not the first of its round, and the others hang until it was noticed."""
    started, over = [], threading.Event()

    def reply(request):
        started.append(request)
        if f"Number {failing} here." in request.user.split("<sentence")[-1]:
            return OSError("one failed")
        over.wait(30)
        return "no"

    sample = Sample(user_input="Which?", retrieved_contexts=[f"Number {i} here." for i in range(300)])
    metric = ContextRelevancy(llm=FakeLLM(reply, asking="one_by_one"))
    before = set(threading.enumerate())
    with pytest.raises(OSError, match="one failed"):
        metric.score(sample)
    over.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
    assert len(started) < 100


def test_a_large_sample_is_split_beside_the_loop_with_the_callers_context():
    begun, loop_went_on, seen = threading.Event(), threading.Event(), []

    def waiting(text, language, /):
        seen.append(TENANT.get())
        begun.set()
        assert loop_went_on.wait(20), "the loop stood still"
        return [(text, 0, len(text))]

    metric = ContextRelevancy(llm=FakeLLM({"ids": [1]}), splitter=waiting)

    async def inside():
        TENANT.set("somebody")
        scoring = asyncio.ensure_future(metric.ascore(LARGE))
        await asyncio.to_thread(begun.wait, 20)
        loop_went_on.set()
        return await scoring

    assert asyncio.run(inside()).value == 1.0
    assert seen == ["somebody"]


def test_a_meter_knows_the_cost_when_it_raises_and_agrees_with_the_outcome():
    def reply(request):
        made = '{"items": [{"keyphrase": "k", "question": "q?"}]}'
        return OSError("gone") if step(request) == "answers" else LLMReply(made, 100, 7)

    metric = SummarizationScore(llm=FakeLLM(reply))
    for score in (metric.score, lambda sample, meter: asyncio.run(metric.ascore(sample, meter=meter))):
        meter = Meter()
        with pytest.raises(OSError, match="gone"):
            score(SAMPLES[1], meter=meter)
        usage = meter.usage()
        assert (usage.llm_calls, usage.embed_calls, usage.input_tokens, usage.output_tokens) == (2, 0, 100, 7)
        assert usage.seconds > 0
    meter = Meter()
    outcome = ResponseRelevancy(llm=FakeLLM(truth), embedder=FakeEmbedder()).score(SAMPLES[1], meter=meter)
    assert (meter.usage().llm_calls, meter.usage().embed_calls) == (1, 1)
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls, outcome.usage.input_tokens) == (1, 1, None)
