"""Streams that are heard while the app reads them: every piece goes to the app as it comes, in the app's own time.

What takes a stream's place is a plain generator. One that is never read holds nothing but itself and tells nobody.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(slots=True)
class Ear:
    """Hears one stream. None of its functions may raise.

    Attributes:
        ended: Is called with all that was heard when the stream has been read to its end.
        broke: Is called with what the stream raised, `GeneratorExit` where the app left it half-read.
        hear: Returns what to keep of a piece.
        heard: What was kept so far.
    """

    ended: Callable[[list[object]], None]
    broke: Callable[[BaseException], None]
    hear: Callable[[object], object] = lambda piece: piece
    heard: list[object] = field(default_factory=list[object])


def tee(stream: Iterable[_T], ear: Ear) -> Generator[_T, None, None]:
    """Return a stream that is heard while it is read.

    Example:
        >>> ear = Ear(ended=print, broke=repr)
        >>> list(tee(iter(["Jane ", "Austen."]), ear))
        ['Jane ', 'Austen.']
        ['Jane ', 'Austen.']
    """
    try:
        for piece in stream:
            ear.heard.append(ear.hear(piece))
            yield piece
    except GeneratorExit as left:
        ear.broke(left)
        close = getattr(stream, "close", None)
        if callable(close):  # the app closes what it takes for the stream itself
            close()
        raise
    except BaseException as error:
        ear.broke(error)
        raise
    ear.ended(ear.heard)


async def atee(stream: AsyncIterable[_T], ear: Ear) -> AsyncGenerator[_T, None]:
    """Return an async stream that is heard while it is read."""
    try:
        async for piece in stream:
            ear.heard.append(ear.hear(piece))
            yield piece
    except GeneratorExit as left:
        ear.broke(left)
        close = getattr(stream, "aclose", None)
        if callable(close) and inspect.isawaitable(closing := close()):
            await closing
        raise
    except BaseException as error:
        ear.broke(error)
        raise
    ear.ended(ear.heard)
