"""One round: run each evaluation on the replies that there are, and gather the requests that it waits for."""

import json
import os
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ragstone.batch.provider.state import BatchState, RequestState, State
from ragstone.clients.batches import ENDPOINT
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.connection import load_openai
from ragstone.errors import describe, secrets_of, unscored
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.drivers import advance, needed
from ragstone.judging.flow import CannotScore, EmbedRequest, Meter, of_draw
from ragstone.keys import judge_key, reply_key
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome
from ragstone.sample import Row
from ragstone.store.journal import JournalError
from ragstone.store.private_files import open_private

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EMBEDDING_THREADS = 8
_EMBEDDING_AHEAD = 32
_EMBEDDER_IS_DOWN = 10
_REQUEST_AT_FAULT = frozenset({400, 413, 422})
_REFUSED_IN_A_ROW = 3  # then the requests are not at fault


class EmbedderError(RuntimeError):
    """The embedder failed on many samples in a row; nothing is lost, run again when it is back."""


class Evaluation(NamedTuple):
    """One scoring of one sample by one metric, and its `outcome_key`."""

    row: Row
    metric: Metric
    draw: int
    key: str


class Progress(NamedTuple):
    """The outcome of an evaluation, or the requests that it waits for, by their `reply_key`."""

    outcome: Outcome | None
    missing: dict[str, LLMRequest]


