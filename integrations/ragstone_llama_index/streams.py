"""The text of a streamed response: read to its end once, however many ask, and left readable for the user."""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field
from types import AsyncGeneratorType
from typing import cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

_KEPT = "_ragstone_read"  # the attribute by which a response remembers how it was read
_READ_BEFORE = "its stream was read before, and the response kept no text; evaluated first, it stays readable"


@dataclass(frozen=True, slots=True)
class Said:
    """A response's text, or None and what is known of why."""

    text: str | None
    problem: str | None = None


@dataclass(slots=True)
class _Once:
    lock: threading.Lock = field(default_factory=threading.Lock)
    said: Said | None = None
    task: "asyncio.Task[Said] | None" = None


def known(response: StreamingResponse | AsyncStreamingResponse) -> Said | None:
    """Return what is known of a stream's text without reading it; None: it has yet to be read."""
    once = _once(response)
    if once.said is None and response.response_txt is not None:
        stream = cast("object", response.response_gen)
        if isinstance(stream, AsyncGeneratorType) and stream.ag_frame is not None:
            return Said(None, "its stream is being read by others, or was left half-read")
        return Said(response.response_txt)
    return once.said


def read_stream(response: StreamingResponse) -> Said:
    """Read a stream to its end, blocking.

    Example:
        >>> response = StreamingResponse(iter(["Jane ", "Austen."]))
        >>> read_stream(response).text, list(response.response_gen), str(response)
        ('Jane Austen.', ['Jane ', 'Austen.'], 'Jane Austen.')
    """
    once = _once(response)
    with once.lock:
        said = known(response) or _read(response)
        once.said = said
        return said


async def aread_stream(response: AsyncStreamingResponse) -> Said:
    """Read an async stream to its end on the running loop; it is read on even if the first who asked gives up.

    Raises:
        ValueError: Another event loop is reading it.
    """
    if (said := known(response)) is not None:
        return said
    once = _once(response)
    if once.task is None:  # nothing is awaited from here on: no other can come between
        once.task = asyncio.get_running_loop().create_task(_aread(response, once))
    if once.task.get_loop() is not asyncio.get_running_loop():
        raise ValueError("response: its stream is being read on another event loop")
    return await asyncio.shield(once.task)


def _once(response: StreamingResponse | AsyncStreamingResponse) -> _Once:
    return cast("_Once", vars(response).setdefault(_KEPT, _Once()))  # one step: no two of them, in no two threads


def _read(response: StreamingResponse) -> Said:
    stream = response.response_gen
    if isinstance(cast("object", stream), Generator) and inspect.getgeneratorstate(stream) != inspect.GEN_CREATED:
        return Said(None, _READ_BEFORE)
    pieces: list[str] = []
    error: Exception | None = None
    try:
        pieces.extend(stream)
    except Exception as broken:
        error = broken
    response.response_gen = _again(pieces, error)
    if error is not None:
        return _broken(error)
    response.response_txt = "".join(pieces)
    return Said(response.response_txt)


async def _aread(response: AsyncStreamingResponse, once: _Once) -> Said:
    stream = response.response_gen
    if _is_used_up(stream):
        once.said = Said(None, _READ_BEFORE)
        return once.said
    pieces: list[str] = []
    error: Exception | None = None
    try:
        async for piece in stream:
            pieces.append(piece)  # noqa: PERF401 - what came before an error is kept
    except Exception as broken:
        error = broken
    except BaseException:
        once.said = Said(None, "reading its stream was cancelled")
        raise
    response.response_gen = _aagain(pieces, error)
    if error is None:
        response.response_txt = "".join(pieces)
    once.said = Said(response.response_txt) if error is None else _broken(error)
    return once.said


def _is_used_up(stream: object) -> bool:
    return isinstance(stream, AsyncGeneratorType) and stream.ag_frame is None


def _broken(error: Exception) -> Said:
    return Said(None, f"its stream broke off ({type(error).__name__}: {str(error)[:200]})")


def _again(pieces: Sequence[str], error: Exception | None) -> Generator[str, None, None]:
    yield from pieces
    if error is not None:
        raise error


async def _aagain(pieces: Sequence[str], error: Exception | None) -> AsyncGenerator[str, None]:
    for piece in pieces:
        yield piece
    if error is not None:
        raise error
