"""One metric for everyone: nothing of a sample stays in it, and nothing waits for anything else."""

import asyncio
import contextvars
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ragstone import (
    AlignmentCoverage,
    BaseEmbedder,
    BaseLLM,
    ContextRelevancy,
    LLMReply,
    Metric,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
    Usage,
)
from ragstone.asking import Meter
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import (
    metrics,
    obliging,
    step,
    truth,
)

SAMPLES = [
    Sample(
        user_input=f"Alpha {i} is so. Beta {i} is so. Which say word{i % 5}?",
        retrieved_contexts=[f"It has word{j} here." for j in range(i % 7 + 1)],
        response=f"Alpha {i} is so." if i % 3 else "I do not know.",
        id=str(i),
    )
    for i in range(200)
]
SLICE = SAMPLES[:32]


def plain(outcome):
    """An outcome without what its run took."""
    return outcome.model_copy(update={"usage": Usage()})


@pytest.mark.parametrize("metric", metrics(obliging), ids=lambda m: m.name)
def test_a_metric_is_frozen(metric):
    for field in dataclasses.fields(metric):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(metric, field.name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        metric.anything = 1


def test_samples_and_outcomes_are_frozen():
    outcome = ContextRelevancy(llm=FakeLLM(truth)).score(SAMPLES[3])
    for thing, field in (
        (SAMPLES[0], "response"),
        (outcome, "value"),
        (outcome.verdicts[0], "id"),
        (outcome.usage, "seconds"),
    ):
        with pytest.raises(ValueError, match="frozen"):
            setattr(thing, field, None)


@pytest.mark.parametrize("index", range(8))
def test_a_metric_holds_nothing_of_a_sample(index):
    metric = metrics(truth)[index]
    before = {field.name: getattr(metric, field.name) for field in dataclasses.fields(metric)}
    sample = SAMPLES[4].model_copy(deep=True)
    metric.score(sample)
    asyncio.run(metric.ascore(sample))
    assert {field.name: getattr(metric, field.name) for field in dataclasses.fields(metric)} == before
    assert vars(metric) == before
    assert sample == SAMPLES[4]


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("index", range(8))
def test_many_threads_and_tasks_share_a_metric(index, asking):
    metric = metrics(truth, asking)[index]
    alone = [plain(metric.score(sample)) for sample in SLICE]
    assert len({repr(outcome) for outcome in alone}) > 3, "the samples differ"
    with ThreadPoolExecutor(16) as pool:
        assert [plain(o) for o in pool.map(metric.score, SLICE)] == alone

    async def tasks():
        return await asyncio.gather(*(metric.ascore(sample) for sample in SLICE))

    assert [plain(o) for o in asyncio.run(tasks())] == alone


class Interleaving(BaseLLM):
    """Answers truthfully, after letting every other task go on."""

    model = "interleaving"

    async def agenerate(self, request, /):
        for _ in range(hash(request.user) % 5 + 1):
            await asyncio.sleep(0)
        return await FakeLLM(truth).agenerate(request)


@pytest.mark.parametrize("metric", [SummarizationScore, AlignmentCoverage, ContextRelevancy, ResponseRelevancy])
def test_two_hundred_interleaved_tasks(metric):
    extra = {"embedder": FakeEmbedder()} if metric is ResponseRelevancy else {}
    shared = metric(llm=Interleaving(), **extra)
    alone = metric(llm=FakeLLM(truth), **extra)

    async def tasks():
        return await asyncio.gather(*(shared.ascore(sample) for sample in SAMPLES))

    for sample, outcome in zip(SAMPLES, asyncio.run(tasks()), strict=True):
        assert plain(outcome) == plain(alone.score(sample))


def test_score_works_inside_a_running_loop():
    async def inside():
        return [metric.score(SAMPLES[1]) for metric in metrics(truth, "one_by_one")]

    outside = [metric.score(SAMPLES[1]) for metric in metrics(truth, "one_by_one")]
    assert [plain(o) for o in asyncio.run(inside())] == [plain(o) for o in outside]


def test_under_uvloop():
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

    async def inside():
        sync = metrics(truth)[2].score(SAMPLES[1])
        return sync, await metrics(truth)[2].ascore(SAMPLES[1]), await Threaded(truth).agenerate(REQUEST)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) if hasattr(asyncio, "Runner") else pytest.skip() as runner:
        sync, asynchronous, reply = runner.run(inside())
    assert plain(sync) == plain(asynchronous)
    assert isinstance(reply, LLMReply)


