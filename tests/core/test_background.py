"""The event loop that runs beside an app."""

import asyncio
import gc
import threading

from ragstone.background import begin, result


def test_the_error_of_a_call_that_is_cancelled_as_it_fails_is_not_printed(caplog):
    begun = threading.Event()

    async def refused():
        try:
            begun.set()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("refused") from None

    async def nothing():
        gc.collect()

    call = begin(refused())
    begun.wait()
    call.cancel()
    del call
    for _ in range(3):
        result(begin(nothing()))
    assert not caplog.records
