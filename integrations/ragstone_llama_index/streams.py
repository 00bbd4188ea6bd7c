"""The text of a streamed response: read once, however many ask, and the user's to read meanwhile and after that.

Before the first piece is read, the response's stream is replaced by a reader over the pieces read so far; whoever
reads it, the user or an evaluator, gets every piece. A stream that the user took out before that cannot be replaced.
"""

import asyncio
import dis
import inspect
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import chain
from types import AsyncGeneratorType, GeneratorType
from typing import cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from ragstone.errors import describe

_KEPT = "_ragstone_read"  # the attribute by which a response remembers how it was read
_READ_BEFORE = "its stream was read before, and the response kept no text; evaluated first, it stays readable"
_LOOKING = threading.RLock()  # held while a stream is looked at and replaced, never while it is read


@dataclass(frozen=True, slots=True)
class Said:
    """A response's text, or None and what is known of why."""

    text: str | None
    problem: str | None = None


def known(response: StreamingResponse | AsyncStreamingResponse) -> Said | None:
    """Return what is known of a stream's text without reading it; None: it has yet to be read."""
    with _LOOKING:
        kept = cast("_Shared | None", vars(response).get(_KEPT))
        if kept is not None:
            return kept.said
        stream = cast("object", response.response_gen)
        if response.response_txt is None:
            if not _is_begun(stream):
                return None
            vars(response)[_KEPT] = lost = _Shared(response, said=Said(None, _READ_BEFORE))
            return lost.said
        if isinstance(stream, AsyncGeneratorType) and stream.ag_frame is not None:
            return Said(None, "its stream is being read by others, or was left half-read")
        return Said(response.response_txt)


def share(response: StreamingResponse) -> Said | None:
    """Let the user and evaluators read a stream at once, each every piece; return what is known of its text."""
    with _LOOKING:
        if (said := known(response)) is None and _KEPT not in vars(response):
            source = chain.from_iterable([response.response_gen])
            vars(response)[_KEPT] = shared = _Stream(response, source=source)
            response.response_gen = shared.reader()
        return said


def read_stream(response: StreamingResponse) -> Said:
    """Read a stream to its end, blocking.

    Example:
        >>> response = StreamingResponse(iter(["Jane ", "Austen."]))
        >>> read_stream(response).text, list(response.response_gen), str(response)
        ('Jane Austen.', ['Jane ', 'Austen.'], 'Jane Austen.')
    """
    return share(response) or cast("_Stream", vars(response)[_KEPT]).read()


async def aread_stream(response: AsyncStreamingResponse) -> Said:
    """Read an async stream to its end on the running loop; it is read on even if the first who asked gives up.

    Raises:
        ValueError: Another event loop is reading it.
    """
    with _LOOKING:
        if (said := known(response)) is not None:
            return said
        if _KEPT not in vars(response):
            vars(response)[_KEPT] = begun = _AsyncStream(response)
            begun.begin(response.response_gen)
            response.response_gen = begun.reader()
    shared = cast("_AsyncStream", vars(response)[_KEPT])
    if shared.is_elsewhere():
        raise ValueError("response: its stream is being read on another event loop")
    return await shared.read()


@dataclass(slots=True, kw_only=True)
class _Shared:
    """What was read of a response's stream; `said` once it has ended."""

    response: StreamingResponse | AsyncStreamingResponse = field(kw_only=False)
    pieces: list[str] = field(default_factory=list[str])
    error: BaseException | None = None
    said: Said | None = None

    def end(self, error: BaseException | None) -> None:
        self.error = error
        try:
            text = "".join(self.pieces)
        except TypeError as no_text:
            self.said = _broken(error or no_text)
            return
        # Where it has a text, the user is reading it by LlamaIndex' methods, which add piece after piece to it.
        if error is None and self.response.response_txt is None:
            self.response.response_txt = text
        self.said = Said(text) if error is None else _broken(error)


@dataclass(slots=True, kw_only=True)
class _Stream(_Shared):
    """Whoever wants a piece that has yet to come reads it, one at a time: nobody depends on another's thread."""

    source: Iterator[str]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reader(self) -> Generator[str, None, None]:
        at = 0
        while at < len(self.pieces) or self._read_on(at):
            yield self.pieces[at]
            at += 1
        if self.error is not None:
            raise self.error

    def read(self) -> Said:
        while self._read_on(len(self.pieces)):
            pass
        return cast("Said", self.said)

    def _read_on(self, at: int) -> bool:
        """Return whether there is a piece at a place."""
        with self.lock:
            if at == len(self.pieces) and self.said is None:
                try:
                    self.pieces.append(next(self.source))
                except StopIteration:
                    self.end(None)
                except Exception as error:
                    self.end(error)
                except BaseException:  # this thread's own matter
                    self.end(RuntimeError("reading it was interrupted"))
                    raise
            return at < len(self.pieces)


@dataclass(slots=True, kw_only=True)
class _AsyncStream(_Shared):
    """A task of its own reads the source: whoever gives up waiting for a piece does not take it from others."""

    more: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None

    def begin(self, source: AsyncIterable[str]) -> None:
        self.task = asyncio.get_running_loop().create_task(self._pump(source))
        self.task.add_done_callback(self._ended)  # is called even if the task is cancelled before it runs

    def is_elsewhere(self) -> bool:
        return self.task is None or self.task.get_loop() is not asyncio.get_running_loop()

    async def reader(self) -> AsyncGenerator[str, None]:
        at = 0
        while at < len(self.pieces) or self.said is None:
            if at < len(self.pieces):
                yield self.pieces[at]
                at += 1
            elif self.is_elsewhere():  # waiting could last forever; str(response) holds up the loop that reads
                self.response.response_txt = None
                cast("AsyncStreamingResponse", self.response).response_gen = self.reader()
                raise RuntimeError("the response's stream is being read on another event loop; read it there, or later")
            else:
                await self.more.wait()
        if self.error is not None:
            raise self.error

    async def read(self) -> Said:
        await asyncio.wait([cast("asyncio.Task[None]", self.task)])
        return cast("Said", self.said)

    async def _pump(self, source: AsyncIterable[str]) -> None:
        async for piece in source:
            self.pieces.append(piece)
            self._tell()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self.end(RuntimeError("reading it was cancelled") if task.cancelled() else task.exception())
        self._tell()

    def _tell(self) -> None:
        self.more.set()
        self.more = asyncio.Event()


def _is_begun(stream: object) -> bool:
    """Return whether anything was read from a stream, as far as it shows: a plain iterator does not tell."""
    if isinstance(stream, GeneratorType):
        return inspect.getgeneratorstate(cast("Generator[object, object, object]", stream)) != inspect.GEN_CREATED
    if not isinstance(stream, AsyncGeneratorType):
        return False
    if sys.version_info >= (3, 12):
        return inspect.getasyncgenstate(stream) != inspect.AGEN_CREATED
    frame = stream.ag_frame
    # A new one has yet to run on 3.10, and on 3.11 it has run until the instruction that returned it, no further.
    at = -1 if frame is None else frame.f_lasti
    return frame is None or (at >= 0 and frame.f_code.co_code[at] != dis.opmap.get("RETURN_GENERATOR"))


def _broken(error: BaseException) -> Said:
    return Said(None, f"its stream broke off ({describe(error, most=200)})")