REQUEST = next(ContextRelevancy(llm=FakeLLM(truth)).flow(SAMPLES[1]))[0]
TENANT = contextvars.ContextVar("TENANT", default="nobody")


class Threaded(BaseLLM):
    """Has the sync half only; notes who calls, and from where."""

    model = "threaded"

    def __init__(self, reply, *, asking="one_by_one"):
        self.fake, self.asking, self.seen = FakeLLM(reply), asking, []

    def generate(self, request, /):
        self.seen.append((TENANT.get(), threading.get_ident()))
        return self.fake.generate(request)


class Looping(BaseLLM):
    """Has the async half only; notes who calls, and on which loop."""

    model = "looping"

    def __init__(self, reply, *, asking="one_by_one"):
        self.fake, self.asking, self.seen = FakeLLM(reply), asking, []

    async def agenerate(self, request, /):
        self.seen.append((TENANT.get(), asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return await self.fake.agenerate(request)


SIX = Sample(user_input="Which say word1?", retrieved_contexts=[f"It has word{i} here." for i in range(6)])


@pytest.mark.parametrize("half", [Threaded, Looping])
@pytest.mark.parametrize("way", ["sync", "sync in a loop", "async"])
def test_one_half_is_enough_and_context_variables_are_seen(half, way):
    llm = half(truth)
    metric = ContextRelevancy(llm=llm)

    async def inside():
        return metric.score(SIX) if "sync in" in way else await metric.ascore(SIX)

    def run():
        TENANT.set("somebody")
        return metric.score(SIX) if way == "sync" else asyncio.run(inside())

    outcome = contextvars.copy_context().run(run)
    assert outcome.value == pytest.approx(1 / 6)
    assert [who for who, _ in llm.seen] == ["somebody"] * (6 + 6)
    if half is Looping and way.startswith("sync"):
        assert len({where for _, where in llm.seen}) == 1, "one loop for one object"
    if half is Threaded and way == "async":
        assert threading.get_ident() not in {where for _, where in llm.seen}


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_round_goes_out_at_once_from_a_sync_half(way):
    """Six requests that wait for each other: only concurrent ones ever end."""
    together = threading.Barrier(6, timeout=20)

    def reply(request):
        together.wait()
        return truth(request)

    metric = ContextRelevancy(llm=Threaded(reply))
    outcome = metric.score(SIX) if way == "sync" else asyncio.run(metric.ascore(SIX))
    assert outcome.value == pytest.approx(1 / 6)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_round_goes_out_at_once_from_an_async_half(way):
    class Meeting(Looping):
        def __init__(self):
            super().__init__(truth)
            self.waiting, self.all_here = 0, None

        async def agenerate(self, request, /):
            self.all_here = self.all_here or asyncio.Event()
            self.waiting += 1
            if self.waiting == 6:
                self.all_here.set()
            await asyncio.wait_for(self.all_here.wait(), 20)
            return await super().agenerate(request)

    metric = ContextRelevancy(llm=Meeting())
    outcome = metric.score(SIX) if way == "sync" else asyncio.run(metric.ascore(SIX))
    assert outcome.value == pytest.approx(1 / 6)


def test_embedders_have_halves_too():
    class Sync(BaseEmbedder):
        model = "sync"

        def embed(self, texts, /):
            return np.full((len(texts), 2), float(TENANT.get() == "somebody"), dtype=np.float32)

    class Async(BaseEmbedder):
        model = "async"

        async def aembed(self, texts, /):
            return Sync().embed(texts)

    def run():
        TENANT.set("somebody")
        for embedder in (Sync(), Async()):
            metric = ResponseRelevancy(llm=FakeLLM(truth), embedder=embedder)
            yield metric.score(SAMPLES[1])
            yield asyncio.run(metric.ascore(SAMPLES[1]))

    outcomes = contextvars.copy_context().run(lambda: list(run()))
    assert [outcome.value for outcome in outcomes] == [pytest.approx(1.0)] * 4


def test_a_class_with_neither_half_is_refused_when_it_is_made():
    with pytest.raises(TypeError, match="Neither must define generate or agenerate"):

        class Neither(BaseLLM):
            model = "neither"

    with pytest.raises(TypeError, match="Nor must define embed or aembed"):

        class Nor(BaseEmbedder):
            model = "nor"


def test_a_subclass_of_a_whole_class_needs_no_half_of_its_own():
    class More(Threaded):
        pass

    assert More(truth).generate(REQUEST).text


def test_an_error_in_the_async_half_reaches_a_sync_caller():
    metric = ContextRelevancy(llm=Looping(lambda request: OSError("no network")))
    with pytest.raises(OSError, match="no network"):
        metric.score(SIX)


def test_the_background_loop_ends_with_its_owner():
    def use():
        llm = Looping(truth)
        llm.generate(REQUEST)
        return llm.seen[0][1]

    loop = use()
    for _ in range(500):
        if loop.is_closed():
            break
        threading.Event().wait(0.01)
    assert loop.is_closed()


@pytest.mark.parametrize("error", [OSError("reset"), TimeoutError("slow"), StopIteration("scripted replies ran out")])
@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_a_providers_error_is_raised_not_scored(asking, error):
    for metric in metrics(lambda request: error, asking):
        with pytest.raises(type(error)):
            metric.score(SAMPLES[6])


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_a_providers_error_is_raised_from_ascore(asking):
    for metric in metrics(lambda request: OSError("reset"), asking):
        with pytest.raises(OSError, match="reset"):
            asyncio.run(metric.ascore(SAMPLES[6]))


def test_an_embedders_error_is_raised():
    class Broken(BaseEmbedder):
        model = "broken"

        def embed(self, texts, /):
            raise ConnectionError("gone")

    metric = ResponseRelevancy(llm=FakeLLM(truth), embedder=Broken())
    with pytest.raises(ConnectionError, match="gone"):
        metric.score(SAMPLES[1])
    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(metric.ascore(SAMPLES[1]))


def test_a_failing_request_cancels_its_siblings():
    cancelled, started = [], []

    class Failing(BaseLLM):
        model, asking = "failing", "one_by_one"

        async def agenerate(self, request, /):
            started.append(request)
            if len(started) == 3:
                raise OSError("one failed")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(request)
                raise

    metric = ContextRelevancy(llm=Failing())
    with pytest.raises(OSError, match="one failed"):
        asyncio.run(asyncio.wait_for(metric.ascore(SIX), 20))
    assert len(cancelled) == len(started) - 1


HUNDRED = Sample(user_input="Which?", retrieved_contexts=[f"Number {i} here." for i in range(300)])


@pytest.mark.parametrize("failing", [0, 1, 31])
def test_a_failing_request_keeps_queued_ones_from_starting(failing):
    """Also when it is not the first of its round, and the first one hangs."""
    started, done = [], threading.Event()

    def reply(request):
        started.append(request)
        if f"Number {failing} here." in request.user.split("<sentence")[-1]:
            return OSError("one failed")
        done.wait(0.3)  # as a slow provider; long enough for the failure to be noticed
        return "no"

    metric = ContextRelevancy(llm=FakeLLM(reply, asking="one_by_one"))
    with pytest.raises(OSError, match="one failed"):
        metric.score(HUNDRED)
    assert len(started) < 100


def test_cancelling_ascore_cancels_its_calls():
    seen = []

    class Hanging(BaseLLM):
        model, asking = "hanging", "one_by_one"

        async def agenerate(self, request, /):
            seen.append("started")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("ended")

    async def timed():
        await asyncio.wait_for(ContextRelevancy(llm=Hanging()).ascore(SIX), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(timed())
    assert seen.count("started") == seen.count("ended") == 6 + 6


def test_cancelling_while_a_large_sample_is_split_says_cancelled():
    splitting, go_on = threading.Event(), threading.Event()

    def slow(text, language, /):
        splitting.set()
        go_on.wait(20)
        return [(text, 0, len(text))]

    metric = ContextRelevancy(llm=FakeLLM(truth), splitter=slow)

    async def cancel():
        task = asyncio.ensure_future(metric.ascore(Sample(user_input="?", retrieved_contexts=["x" * 5000])))
        await asyncio.to_thread(splitting.wait, 20)
        task.cancel()
        try:
            await task
        finally:
            go_on.set()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert not metric.llm.requests


def test_a_large_sample_does_not_hold_up_the_loop():
    """The ticker runs on while 300,000 characters are split: in place it would tick not once."""
    text = "Dr. Who (the 2nd) left at 5 p.m. in the U.S. for good, e.g. to e.t.c. He did not! \n" * 3600
    metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": []}))
    ticks = 0

    async def inside():
        nonlocal ticks
        scoring = asyncio.ensure_future(metric.ascore(Sample(user_input="?", retrieved_contexts=[text])))
        while not scoring.done():
            await asyncio.sleep(0.001)
            ticks += 1
        return await scoring

    assert asyncio.run(inside()).value == 0.0
    assert ticks > 10


def test_a_slow_splitter_of_a_large_sample_leaves_the_loop_alone():
    loop_went_on = threading.Event()

    def waiting(text, language, /):
        assert loop_went_on.wait(20), "the loop stood still"
        return [(text, 0, len(text))]

    metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}), splitter=waiting)

    async def inside():
        scoring = asyncio.ensure_future(metric.ascore(Sample(user_input="?", retrieved_contexts=["x" * 3000])))
        await asyncio.sleep(0.01)
        loop_went_on.set()
        return await scoring

    assert asyncio.run(inside()).value == 1.0


