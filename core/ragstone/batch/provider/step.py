"""What can be done without waiting: run the metrics on the replies so far, send requests up, take replies down."""

import json
import logging
import os
import secrets
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple, get_args

from pydantic import TypeAdapter, ValidationError

from ragstone.clients.batches import ENDPOINT, BatchFacts
from ragstone.clients.chat import ChatCall, Droppable, read_completion
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.connection import load_openai
from ragstone.errors import LONGEST, CannotScore, describe, secrets_of, unscored, without_keys
from ragstone.judge import LLMReply, LLMRequest, Meter
from ragstone.judging.flow import EmbedRequest, advance, needed, of_draw
from ragstone.keys import judge_key, reply_key
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome
from ragstone.plain import as_dict
from ragstone.sample import Row
from ragstone.store.file_lock import try_lock
from ragstone.store.journal import Journal, JournalError
from ragstone.store.private_files import make_private_folder, open_private, replacing

_log = logging.getLogger(__name__)
_VERSION = 2
_MOST_ERRORS = 2  # asked, and asked once more
_MOST_LOST = 3
_MOST_REFUSALS = 4
_REFUSED_IN_A_ROW = 3  # then the direct requests are not at fault
_REQUEST_AT_FAULT = frozenset({400, 413, 422})
_UNCLEAR = frozenset({408, 409})  # with these, and with a server's own failures, the batch may have begun
_NOT_RUN = frozenset({"batch_expired", "batch_cancelled", "batch_canceled", "request_cancelled"})
_EMBEDDING_THREADS, _EMBEDDING_AHEAD, _EMBEDDER_IS_DOWN = 8, 32, 10


class FolderError(RuntimeError):
    """The folder of a run cannot be used; the message says why and what to do."""


class EmbedderError(RuntimeError):
    """The embedder failed on many samples in a row; nothing is lost, run again when it is back."""


@dataclass(slots=True)
class BatchState:
    """One batch: a file of requests on its way.

    Attributes:
        number: Counted from 1.
        round: The round of requests that it is of, from 1.
        file: The name of the file of requests in the run's folder.
        lines: Requests in it.
        mark: By which the provider's list of batches shows it.
        stage: How far it is: "written", "uploaded", "beginning", "begun" or "settled".
        uploaded: The provider's name for the file.
        id: The provider's name for the batch.
        status: The provider's last status of it.
        completed: Requests answered, as the provider counts them.
        failed: Requests refused, as the provider counts them.
        replies: Replies taken from it.
        problem: What was wrong with it as a whole.
    """

    number: int
    round: int
    file: str
    lines: int
    mark: str
    stage: str = "written"
    uploaded: str = ""
    id: str = ""
    status: str = ""
    completed: int = 0
    failed: int = 0
    replies: int = 0
    problem: str = ""


@dataclass(slots=True)
class RequestState:
    """One request."""

    payer: str  # the key of the evaluation that asked first; its usage counts the tokens
    choices: tuple[str, ...] | None
    used: list[str] = field(default_factory=list[str])  # the parameters it was sent with that can be left out
    batch: int | None = 0  # 0: it waits for the next one; None: it is answered or given up
    errors: int = 0  # how often it was answered with an error
    lost: int = 0  # how often its batch ended without an answer to it
    given_up: bool = False
    problem: str = ""  # the last one

    def give_up(self) -> None:
        """Ask it no more."""
        self.given_up, self.batch = True, None


@dataclass(slots=True)
class RunState:
    """What a run must know again after it was killed: the file `state.json`."""

    version: int = _VERSION
    run: dict[str, Any] = field(default_factory=dict[str, Any])  # what it is a run of
    batches: list[BatchState] = field(default_factory=list[BatchState])
    requests: dict[str, RequestState] = field(default_factory=dict[str, RequestState])  # by `reply_key`
    tried: list[list[str]] = field(default_factory=list[list[str]])  # forms of request that were asked directly
    left_out: list[Droppable] = field(default_factory=list[Droppable])
    max_requests: int | None = None  # fewer than asked for, after too many tokens at once
    refusals: int = 0  # rounds in a row of which no batch was let in
    not_before: float = 0.0


_STATE = TypeAdapter(RunState)


class Evaluation(NamedTuple):
    """One scoring of one sample by one metric, and its `outcome_key`."""

    row: Row
    metric: Metric
    draw: int
    key: str


