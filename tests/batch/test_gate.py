"""The gate: calls in flight, time-outs, pushback, shared replies, judges of one loop. Minutes pass on a jumping clock."""

import asyncio
import gc
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from ragstone import Limits, LLMReply, LLMRequest
from ragstone.judging import EmbedRequest, Meter
from ragstone.limits.gate import RequestGate, within
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import Slow  # noqa: TID252
from .clock import now, run_on_a_clock

ASK = LLMRequest("demo.ask", "Answer.", "Is it?", {"type": "object"})


def asks(count):
    return [replace(ASK, user=f"Is it {i}?") for i in range(count)]


def slow_judge(seconds=1.0, reply="yes", **facts):
    """A judge, and what counts its calls."""
    slow = Slow(seconds, reply)
    judge = FakeLLM(slow)
    vars(judge).update(facts)
    return judge, slow


class TooManyError(Exception):
    status_code = 429

    def __init__(self, retry_after=None):
        super().__init__("slow down")
        if retry_after is not None:
            self.retry_after = retry_after


def ask_all(gate, judge, requests, **settings):
    return asyncio.gather(*(gate.call(each, judge, **settings) for each in requests), return_exceptions=True)


def test_calls_to_the_embedder_are_counted_apart():
    (judge, slow), embedding = slow_judge(), Slow()

    class SlowEmbedder(FakeEmbedder):
        async def aembed(self, texts, /):
            await embedding(texts)
            return self.embed(texts)

    async def main():
        gate = RequestGate(Limits(max_concurrency=2))
        embedder = SlowEmbedder()
        places = [gate.call(EmbedRequest((f"text {i}",)), embedder) for i in range(6)]
        vectors, _ = await asyncio.gather(asyncio.gather(*places), ask_all(gate, judge, asks(6)))
        return vectors, now() - 1000

    vectors, seconds = run_on_a_clock(main())
    assert (slow.most, embedding.most, seconds) == (2, 2, 3.0)
    assert all(isinstance(each, np.ndarray) for each in vectors)


class TestTimeOuts:
    @pytest.mark.parametrize(("in_turn", "seconds"), [(False, 120.0), (True, 1000.0)])
    def test_two_minutes_where_nobody_says_but_for_a_model_in_this_process(self, in_turn, seconds):
        judge, _ = slow_judge(1000, in_turn=in_turn)

        async def main():
            return await ask_all(RequestGate(Limits(max_concurrency=1)), judge, asks(1)), now() - 1000

        (reply,), took = run_on_a_clock(main())
        assert (isinstance(reply, TimeoutError), took) == (not in_turn, seconds)
        assert in_turn or str(reply) == "the judge 'fake' did not reply within 120 s (call_timeout)"

    def test_the_tries_of_a_call_share_its_time_and_the_waiting_between_them_is_not_counted(self):
        judge, slow = slow_judge(50, TooManyError(300))

        async def main():
            return await ask_all(RequestGate(Limits(max_concurrency=1)), judge, asks(1)), now() - 1000

        (reply,), took = run_on_a_clock(main())
        assert (type(reply), len(slow.began), took) == (TimeoutError, 3, 120 + 2 * 300)

    def test_who_waits_for_the_models_own_limit_is_not_timed(self):
        judge, slow = slow_judge(100, max_concurrency=1)

        async def main():
            return await ask_all(RequestGate(Limits()), judge, asks(3)), now() - 1000

        replies, took = run_on_a_clock(main())
        assert ([type(each) for each in replies], slow.most, took) == ([LLMReply] * 3, 1, 300.0)

    def test_a_call_that_does_not_heed_its_cancellation_does_not_hold_up_the_run(self):
        async def deaf(request):
            for _ in range(100):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(10)
            return "late"

        async def main():
            with pytest.raises(TimeoutError):
                await RequestGate(Limits(call_timeout=1)).call(ASK, FakeLLM(deaf))
            return now() - 1000

        assert run_on_a_clock(main()) <= 2.0


class TestPushback:
    def test_the_time_that_it_names_is_kept_to_and_the_call_made_again(self):
        refused = iter([True, True])
        judge, slow = slow_judge(reply=lambda request: TooManyError(5) if next(refused, None) else "yes")

        async def main():
            return await RequestGate(Limits(max_concurrency=1)).call(ASK, judge)

        assert run_on_a_clock(main()).text == "yes"
        assert [began - 1000 for began in slow.began] == [0.0, 6.0, 12.0]

    def test_after_six_tries_it_is_the_calls_failure_and_the_others_are_tried_once(self):
        judge, _ = slow_judge(0.01, TooManyError())

        async def main():
            gate = RequestGate(Limits(max_concurrency=1))
            return await ask_all(gate, judge, asks(10)), gate.llm_calls

        replies, calls = run_on_a_clock(main())
        assert [type(each) for each in replies] == [TooManyError] * 10
        assert calls == 6 + 9


class TestRates:
    def test_tokens_as_the_judge_counts_them(self):
        """Estimated far too low: what the judge says is what holds the later calls back."""
        judge, slow = slow_judge(0.1, LLMReply("yes", input_tokens=900, output_tokens=100))

        async def main():
            await ask_all(RequestGate(Limits(max_concurrency=4, tokens_per_minute=60_000)), judge, asks(124))

        run_on_a_clock(main())
        assert 110 < slow.began[-1] - 1000 < 125  # 124 calls of 1,000 tokens at 1,000 a second


class TestSharing:
    def test_requests_that_are_the_same_share_one_reply_also_while_it_is_on_its_way(self):
        judge, slow = slow_judge(reply=LLMReply("yes", input_tokens=10, output_tokens=5))

        async def main():
            gate, meters = RequestGate(Limits()), [Meter() for _ in range(4)]
            for meter in meters:
                meter.asking((ASK,))
            replies = await asyncio.gather(*(gate.call(ASK, judge, meter=meter) for meter in meters[:3]))
            replies.append(await gate.call(ASK, judge, meter=meters[3]))
            for meter, reply in zip(meters, replies, strict=True):
                meter.answered((reply,))
            return replies, [meter.usage() for meter in meters], gate

        replies, usages, gate = run_on_a_clock(main())
        assert {reply.text for reply in replies} == {"yes"}
        assert (len(slow.began), gate.llm_calls) == (1, 1)
        assert [(usage.llm_calls, usage.input_tokens, usage.output_tokens) for usage in usages] == [
            (1, 10, 5), (0, 0, 0), (0, 0, 0), (0, 0, 0),
        ]  # fmt: skip


def test_a_call_that_fails_as_it_is_cancelled_is_no_traceback_of_asyncio():
    async def run():
        said, refused = [], asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))

        async def call():
            await refused.wait()
            raise ConnectionRefusedError

        task = asyncio.ensure_future(within(60, call(), "late"))
        for _ in range(3):
            await asyncio.sleep(0)
        refused.set()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        gc.collect()
        return said

    assert asyncio.run(run()) == []