class RequestFiles:
    """Writes requests to files for the endpoint, and begins a new file when one is full."""

    def __init__(self, folder: Path, number: int, max_requests: int, max_bytes: int) -> None:
        self._folder, self._first, self._max_requests, self._max_bytes = folder, number, max_requests, max_bytes
        self._file: IO[bytes] | None = None
        self._bytes = 0
        self._lines: list[int] = []

    def add(self, key: str, body: dict[str, Any]) -> int | None:
        """Write a request under its key; return its file's number, or None if it is too long for any file."""
        line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}
        # Half a surrogate pair cannot be encoded; its escape is good JSON.
        text = json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        if len(text) > self._max_bytes:
            return None
        if self._file and (self._lines[-1] >= self._max_requests or self._bytes + len(text) > self._max_bytes):
            self.close()
        if self._file is None:
            self._lines.append(0)
            self._bytes = 0
            self._file = open_private(self._folder / self._name(len(self._lines) - 1), "wb")
        self._file.write(text)
        self._lines[-1] += 1
        self._bytes += len(text)
        return self._first + len(self._lines) - 1

    def close(self) -> list[tuple[int, str, int]]:
        """Write everything to the disk; return number, name and lines of each file."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
        return [(self._first + i, self._name(i), lines) for i, lines in enumerate(self._lines)]

    def _name(self, i: int) -> str:
        return f"requests-{self._first + i:05}.jsonl"


class Flows:
    """Runs evaluations from their start until a reply is missing, as often as it takes. Any thread may use it."""

    def __init__(self, client: OpenAICompatible, state: State) -> None:
        self._judge = judge_key(client)
        self._state = state
        self._embedder_failures = 0

    def progress(self, evaluations: Iterable[Evaluation]) -> Iterator[tuple[Evaluation, Progress]]:
        """Yield how far each evaluation comes, in order, and keep its outcome. Threads, for embedders make them wait.

        Raises:
            EmbedderError: The embedder keeps failing.
            JournalError: The journal cannot be read or written.
        """
        with ThreadPoolExecutor(_EMBEDDING_THREADS, "ragstone-embed") as pool:
            ahead: deque[tuple[Evaluation, Future[Progress]]] = deque()
            for evaluation in evaluations:
                ahead.append((evaluation, pool.submit(self._progress, evaluation)))
                if len(ahead) >= _EMBEDDING_AHEAD:
                    first, future = ahead.popleft()
                    yield first, future.result()
            for first, future in ahead:
                yield first, future.result()

    def _progress(self, evaluation: Evaluation) -> Progress:
        kept = self._state.journal.outcome(evaluation.key)
        if kept is not None:
            return Progress(kept, {})
        meter = Meter()
        try:
            progress = self._run(evaluation, meter)
        except (JournalError, EmbedderError):
            raise
        except Exception as error:
            progress = Progress(unscored(evaluation.metric, error, meter), {})
        if progress.outcome is not None:
            self._state.journal.put_outcome(evaluation.key, progress.outcome)
        return progress

    def _run(self, evaluation: Evaluation, meter: Meter) -> Progress:
        flow = evaluation.metric.flow(evaluation.row.sample)
        replies: tuple[object, ...] | None = None
        paid: set[str] = set()
        try:
            while True:
                done, value = advance(flow, replies)
                if done:
                    return Progress(value.model_copy(update={"usage": meter.usage()}), {})
                keys = [reply_key(r, self._judge, evaluation.draw) if isinstance(r, LLMRequest) else "" for r in value]
                kept = {key: self._state.journal.reply(key) for key in keys if key}
                missing = {
                    key: of_draw(request, evaluation.draw)
                    for key, request in zip(keys, value, strict=True)
                    if key and kept[key] is None
                }
                for key, request in missing.items():
                    state = self._state.request(key)
                    if state is not None and state.given_up:
                        raise CannotScore("judge_error", f"{request.task}: {state.problem}")
                if missing:
                    return Progress(None, missing)
                meter.asking(value)
                replies = tuple(
                    [
                        self._embed(evaluation.metric, request)
                        if isinstance(request, EmbedRequest)
                        else self._counted(key, kept[key], evaluation, paid, meter)
                        for key, request in zip(keys, value, strict=True)
                    ]
                )
                meter.answered(replies)
        finally:
            flow.close()

    def _counted(
        self, key: str, reply: LLMReply | None, evaluation: Evaluation, paid: set[str], meter: Meter
    ) -> LLMReply | None:
        """Return the reply, with its tokens if it was asked for this evaluation and is not counted yet."""
        state = self._state.request(key)
        if reply is None or (state is not None and state.payer == evaluation.key and key not in paid):
            paid.add(key)
            return reply
        meter.spared()
        return replace(reply, input_tokens=0, output_tokens=0)

    def _embed(self, metric: Metric, request: EmbedRequest) -> "NDArray[np.float32]":
        embedder = needed(metric.judge_embedder)
        try:
            vectors = embedder.embed(request.texts)
        except Exception as error:
            self._embedder_failures += 1
            if self._embedder_failures < _EMBEDDER_IS_DOWN:
                raise
            raise EmbedderError(
                f"the embedder {embedder.model!r} failed on {self._embedder_failures} samples in a row, at last with "
                f"{describe(error, secrets_of(embedder))}. What was judged is safe: run again when it is back"
            ) from error
        self._embedder_failures = 0
        return vectors


class Gathering:
    """Writes the requests of one round to files, and with `try_first` asks the first of each form at once."""

    def __init__(
        self, client: OpenAICompatible, state: State, max_requests: int, max_bytes: int, *, try_first: bool
    ) -> None:
        self._client, self._state, self._try_first = client, state, try_first
        batches = state.batches()
        self._round = 1 + (batches[-1].round if batches else 0)
        most = min(max_requests, int(state.fact("max_requests", max_requests)))
        self._files = RequestFiles(state.folder, len(batches) + 1, most, max_bytes)
        self._tried = {tuple(form) for form in state.fact("tried", [])}
        self._wanted: set[str] = set()
        self._refused = 0
        self.answered = 0

    def gather(self, progress: Iterable[tuple[Evaluation, Progress]]) -> bool:
        """Write down what is missing; return whether anything is. `answered` counts what was answered at once.

        Raises:
            openai.OpenAIError: The server refuses what is asked at once, and not because of the one request.
            AnswerError: Its answer cannot be read.
        """
        try:
            with self._state.together():
                for evaluation, (_, missing) in progress:
                    for key, request in missing.items():
                        self._want(key, request, evaluation)
                files = self._files.close()
                for number, name, lines in files:
                    self._state.put_batch(BatchState(number, self._round, name, lines, secrets.token_hex(16)))
        finally:
            self._files.close()
        self._state.journal.flush()
        return bool(files)

    def _want(self, key: str, request: LLMRequest, evaluation: Evaluation) -> None:
        if key in self._wanted:
            return  # another evaluation of this round asks it
        self._wanted.add(key)
        state = self._state.request(key) or RequestState(evaluation.key, request.choices)
        form = tuple(sorted(self._client.chat_call(request).optional))
        if self._try_first and form not in self._tried and self._ask_now(key, request, state):
            return
        call = self._client.chat_call(request)  # the client may have learned what to leave out
        state.used = sorted(call.optional)
        state.batch = self._files.add(key, call.body)
        if state.batch is None:
            state.given_up, state.problem = True, "it is longer than a batch's file may be (max_bytes)"
        self._state.put_request(key, state)

    def _ask_now(self, key: str, request: LLMRequest, state: RequestState) -> bool:
        """Ask a request now, which shows a wrong key, model or parameter in seconds; False if it failed."""
        self._state.put_request(key, state)
        self._state.checkpoint()  # also after a kill it is known which evaluation pays for the call
        try:
            reply = self._client.generate(request)
        except load_openai().APIStatusError as error:
            self._refused += 1
            if error.status_code not in _REQUEST_AT_FAULT or self._refused >= _REFUSED_IN_A_ROW:
                raise
            state.errors += 1
            state.problem = describe(error, self._client.secrets)
            return False
        self._refused = 0
        self.answered += 1
        self._tried.add(tuple(sorted(self._client.chat_call(request).optional)))
        self._state.journal.put_reply(key, reply)
        self._state.journal.flush()
        state.batch = None
        self._state.put_request(key, state)
        self._state.put_fact("tried", sorted(self._tried))
        self._state.put_fact("left_out", sorted(self._client.left_out))
        self._state.checkpoint()
        return True