class AnswerLine(NamedTuple):
    """One line of an output or error file: the request's key, its own HTTP status (0: not run), and what came."""

    key: str
    status: int
    body: dict[str, object]
    error: dict[str, object]

    @property
    def problem(self) -> str:
        """What went wrong, in the words of the provider, perhaps with keys."""
        if self.error:
            return f"{self.error.get('code')}: {self.error.get('message')}"[:LONGEST]
        message = as_dict(self.body.get("error")).get("message") or self.body.get("error") or self.body.get("message")
        return f"status {self.status}: {message or 'no completion'}"[:LONGEST]

    def reply(self, choices: Sequence[str] | None) -> LLMReply | None:
        """Return the judge's reply to a request of these choices; None if there is none."""
        request = LLMRequest("", "", "", {}, choices=None if choices is None else tuple(choices))
        return read_completion(self.body, request) if self.status == 200 else None


def read_answers(content: bytes) -> Iterator[AnswerLine]:
    r"""Yield the answers in a file, in whatever order they come; lines that are no answers are left out."""
    for text in content.split(b"\n"):
        try:
            line = as_dict(json.loads(text))
        except (ValueError, RecursionError):
            continue
        key, response = line.get("custom_id"), as_dict(line.get("response"))
        status = response.get("status_code")
        if isinstance(key, str):
            number = status if isinstance(status, int) else 0
            yield AnswerLine(key, number, as_dict(response.get("body")), as_dict(line.get("error")))


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