def test_context_variables_are_seen_by_the_splitter_of_a_large_sample():
    seen = []

    def noting(text, language, /):
        seen.append(TENANT.get())
        return [(text, 0, len(text))]

    metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": []}), splitter=noting)

    async def inside():
        TENANT.set("somebody")
        await metric.ascore(Sample(user_input="?", retrieved_contexts=["x" * 3000]))

    asyncio.run(inside())
    assert seen == ["somebody"]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_meter_knows_the_cost_when_it_raises(way):
    def reply(request):
        return OSError("gone") if step(request) == "answers" else LLMReply(*said(request))

    def said(request):
        return '{"items": [{"keyphrase": "k", "question": "q?"}]}', 100, 7

    metric, meter = SummarizationScore(llm=FakeLLM(reply)), Meter()

    def score():
        if way == "sync":
            return metric.score(SAMPLES[1], meter=meter)
        return asyncio.run(metric.ascore(SAMPLES[1], meter=meter))

    with pytest.raises(OSError, match="gone"):
        score()
    usage = meter.usage()
    assert (usage.llm_calls, usage.embed_calls, usage.input_tokens, usage.output_tokens) == (2, 0, 100, 7)
    assert usage.seconds > 0


def test_a_meter_that_is_handed_in_agrees_with_the_outcome():
    meter = Meter()
    outcome = ResponseRelevancy(llm=FakeLLM(truth), embedder=FakeEmbedder()).score(SAMPLES[1], meter=meter)
    usage = meter.usage()
    assert (usage.llm_calls, usage.embed_calls) == (outcome.usage.llm_calls, outcome.usage.embed_calls) == (1, 1)
    assert (usage.input_tokens, usage.output_tokens) == (None, None), "the fake does not say"


