"""Slots, rates and the back-off, on a clock that jumps: exact, and no second passes."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.limits.limiter import ConcurrencyLimiter, RateLimiter

from .clock import now, run_on_a_clock


class TestRateLimiter:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 5000), st.lists(st.floats(0, 90), max_size=200))
    def test_no_sixty_seconds_see_more_than_the_rate(self, per_minute, idle):
        """Calls that come in bursts after idle times, each as soon as it may."""
        bucket = RateLimiter(per_minute)
        at, taken = 0.0, []
        for pause in idle:
            at += pause
            for _ in range(5):
                at += bucket.wait(1, at)
                bucket.take(1, at)
                taken.append(at)
        for i, start in enumerate(taken):
            assert sum(1 for each in taken[i:] if each < start + 60 - 1e-6) <= per_minute


def test_a_slot_given_to_a_call_that_is_called_off_at_that_moment_goes_to_the_next():
    async def main():
        limiter = ConcurrencyLimiter(1)
        await limiter.enter(0)
        called_off, waiting = (asyncio.ensure_future(limiter.enter(0)) for _ in range(2))
        await asyncio.sleep(0)
        limiter.leave()  # its turn has come...
        called_off.cancel()  # ...and it goes
        await asyncio.wait_for(waiting, 1)
        assert called_off.cancelled()
        return limiter.in_flight

    assert run_on_a_clock(main()) == 1


class TestBackOff:
    def test_calls_are_halved_once_for_all_that_were_in_flight_together(self):
        async def main():
            limiter = ConcurrencyLimiter(16)
            generations = [await limiter.enter(0) for _ in range(16)]
            for generation in generations:
                limiter.refused(generation, 0.0)
            first = limiter.limit
            for _ in generations:
                limiter.leave()
            generations = [await limiter.enter(0) for _ in range(8)]
            limiter.refused(generations[0], 0.0)
            return first, limiter.limit

        assert run_on_a_clock(main()) == (8, 4)

    def test_without_a_time_it_waits_longer_and_longer_up_to_a_minute(self):
        async def main():
            limiter, waits = ConcurrencyLimiter(1), []
            for _ in range(9):
                generation = await limiter.enter(0)
                limiter.refused(generation, 0.0)
                limiter.leave()
                start = now()
                await limiter.enter(0)
                waits.append(now() - start)
                limiter.leave()
            return waits

        waits = run_on_a_clock(main())
        for wait, most in zip(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60], strict=True):
            assert 0.75 * most <= wait <= most
