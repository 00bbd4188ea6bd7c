"""An event loop whose clock jumps to the next timer instead of waiting for it: minutes pass in no time, exactly."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        really = self._selector.select

        def select(timeout: float | None = None) -> Any:
            events = really(None if timeout is None else 0)
            if not events and timeout:
                self.now += timeout
            return events

        self._selector.select = select

    def time(self) -> float:
        return self.now


def run_on_a_clock(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on such a loop."""
    loop = _JumpingLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def now() -> float:
    return asyncio.get_running_loop().time()