def test_an_adapter_that_returns_no_reply_is_named():
    class Wrong(BaseLLM):
        model = "wrong"

        def generate(self, request, /):
            return "yes"

    metric = ContextRelevancy(llm=Wrong())
    for score in (metric.score, lambda sample: asyncio.run(metric.ascore(sample))):
        with pytest.raises(TypeError, match="Wrong: .*LLMReply, not str"):
            score(SIX)


def test_a_metric_that_embeds_without_an_embedder_is_told():
    from ragstone.asking import embed

    class Forgot(Metric):
        name, version, required_fields = "forgot", "1", ("response",)

        def _flow(self, sample):
            yield from embed([sample.response])

    metric = Forgot(llm=FakeLLM(truth))
    for score in (metric.score, lambda sample: asyncio.run(metric.ascore(sample))):
        with pytest.raises(TypeError, match="name an embedder"):
            score(SAMPLES[1])


def test_a_metric_of_ones_own_gets_everything():
    class Politeness(Metric):
        name, version, required_fields = "politeness", "7", ("response",)

        def _flow(self, sample):
            request = self.choice("polite", "Is it?", {"response": sample.response}, "yes or no", ("yes", "no"))
            answer = yield from self.ask_choice(request)
            return self._score(float(answer.choice == "yes"), f"The judge said {answer.choice}.")

    said = iter(["well, yes", "yes"])
    metric = Politeness(llm=FakeLLM(lambda request: next(said)), threshold=0.5)
    outcome = metric.score(SAMPLES[1])
    assert (outcome.metric, outcome.version, outcome.value, outcome.passed) == ("politeness", "7", 1.0, True)
    assert outcome.usage.llm_calls == 2
    assert metric.score(Sample()).reason == "missing_input"


def test_usage_adds_up():
    whole = Usage(llm_calls=1, embed_calls=2, input_tokens=3, output_tokens=4, seconds=1.5) + Usage(
        llm_calls=10, embed_calls=20, input_tokens=None, output_tokens=40, seconds=0.5
    )
    assert whole == Usage(llm_calls=11, embed_calls=22, input_tokens=None, output_tokens=44, seconds=2.0)
