"""Slots, rates and the back-off, on a clock that jumps: exact, and no second passes."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.limits.lane import GateClosed, Lane
from ragstone.limits.rates import Bucket

from .clock import now, run_on_a_clock


class TestBucket:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 5000), st.lists(st.floats(0, 90), max_size=200))
    def test_no_sixty_seconds_see_more_than_the_rate(self, per_minute, idle):
        """Calls that come in bursts after idle times, each as soon as it may."""
        bucket = Bucket(per_minute)
        at, taken = 0.0, []
        for pause in idle:
            at += pause
            for _ in range(5):
                at += bucket.wait(1, at)
                bucket.take(1, at)
                taken.append(at)
        for i, start in enumerate(taken):
            assert sum(1 for each in taken[i:] if each < start + 60 - 1e-6) <= per_minute


def test_first_come_first_served_and_who_leaves_the_queue_is_passed_over():
    async def main():
        lane, order = Lane(1), []
        await lane.enter(0)

        async def call(name):
            await lane.enter(0)
            order.append(name)
            lane.leave()

        tasks = [asyncio.ensure_future(call(name)) for name in "abcd"]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.sleep(0)
        lane.leave()
        await asyncio.gather(*tasks, return_exceptions=True)
        return order, lane.in_flight

    assert run_on_a_clock(main()) == (["b", "d"], 0)


def test_a_slot_given_to_a_call_that_is_called_off_at_that_moment_goes_to_the_next():
    async def main():
        lane = Lane(1)
        await lane.enter(0)
        called_off, waiting = (asyncio.ensure_future(lane.enter(0)) for _ in range(2))
        await asyncio.sleep(0)
        lane.leave()  # its turn has come...
        called_off.cancel()  # ...and it goes
        await asyncio.wait_for(waiting, 1)
        assert called_off.cancelled()
        return lane.in_flight

    assert run_on_a_clock(main()) == 1


class TestBackOff:
    def test_calls_are_halved_once_for_all_that_were_in_flight_together(self):
        async def main():
            lane = Lane(16)
            generations = [await lane.enter(0) for _ in range(16)]
            for generation in generations:
                lane.refused(generation, 0.0)
            first = lane.limit
            for _ in generations:
                lane.leave()
            generations = [await lane.enter(0) for _ in range(8)]
            lane.refused(generations[0], 0.0)
            return first, lane.limit

        assert run_on_a_clock(main()) == (8, 4)

    def test_never_below_one_and_up_again_by_successes(self):
        async def main():
            lane = Lane(4)
            for _ in range(10):
                lane.refused(await lane.enter(0), 0.0)
                lane.leave()
            limits = [lane.limit]
            for _ in range(40):
                await lane.enter(0)
                lane.succeeded()
                lane.leave()
                limits.append(lane.limit)
            return limits

        limits = run_on_a_clock(main())
        assert limits[:13] == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4]
        assert limits[-1] == 4

    def test_without_a_time_it_waits_longer_and_longer_up_to_a_minute(self):
        async def main():
            lane, waits = Lane(1), []
            for _ in range(9):
                generation = await lane.enter(0)
                lane.refused(generation, None)
                lane.leave()
                start = now()
                await lane.enter(0)
                waits.append(now() - start)
                lane.leave()
            return waits

        waits = run_on_a_clock(main())
        for wait, most in zip(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60], strict=True):
            assert 0.75 * most <= wait <= most


class TestClosing:
    def test_who_waits_is_turned_away_once_nothing_is_in_flight(self):
        async def main():
            lane = Lane(1)
            await lane.enter(0)
            waiting = asyncio.ensure_future(lane.enter(0))
            await asyncio.sleep(0)
            lane.close()
            await asyncio.sleep(0)
            assert not waiting.done()  # the call in flight may be of the same round
            lane.leave()
            with pytest.raises(GateClosed):
                await waiting
            with pytest.raises(GateClosed):
                await lane.enter(0)

        run_on_a_clock(main())
