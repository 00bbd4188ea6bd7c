"""How threads beside an app compute: one at a time, in small steps, and only as long as somebody waits for the result.

Python runs one thread at a time, and one that computes keeps the others waiting for 5 ms whenever they want to go on.
What takes long calls `step` now and then. Without a pace, as in a batch, that does nothing.
"""

import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from ragstone.errors import CannotScore

_STEP = 0.001  # seconds of computing after which the other threads have a turn
_TURN = 0.000_05  # seconds that a thread needs to wake up and take it
_PIECE, _OVERLAP = 10_000, 2_000  # characters that are looked at between two steps

T = TypeVar("T")
current: ContextVar["Pace | None"] = ContextVar("ragstone_pace", default=None)


class Pace:
    """One thread's pace. As a context manager it is that thread's turn to compute.

    Args:
        computing: Held by the one thread that computes.

    Attributes:
        over: Whether nobody waits for the result any more: the next step ends the computing.
    """

    def __init__(self, computing: threading.Lock) -> None:
        self.over = False
        self._computing = computing
        self._held: list[None] = []
        self._since = 0.0

    def __enter__(self) -> None:
        self._computing.acquire()
        self._held.append(None)
        self._since = time.monotonic()
        if self.over:
            self.__exit__()
            self.step()

    def __exit__(self, *_: object) -> None:
        if self._held:
            try:
                self._held.pop()
            except IndexError:  # `give_up` was faster
                return
            self._computing.release()

    def give_up(self) -> None:
        """End the computing, and let others compute even where it does not end."""
        self.over = True
        self.__exit__()

    def step(self) -> None:
        """Let the app's threads have a turn, where it is time."""
        if self.over:
            raise CannotScore("cancelled", "nobody waits for it any more")
        if time.monotonic() - self._since > _STEP:
            time.sleep(_TURN)
            self._since = time.monotonic()


def step() -> None:
    """Take a step of this thread's pace, if it has one.

    Raises:
        CannotScore: Nobody waits for the result any more.
    """
    if (pace := current.get()) is not None:
        pace.step()


def paced(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, with a step in front of each."""
    for item in items:
        step()
        yield item


def search(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what `pattern.finditer` does, with a step between pieces of a long text.

    A match is at most 2,000 characters long.

    Example:
        >>> [match.span() for match in search(re.compile("b+"), "a" * 9_999 + "bb")]
        [(9999, 10001)]
    """
    begin = 0
    while begin < len(text):
        step()
        end = begin + _PIECE
        for match in pattern.finditer(text, begin, end + _OVERLAP):
            if match.start() >= end:
                break
            yield match
            begin = match.end()
        begin = max(begin, end)


def pieces(text: str) -> Iterator[str]:
    """Yield a text piece by piece, with a step in front of each."""
    for begin in range(0, len(text), _PIECE):
        step()
        yield text[begin : begin + _PIECE]
