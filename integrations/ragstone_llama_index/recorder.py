"""From what happens in an app to samples: used by the handler of spans and by that of legacy callbacks alike."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode

from ragstone.errors import describe
from ragstone.sample import Sample
from ragstone_llama_index.answered import own_contexts, text_of
from ragstone_llama_index.responses import Mode, check_mode
from ragstone_llama_index.runs import Aging, Asked, OpenRuns, Run
from ragstone_llama_index.streams import known
from ragstone_llama_index.tee import Ear, atee, tee

if TYPE_CHECKING:
    from ragstone.monitor import Monitor

_PLACE = "llama_index"  # under which the monitor counts what fails in here
_GIVEN_UP = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_HEARD = "_ragstone_heard"  # the attribute by which a chat's response remembers what was streamed
_Contexts = tuple[str, ...]


class Recorder:
    """Makes one sample of each run, or tells the monitor why there is none.

    `answered` and `failed` are called once for a run, on the app's thread; nothing that they do is slow.

    Args:
        monitor: Takes the samples.
        mode: Which metadata of nodes stand in the contexts.
    """

    def __init__(self, monitor: "Monitor", mode: Mode = MetadataMode.NONE) -> None:
        self.monitor = check_monitor(monitor)
        self.mode = check_mode(mode)
        self.runs = OpenRuns(self._never_ended)
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=partial(_forget, weakref.ref(self)))

    def forget(self) -> None:
        """Begin anew, as in a process that was just forked."""
        self.runs.forget()
        self._lock = threading.RLock()
        self._written = Aging[tuple[StreamingAgentChatResponse, Asked, _Contexts]]()

    def __len__(self) -> int:
        """Return how many things are kept for runs under way."""
        return len(self.runs) + len(self._written)

    def __deepcopy__(self, memo: object) -> "Recorder":
        return self  # LlamaIndex' objects may be copied with all that they hold; what is under way is one

    def __reduce__(self) -> tuple[object, ...]:
        return Recorder, (self.monitor, self.mode)

    def broke(self, error: Exception) -> None:
        """Count what failed in here; the app must not see it."""
        self.monitor.failed(_PLACE, error)

    def answered(self, asked: Asked, answer: object, found: Callable[[], Iterable[str]]) -> None:
        """Take what a run answered; where that is a stream, when it has been read."""
        contexts = own_contexts(answer, found, self.mode)
        if isinstance(answer, (StreamingResponse, AsyncStreamingResponse)):
            self._hear(answer, asked, contexts)
        elif isinstance(answer, StreamingAgentChatResponse):
            self._await(answer, asked, contexts)
        else:
            self._submit(asked, contexts, text_of(answer))

    def failed(self, asked: Asked, found: Iterable[str], error: BaseException | None) -> None:
        """Take what a run raised: its failure is a sample, unless it was called off."""
        if error is None or isinstance(error, _GIVEN_UP):
            self.monitor.skip("cancelled")
        else:
            self._submit(asked, tuple(dict.fromkeys(found)), None, {"error": describe(error, most=200)})

    def writing(self, response: StreamingAgentChatResponse) -> None:
        """Hear a chat's stream that LlamaIndex is about to read into its memory."""
        if _HEARD not in vars(response):
            ear = Ear(ended=_ignore, broke=_ignore, hear=_delta)
            vars(response)[_HEARD] = ear.heard
            _listen(response, ear)

    def written(self, response: StreamingAgentChatResponse, error: BaseException | None = None) -> None:
        """Take a chat's answer that was streamed into its history, whether the app reads it or not."""
        with self._lock:
            kept = self._written.pop(id(response))
        if kept is None:
            return
        _, asked, contexts = kept
        if error is None:
            self._submit(asked, contexts, _written_text(response))
        else:
            self.failed(asked, contexts, error)

    def _submit(
        self, asked: Asked, contexts: _Contexts, response: str | None, more: Mapping[str, object] | None = None
    ) -> None:
        if asked.question is None:
            self.monitor.skip("no_question")
            return
        self.monitor.submit(
            Sample(
                id=asked.id,
                user_input=asked.question,
                retrieved_contexts=contexts,
                response=response,
                metadata={**asked.metadata, **(more or {})},
            )
        )

    def _hear(self, response: StreamingResponse | AsyncStreamingResponse, asked: Asked, contexts: _Contexts) -> None:
        said = known(response)
        if said is not None:  # read by the engine itself
            if said.text is None:
                self.monitor.skip("abandoned")
            else:
                self._submit(asked, contexts, said.text)
            return
        ear = self._ear(asked, contexts, _joined)
        if isinstance(response, StreamingResponse):
            response.response_gen = tee(response.response_gen, ear)
        else:
            response.response_gen = atee(response.response_gen, ear)

    def _await(self, response: StreamingAgentChatResponse, asked: Asked, contexts: _Contexts) -> None:
        if not response.is_writing_to_memory:  # some chat engines of 0.13 and 0.14 leave the reading to the app
            ear = self._ear(asked, contexts, lambda heard: _joined(heard).strip())
            ear.hear = _delta
            _listen(response, ear)
            return
        with self._lock:  # the thread that writes may have ended before it is waited for
            over = response.is_done or response.exception is not None
            gone = [] if over else self._written.add(id(response), (response, asked, contexts))
        for _ in gone:
            self.monitor.skip("never_ended")
        if response.exception is not None:
            self.failed(asked, contexts, response.exception)
        elif over:
            self._submit(asked, contexts, _written_text(response))

    def _ear(self, asked: Asked, contexts: _Contexts, join: Callable[[list[object]], str]) -> Ear:
        """Return one that submits what it heard, and lets nothing out into the app's stream."""

        def ended(pieces: list[object]) -> None:
            try:
                self._submit(asked, contexts, join(pieces))
            except Exception as ours:
                self.broke(ours)

        def broke(error: BaseException) -> None:
            try:
                if isinstance(error, GeneratorExit):
                    self.monitor.skip("abandoned")
                else:
                    self.failed(asked, contexts, error)
            except Exception as ours:
                self.broke(ours)

        return Ear(ended, broke)

    def _never_ended(self, _: Run) -> None:
        self.monitor.skip("never_ended")


def check_monitor(monitor: "Monitor") -> "Monitor":
    """Return a monitor.

    Raises:
        TypeError: It is none.
    """
    if not callable(getattr(monitor, "submit", None)):
        raise TypeError(f"monitor: is {type(monitor).__name__}; pass a ragstone.Monitor")
    return monitor


def _forget(reference: "weakref.ref[Recorder]") -> None:
    recorder = reference()
    if recorder is not None:
        recorder.forget()


def _listen(response: StreamingAgentChatResponse, ear: Ear) -> None:
    if response.chat_stream is not None:
        response.chat_stream = tee(response.chat_stream, ear)
    if response.achat_stream is not None:
        response.achat_stream = atee(response.achat_stream, ear)


def _written_text(response: StreamingAgentChatResponse) -> str:
    """Return what was written; early versions tell it nowhere."""
    heard = cast("list[object]", vars(response).get(_HEARD, []))
    return _joined(heard).strip() or response.response


def _joined(heard: list[object]) -> str:
    return "".join(cast("list[str]", heard))


def _ignore(_: object) -> None:
    pass


def _delta(piece: object) -> str:
    return (piece.delta or "") if isinstance(piece, ChatResponse) else ""