class Step:
    """Works in a run's folder, which `opened` has locked. Each stage is written down before and after it is done."""

    def __init__(self, client: OpenAICompatible, folder: Path, state: RunState, journal: Journal) -> None:
        self.state = state
        self.folder = folder
        self._client = client
        self._journal = journal
        self._judge = judge_key(client)
        self._embedder_failures = 0

    @classmethod
    @contextmanager
    def opened(cls, client: OpenAICompatible, folder: Path) -> Generator["Step", None, None]:
        """Open a run's folder; made when it is not there.

        Raises:
            FolderError: Another process is at work in it, or another version of ragstone was.
        """
        make_private_folder(folder)
        path = folder / "state.json"
        with open_private(folder / "lock", "wb") as lock:
            if not try_lock(lock.fileno()):
                raise FolderError(f"{folder}: another process is at work in it; wait for it to end")
            try:
                state = _STATE.validate_json(path.read_bytes()) if path.exists() else RunState()
            except ValidationError as error:
                raise FolderError(f"{path}: cannot be read: {error.errors()[0]['msg']}") from None
            if state.version > _VERSION:
                raise FolderError(f"{folder}: was begun by a newer ragstone; upgrade, or take another folder")
            if (folder / "state.db").exists():
                raise FolderError(f"{folder}: was begun by an older ragstone; take another folder")
            client.leave_out(state.left_out)
            with Journal(folder / "journal.db") as journal:
                yield cls(client, folder, state, journal)

    def save(self) -> None:
        """Write the state down, after the replies that it knows of."""
        self._journal.flush()
        self.state.left_out = sorted(self._client.left_out)
        with replacing(self.folder / "state.json") as target:
            target.write(_STATE.dump_json(self.state))
            target.flush()
            os.fsync(target.fileno())

    def open_batches(self) -> list[BatchState]:
        """Return the batches that are not settled."""
        return [batch for batch in self.state.batches if batch.stage != "settled"]

    # --- evaluations on the replies so far

    def progress(
        self, evaluations: Iterable[Evaluation]
    ) -> Iterator[tuple[Evaluation, Outcome | dict[str, LLMRequest]]]:
        """Yield each evaluation's outcome, which is kept, or the requests that it waits for, by their `reply_key`."""
        with ThreadPoolExecutor(_EMBEDDING_THREADS, "ragstone-embed") as pool:  # embedders make them wait
            ahead: deque[tuple[Evaluation, Future[Outcome | dict[str, LLMRequest]]]] = deque()
            for evaluation in evaluations:
                ahead.append((evaluation, pool.submit(self._progress, evaluation)))
                if len(ahead) >= _EMBEDDING_AHEAD:
                    first, future = ahead.popleft()
                    yield first, future.result()
            for first, future in ahead:
                yield first, future.result()

    def _progress(self, evaluation: Evaluation) -> Outcome | dict[str, LLMRequest]:
        kept = self._journal.outcome(evaluation.key)
        if kept is not None:
            return kept
        meter = Meter()
        try:
            progress = self._run(evaluation, meter)
        except (JournalError, EmbedderError):
            raise
        except Exception as error:
            progress = unscored(evaluation.metric, error, meter)
        if not isinstance(progress, dict):
            self._journal.put_outcome(evaluation.key, progress)
        return progress

    def _run(self, evaluation: Evaluation, meter: Meter) -> Outcome | dict[str, LLMRequest]:
        """Run a flow from its start until a reply is missing."""
        flow = evaluation.metric.flow(evaluation.row.sample)
        replies: tuple[object, ...] | None = None
        paid: set[str] = set()
        try:
            while True:
                step = advance(flow, replies)
                if not isinstance(step, tuple):
                    return step.model_copy(update={"usage": meter.usage()})
                keys = [reply_key(r, self._judge, evaluation.draw) if isinstance(r, LLMRequest) else "" for r in step]
                kept = {key: self._journal.reply(key) for key in keys if key}
                missing = {
                    key: of_draw(request, evaluation.draw)
                    for key, request in zip(keys, step, strict=True)
                    if isinstance(request, LLMRequest) and kept[key] is None
                }
                for key, request in missing.items():
                    if (state := self.state.requests.get(key)) is not None and state.given_up:
                        raise CannotScore("judge_error", f"{request.task}: {state.problem}")
                if missing:
                    return missing
                meter.asking(step)
                replies = tuple(
                    [
                        self._embed(evaluation.metric, request)
                        if isinstance(request, EmbedRequest)
                        else self._counted(key, kept[key], evaluation, paid, meter)
                        for key, request in zip(keys, step, strict=True)
                    ]
                )
                meter.answered(replies)
        finally:
            flow.close()

    def _counted(
        self, key: str, reply: LLMReply | None, evaluation: Evaluation, paid: set[str], meter: Meter
    ) -> LLMReply | None:
        """Return the reply, with its tokens if it was asked for this evaluation and is not counted yet."""
        state = self.state.requests.get(key)
        if reply is None or (state is not None and state.payer == evaluation.key and key not in paid):
            paid.add(key)
            return reply
        meter.spared()
        return replace(reply, input_tokens=0, output_tokens=0)

    def _embed(self, metric: Metric, request: EmbedRequest) -> object:
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

    # --- requests of a round

    def gather(self, evaluations: Iterable[Evaluation], max_requests: int, max_bytes: int, *, try_first: bool) -> bool:
        """Write down all requests that evaluations wait for; return whether there are any."""
        batches = self.state.batches
        most = min(max_requests, self.state.max_requests or max_requests)
        files = RequestFiles(self.folder, len(batches) + 1, most, max_bytes)
        wanted: set[str] = set()
        refused = answered = 0
        try:
            for evaluation, missing in self.progress(evaluations):
                for key, request in missing.items() if isinstance(missing, dict) else ():
                    if key in wanted:
                        continue  # another evaluation of this round asks it
                    wanted.add(key)
                    state = self.state.requests.setdefault(key, RequestState(evaluation.key, request.choices))
                    if try_first and sorted(self._client.chat_call(request).optional) not in self.state.tried:
                        refused = self._ask_now(key, request, state, refused)
                        if state.batch is None:
                            answered += 1
                            continue
                    call = self._client.chat_call(request)  # the client may have learned what to leave out
                    state.used = sorted(call.optional)
                    state.batch = files.add(key, call.body)
                    if state.batch is None:
                        state.problem = "it is longer than a batch's file may be (max_bytes)"
                        state.give_up()
        finally:
            written = files.close()
        round_ = 1 + (batches[-1].round if batches else 0)
        batches += [BatchState(number, round_, name, lines, secrets.token_hex(16)) for number, name, lines in written]
        self.save()
        return bool(written or answered)

    def _ask_now(self, key: str, request: LLMRequest, state: RequestState, refused: int) -> int:
        """Ask a request now, which shows a wrong key, model or parameter in seconds; return refusals in a row."""
        self.save()  # also after a kill it is known which evaluation pays for the call
        try:
            reply = self._client.generate(request)
        except load_openai().APIStatusError as error:
            if error.status_code not in _REQUEST_AT_FAULT or refused + 1 >= _REFUSED_IN_A_ROW:
                raise
            state.errors += 1
            state.problem = describe(error, self._client.secrets)
            return refused + 1
        self.state.tried.append(sorted(self._client.chat_call(request).optional))
        self._journal.put_reply(key, reply)
        state.batch = None
        self.save()
        return 0

    # --- batches

    def advance(self, batch: BatchState) -> None:
        """Do what can be done now: upload the batch, begin it, look how it is doing, take its replies."""
        endpoint = self._client.batches
        if batch.stage == "beginning":  # the process was killed then, or the answer was lost
            facts = endpoint.find(batch.mark)
            if facts is None:
                _log.warning("%s: the server knows no batch of it; it is begun again", batch.file)
                batch.stage = "uploaded"
            else:
                self._at(batch, "begun", facts)
        if batch.stage == "written":
            batch.uploaded = endpoint.upload(self.folder / batch.file)
            self._at(batch, "uploaded")
        if batch.stage == "uploaded":
            self._at(batch, "beginning")
            try:
                facts = endpoint.begin(batch.uploaded, batch.mark)
            except load_openai().APIStatusError as error:
                if error.status_code < 500 and error.status_code not in _UNCLEAR:
                    self._at(batch, "written")  # certainly refused, perhaps because of its file
                raise
            self._at(batch, "begun", facts)
            _log.info("%s: %d requests in batch %s, of round %d", batch.file, batch.lines, facts.id, batch.round)
        elif batch.stage == "begun":
            try:
                facts = endpoint.look(batch.id)
            except load_openai().NotFoundError:
                facts = BatchFacts(batch.id, "failed", problems=("the server does not know the batch any more",))
            batch.status, batch.completed, batch.failed = facts.status, facts.completed, facts.failed
            batch.problem = "; ".join(facts.problems)[:500]
            if facts.ended:
                self._settle(batch, facts)

    def _at(self, batch: BatchState, stage: str, facts: BatchFacts | None = None) -> None:
        batch.stage = stage
        if facts is not None:
            batch.id, batch.status = facts.id, facts.status
        self.save()

    def _settle(self, batch: BatchState, facts: BatchFacts) -> None:
        """Take the replies of a batch that has ended; requests without one wait for the next batch."""
        batch.replies = 0
        for name in (facts.output_file, facts.error_file):
            try:
                content = self._client.batches.download(name) if name else b""
            except load_openai().NotFoundError:
                batch.problem = f"{batch.problem} the server does not hold {name} any more".strip()
                continue
            batch.replies += sum(self._take(answer, batch.number) for answer in read_answers(content))
        for request in self.state.requests.values():
            if request.batch == batch.number:
                request.batch = 0
                if batch.status != "failed":  # a batch refused as a whole costs nothing
                    request.lost += 1
                    request.problem = f"its batch {batch.id} ended without an answer to it ({batch.status})"
                    if request.lost >= _MOST_LOST:
                        request.give_up()
        if batch.status == "failed" and "token_limit_exceeded" in batch.problem:
            self.state.max_requests = max(1, batch.lines // 2)  # halves may fit one after the other
        self._at(batch, "settled")
        _log.info("%s: %s, %d replies of %d", batch.file, batch.status, batch.replies, batch.lines)
        if batch.problem:
            _log.warning("%s: %s", batch.file, batch.problem)

    def _take(self, answer: AnswerLine, batch: int) -> bool:
        """Take one answer; return whether it is a reply."""
        request = self.state.requests.get(answer.key)
        if request is None or request.batch != batch or answer.error.get("code") in _NOT_RUN:
            return False  # of another run or batch, there twice, or not run
        reply = answer.reply(request.choices)
        if reply is not None:
            self._journal.put_reply(answer.key, reply)
            request.batch = None
            return True
        request.batch = 0
        optional = frozenset(name for name in get_args(Droppable) if name in request.used)
        if not self._client.learn(ChatCall({"model": self._client.model}, optional), answer.status, answer.body):
            request.errors += 1  # else the next batch asks it without what the model does not take
            request.problem = without_keys(answer.problem, self._client.secrets)[:500]
            if request.errors >= _MOST_ERRORS:
                request.give_up()
        return False

    def look_back(self, batches: Sequence[BatchState], wait: float) -> None:
        """After a round whose batches were all refused: wait before the next, or give up."""
        state = self.state
        state.refusals = state.refusals + 1 if all(batch.status == "failed" for batch in batches) else 0
        if state.refusals >= _MOST_REFUSALS:
            for request in state.requests.values():
                if request.batch == 0:
                    request.problem = f"the provider refused its batch {state.refusals} times: {batches[-1].problem}"
                    request.give_up()
        elif state.refusals:
            state.not_before = time.time() + wait * 2.0 ** (state.refusals - 1)
        self.save()
