"""From what happens in an app to samples: used by the handler of spans and by that of legacy callbacks alike."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode, NodeWithScore

from ragstone.errors import describe
from ragstone.monitor.run_tree import OpenSample, Run, RunTree
from ragstone.sample import Sample
from ragstone_llama_index.responses import Mode, check_mode, contexts_of, text_of, texts_of
from ragstone_llama_index.streaming import alisten, known_text, listen

if TYPE_CHECKING:
    from ragstone.monitor import Monitor

_SOURCE = "llama_index"  # under which the monitor counts what fails in here
_CALLED_OFF = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_PIECES = "_ragstone_pieces"  # the attribute by which a chat's response remembers what was streamed
_WAITING = "_ragstone_waiting"  # and the one with what waits for its end, by the recorder
_Streamed = StreamingResponse | AsyncStreamingResponse | StreamingAgentChatResponse
_Contexts = tuple[str, ...]


@dataclass(slots=True, eq=False)
class AppSample(OpenSample):
    """What is known of a sample in the making.

    Beneath its root two things are collected. "seen": the nodes that a response synthesizer was given, whose texts are
    taken when they are asked for. "retrieved": the texts that retrievers or inner engines returned since.
    """

    id: str = ""
    error: BaseException | None = None  # what was raised last beneath the root


class _Guard:
    """A context out of which nothing is raised into the app. Not `contextmanager`: it is entered for each span."""

    def __init__(self, monitor: "Monitor") -> None:
        self._monitor = monitor

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._monitor.failed(_SOURCE, error)
        return True


class Recorder:
    """Makes one sample of each run, or tells the monitor why there is none.

    `answered` and `failed` are called once for a run, on the app's thread; nothing that they do is slow.
    """

    def __init__(self, monitor: "Monitor", mode: Mode = MetadataMode.NONE) -> None:
        if not callable(getattr(monitor, "submit", None)):
            raise TypeError(f"monitor: is {type(monitor).__name__}; pass a ragstone.Monitor")
        self.monitor = monitor
        self.mode = check_mode(mode)
        self.runs = RunTree[AppSample]()
        self.guard = _Guard(monitor)

    def __deepcopy__(self, memo: object) -> "Recorder":
        return self  # LlamaIndex' objects may be copied with all that they hold; the runs under way are the same

    def __reduce__(self) -> tuple[object, ...]:
        return Recorder, (self.monitor, self.mode)

    def begin(self, id_: str, sample: AppSample | None) -> None:
        """Open a root; None: what happens beneath it is of no interest."""
        for _ in self.runs.start(id_, kind="entry", sample=sample):
            self.monitor.skip("never_ended")

    def retrieve(self, run: Run[AppSample], contexts: Sequence[str]) -> None:
        """Take what a call retrieved, in place of what was retrieved within it."""
        self.runs.discard(run, "seen", "retrieved")
        self.runs.collect(run, "retrieved", contexts)

    def synthesize(self, run: Run[AppSample], nodes: Sequence[NodeWithScore]) -> None:
        """Take the nodes that a call was given; they were chosen from what was retrieved before."""
        outer = next(one for one in run.lineage() if one.kind and one is not run)
        self.runs.discard(run, "seen")
        self.runs.discard(outer, "retrieved")
        self.runs.collect(run, "seen", nodes)

    def contexts(self, sample: AppSample, within: Run[AppSample] | None = None) -> list[str]:
        """Return the texts that were collected for a sample so far, inside of a call or anywhere."""
        seen: list[NodeWithScore] = [node for _, nodes in sample.items("seen", within) for node in nodes]
        retrieved: list[str] = [text for _, texts in sample.items("retrieved", within) for text in texts]
        return [*texts_of(seen, self.mode), *retrieved]

    def answered(self, sample: AppSample, answer: object) -> None:
        """Take what a run answered; where that is a stream, when it has been read."""
        contexts = contexts_of(answer, lambda: self.contexts(sample), self.mode)
        if not isinstance(answer, _Streamed):
            self._submit(sample, contexts, text_of(answer))
        elif not isinstance(answer, StreamingAgentChatResponse):
            known = known_text(answer)
            if known is None:
                self._listen(answer, sample, contexts, "".join)
            elif known.text is None:  # the engine itself has begun to read it
                self.monitor.skip("abandoned")
            else:
                self._submit(sample, contexts, known.text)
        elif not answer.is_writing_to_memory:  # some chat engines of 0.13 and 0.14 leave the reading to the app
            self._listen(answer, sample, contexts, lambda pieces: "".join(pieces).strip())
        else:
            vars(answer).setdefault(_WAITING, {})[self] = sample, contexts
            if answer.is_done or answer.exception is not None:  # the thread that writes had ended before
                self.written(answer, answer.exception)

    def failed(self, sample: AppSample, error: BaseException | None, contexts: Iterable[str] | None = None) -> None:
        """Take what a run raised: its failure is a sample, unless it was called off."""
        if error is None or isinstance(error, _CALLED_OFF):
            self.monitor.skip("cancelled")
            return
        sample.metadata["error"] = describe(error, most=200)
        self._submit(sample, tuple(dict.fromkeys(self.contexts(sample) if contexts is None else contexts)), None)

    def writing(self, response: StreamingAgentChatResponse) -> None:
        """Listen to a chat's stream that LlamaIndex is about to read into its memory: early versions keep no text."""
        if _PIECES not in vars(response):
            pieces = vars(response)[_PIECES] = list[Any]()
            _listen_to(response, pieces, lambda _: None)

    def written(self, response: StreamingAgentChatResponse, error: BaseException | None = None) -> None:
        """Take a chat's answer that was streamed into its history, whether the app reads it or not."""
        waiting: dict[Recorder, tuple[AppSample, _Contexts]] = vars(response).get(_WAITING, {})
        if self not in waiting:
            return
        sample, contexts = waiting.pop(self)
        if error is not None:
            self.failed(sample, error, contexts)
        else:
            self._submit(sample, contexts, "".join(vars(response).get(_PIECES, ())).strip() or response.response)

    def _submit(self, sample: AppSample, contexts: _Contexts, response: object) -> None:
        if sample.question is None:
            self.monitor.skip("no_question")
            return
        self.monitor.submit(
            Sample(
                id=sample.id,
                user_input=sample.question,
                retrieved_contexts=contexts,
                response=response if isinstance(response, str) else None,
                metadata=sample.metadata,
            )
        )

    def _listen(
        self, response: _Streamed, sample: AppSample, contexts: _Contexts, join: Callable[[list[Any]], str]
    ) -> None:
        """Submit what the app reads of a stream, and let nothing out into it."""
        pieces: list[Any] = []

        def ended(error: BaseException | None) -> None:
            with self.guard:
                if error is None:
                    self._submit(sample, contexts, join(pieces))
                elif isinstance(error, GeneratorExit):
                    self.monitor.skip("abandoned")
                else:
                    self.failed(sample, error, contexts)

        _listen_to(response, pieces, ended)


def _listen_to(response: _Streamed, pieces: list[Any], ended: Callable[[BaseException | None], object]) -> None:
    """Replace a response's stream by one that adds the text of each piece to a list."""

    def take(piece: object) -> None:
        pieces.append((piece.delta or "") if isinstance(piece, ChatResponse) else piece)

    if isinstance(response, StreamingResponse):
        response.response_gen = listen(response.response_gen, take, ended)
    elif isinstance(response, AsyncStreamingResponse):
        response.response_gen = alisten(response.response_gen, take, ended)
    elif response.chat_stream is not None:
        response.chat_stream = listen(response.chat_stream, take, ended)
    elif response.achat_stream is not None:
        response.achat_stream = alisten(response.achat_stream, take, ended)
