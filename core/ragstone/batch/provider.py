"""`ProviderBatch`: a data set judged through a provider's batch endpoint, at half the price and some hours later."""

import json
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import groupby, islice, takewhile
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError

from ragstone.clients.chat import ChatCall, Droppable, read_completion
from ragstone.clients.compatible import BatchFacts, OpenAICompatible
from ragstone.clients.connection import load_openai
from ragstone.errors import LONGEST, CannotScore, describe, unscored, without_keys
from ragstone.identity import identity_json, metric_key, outcome_key, reply_key, sample_key
from ragstone.judge import LLMRequest, Meter
from ragstone.judging.flow import EmbedRequest, advance, needed, of_draw
from ragstone.metrics.base import Metric, check_count, check_number
from ragstone.outcome import Outcome
from ragstone.plain import as_count, as_dict
from ragstone.registry import make_llm
from ragstone.reporting.report import Report
from ragstone.sample import BadLine, Row
from ragstone.sources import Source, rows_of
from ragstone.store.journal import Journal, JournalError
from ragstone.store.private_files import lock_file, make_private_folder, open_private, replacing
from ragstone.store.record import Record

_log = logging.getLogger(__name__)
_PATIENCE = 20  # failures of the network in a row that `run` waits out
_PASSING = (408, 409, 429)
_MOST_ASKED = 3
_MOST_REFUSALS = 4
_REQUEST_AT_FAULT = (400, 413, 422)
_NOT_RUN = ("batch_expired", "batch_cancelled", "batch_canceled", "request_cancelled")
_THREADS = 8  # embedders make evaluations wait


class FolderError(RuntimeError):
    """The folder of a run cannot be used; the message says why and what to do."""


@dataclass(slots=True)
class BatchState:
    """One batch: a file of requests on its way.

    Attributes:
        number: Counted from 1.
        round: The round of requests that it is of, from 1.
        file: The name of the file of requests in the run's folder.
        mark: By which the provider's list of batches shows it.
        lines: Requests in it.
        stage: How far it is: "written", "beginning", "begun" or "settled".
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
    mark: str
    lines: int = 0
    stage: str = "written"
    id: str = ""
    status: str = ""
    completed: int = 0
    failed: int = 0
    replies: int = 0
    problem: str = ""


@dataclass(slots=True)
class _Asked:
    """A request to the judge."""

    payer: str  # the key of the evaluation that asked first; its usage counts the tokens
    choices: tuple[str, ...] | None
    form: list[Droppable] | None = None  # what it was sent with that can be left out
    batch: int = 0  # the one that it is in
    times: int = 0  # that it was asked without an answer
    problem: str = ""


@dataclass(slots=True)
class _State:
    """What a run must know again after it was killed: the file `state.json`."""

    version: Literal[3] = 3
    run: dict[str, Any] = field(default_factory=dict[str, Any])
    batches: list[BatchState] = field(default_factory=list[BatchState])
    requests: dict[str, _Asked] = field(default_factory=dict[str, _Asked])  # by `reply_key`
    left_out: list[Droppable] = field(default_factory=list[Droppable])


_STATE = TypeAdapter(_State)


class _Evaluation(NamedTuple):
    row: Row
    metric: Metric
    draw: int
    key: str


_Progress = Outcome | dict[str, LLMRequest]
"""What became of an evaluation, or the requests that it waits for by their `reply_key`."""


class ProviderBatch:
    """Scores a data set through the batch endpoint of an OpenAI-compatible provider (files and batches).

    Metrics ask in rounds. The requests of all samples' first rounds go up as one file (as several where they are too
    many for one), their replies come down when the provider is done, then the second rounds go up, and so on: as many
    batches, one after the other, as the longest metric has rounds (`estimate` says how many). Embedders are called
    directly.

    Everything is written down in the folder before and after it is done. A run that was killed at any moment, or left
    with batches under way, goes on when it is run again with the same samples, metrics and folder: it looks after the
    same batches, and asks nothing again that was answered. One process at a time works in a folder.

    A request that is answered with an error, or that an expired or cancelled batch left unanswered, is asked again, up
    to three times in all; then its samples are `Unscored("judge_error")` and the others go on. A batch that the
    provider refuses as a whole is tried four times, in halves if it was too many tokens at once. Parameters that the
    model does not take are left out, as by `OpenAICompatible`. Replies and outcomes are in `journal.db` in the folder:
    `evaluate(samples, metrics, journal=FOLDER/"journal.db")` asks directly what could not be had here.

    Args:
        client: The judge, or its name ("openai:gpt-5-mini"). The metrics' own judge must be of the same `identity`.
        folder: Where the run is kept; made when it is not there. On a local disk.
        poll_seconds: How long `run` waits between two looks.
        max_requests: Requests in one batch at most.
        max_bytes: Bytes in one file of requests at most.
        try_first: Whether the first request of each form (a few in all) is asked directly, at full price. It shows in
            seconds what else would be known after hours: a wrong key or model, or parameters that it does not take.
            False for models that answer in batches only.

    Raises:
        ImportError: The `openai` package is not installed.
        TypeError: `client` is no `OpenAICompatible` and names none.
        ValueError: A number is out of range.

    Example:
        >>> judge = OpenAICompatible("gpt-5-mini", api_key="sk-...")
        >>> batch = ProviderBatch(judge, folder="run1")
        >>> report = batch.run("rows.jsonl", [ContextRelevancy(llm=judge)])  # doctest: +SKIP
    """

    def __init__(
        self,
        client: OpenAICompatible | str,
        *,
        folder: str | PathLike[str],
        poll_seconds: float = 30.0,
        max_requests: int = 50_000,
        max_bytes: int = 200_000_000,
        try_first: bool = True,
    ) -> None:
        judge = make_llm(client) if isinstance(client, str) else client
        if not isinstance(judge, OpenAICompatible):
            raise TypeError("client: pass OpenAICompatible(MODEL), or its name, such as openai:MODEL")
        check_number("poll_seconds", poll_seconds, 0, 86_400)
        check_count("max_requests", max_requests)
        check_count("max_bytes", max_bytes)
        self._client = judge
        self._folder = Path(folder)
        self._poll_seconds = poll_seconds
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._try_first = try_first
        self._run: _Run | None = None

    def run(
        self,
        samples: Source,
        metrics: Sequence[Metric],
        *,
        fields: Mapping[str, str] | None = None,
        repeat: int = 1,
        name: str = "",
    ) -> Report:
        """Score all samples, waiting for as long as it takes: hours. May be killed, and run again.

        A network that fails for some minutes meanwhile is waited for.

        Args:
            samples: As for `evaluate`, but no asynchronous iterable. They are read once for each round.
            metrics: What to score by; no two of one name.
            fields: The key or column by the sample's field, where it is none of the known names.
            repeat: Scorings of each sample by each metric, which share no replies.
            name: What to call the report.

        Raises:
            FolderError: The folder holds another run, or another process is at work in it.
            openai.OpenAIError: The provider refuses, or cannot be reached.
            JournalError: The journal in the folder cannot be read or written.
            TypeError: The samples or a metric are none.
            ValueError: A metric's judge is of another model, or two metrics have one name.
        """
        self.start(samples, metrics, fields=fields, repeat=repeat)
        patience = 0  # until the provider was reached once
        while True:
            try:
                if self.step():
                    return self.report(name)
                patience = _PATIENCE
            except load_openai().APIError as error:
                patience -= 1
                if patience < 0 or not _passes(error):
                    raise
                _log.warning("no answer, trying again in %g s: %s", self._poll_seconds, describe(error))
            time.sleep(self._poll_seconds)

    def start(
        self, samples: Source, metrics: Sequence[Metric], *, fields: Mapping[str, str] | None = None, repeat: int = 1
    ) -> None:
        """Begin a run in the folder, or take up the one that is there; nothing is sent yet. Arguments as for `run`.

        Raises:
            FolderError: The folder holds a run of other samples, metrics, draws or another judge.
        """
        check_count("repeat", repeat)
        self._check_metrics(metrics)
        rows = rows_of(samples, fields)
        if isinstance(rows, AsyncIterator):
            raise TypeError("samples: is an asynchronous iterable; pass a list, a table or a file")
        if isinstance(samples, Iterator) or hasattr(samples, "read_next_batch"):
            samples = list(rows)  # it can be read once only, and every round reads it
        run = _Run(samples, fields, {metric_key(metric): metric for metric in metrics}, repeat)
        facts = {
            "judge": identity_json(self._client),
            "metrics": {metric.name: key for key, metric in run.metrics.items()},
            "repeat": repeat,
            "samples": run.digest(),
        }
        with self._opened() as step:
            known = step.state.run or facts
            if known != facts:
                others = " and ".join(name for name, value in facts.items() if known.get(name) != value)
                raise FolderError(f"{self._folder}: holds a run of other {others}; take another folder for this one")
            step.state.run = facts
            step.save()
        self._run = run

    def step(self) -> bool:
        """Do all that can be done without waiting; return whether the run is done.

        Call `start` and `step` every hour or so, as from cron, until it returns True.

        Raises:
            RuntimeError: `start` was not called.
            Exception: As `run`. Nothing is lost: make the step again.
        """
        run = self._begun()
        with self._opened() as step:
            for batch in step.open_batches():
                step.advance(batch)
            if step.open_batches():
                step.save()
                return False
            while not step.open_batches():
                if not step.gather(run.evaluations(), self._max_requests, self._max_bytes, try_first=self._try_first):
                    return True
            for batch in step.open_batches():
                step.advance(batch)
            return False

    def results(self) -> Iterator[Record]:
        """Yield each result, in the order of the input; before the run is done, those that there are.

        Raises:
            RuntimeError: `start` was not called.
        """
        run = self._begun()
        with self._opened() as step:
            for evaluation, outcome in step.progress(run.evaluations()):
                if not isinstance(outcome, dict):
                    row = evaluation.row
                    sample_id = str(row.line) if row.sample.id is None else row.sample.id
                    yield Record(sample_id, outcome, self._client.model, row.line - 1, evaluation.draw)

    def report(self, name: str = "") -> Report:
        """Return the report of the results that there are; `step` says when it is all.

        Raises:
            RuntimeError: `start` was not called.
        """
        run = self._begun()
        rows = list(run.rows())
        samples = {row.line - 1: row.sample for row in rows if isinstance(row, Row)}
        bad = [row for row in rows if isinstance(row, BadLine)]
        return Report.of(self.results(), run.metrics.values(), samples=samples, bad_rows=bad, name=name)

    @property
    def batches(self) -> tuple[BatchState, ...]:
        """The batches so far, as of the last step."""
        with self._opened() as step:
            return tuple(step.state.batches)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client!r}, folder={str(self._folder)!r})"

    @contextmanager
    def _opened(self) -> Generator["_Step", None, None]:
        make_private_folder(self._folder)
        with open_private(self._folder / "lock", "wb") as lock:
            if not lock_file(lock.fileno()):
                raise FolderError(f"{self._folder}: another process is at work in it; wait for it to end")
            path = self._folder / "state.json"
            try:
                state = _STATE.validate_json(path.read_bytes()) if path.exists() else _State()
            except ValidationError:
                raise FolderError(
                    f"{path}: is damaged, or another version of ragstone began this run; take another folder"
                ) from None
            self._client.leave_out(dict.fromkeys(state.left_out, "an earlier step was refused it"))
            with Journal(self._folder / "journal.db") as journal:
                yield _Step(self._client, self._folder, state, journal)

    def _begun(self) -> "_Run":
        if self._run is None:
            raise RuntimeError("no run: call start() with the samples and metrics first, also to take one up again")
        return self._run

    def _check_metrics(self, metrics: Sequence[Any]) -> None:
        if not metrics or any(not isinstance(each, Metric) for each in metrics):
            raise TypeError("metrics: pass a list of metrics, such as [ContextRelevancy(llm=client)]")
        if len({metric.name for metric in metrics}) < len(metrics):
            raise ValueError("metrics: holds two of one name; run each in a folder of its own")
        for metric in metrics:
            if identity_json(metric.judge) != identity_json(self._client):
                same = metric.judge.model == self._client.model
                raise ValueError(
                    f"{metric.name}: its judge is {metric.judge.model!r}, and the batch asks {self._client.model!r}"
                    f"{' elsewhere, or with other settings' if same else ''}; give it the client of the batch: "
                    "llm=client"
                )


@dataclass(frozen=True, slots=True)
class _Run:
    """What is run: given anew in each process, and the same each time. Metrics by their `metric_key`."""

    samples: Source
    fields: Mapping[str, str] | None
    metrics: Mapping[str, Metric]
    repeat: int

    def rows(self) -> Iterator[Row | BadLine]:
        return cast("Iterator[Row | BadLine]", rows_of(self.samples, self.fields))

    def evaluations(self) -> Iterator[_Evaluation]:
        for row in self.rows():
            if isinstance(row, Row):
                key = sample_key(row.sample)
                for of_metric, metric in self.metrics.items():
                    for draw in range(self.repeat):
                        yield _Evaluation(row, metric, draw, outcome_key(key, of_metric, draw))

    def digest(self) -> str:
        """Return what tells one data set from another: its texts, ids and order."""
        digest = blake2b(digest_size=16)
        for row in self.rows():
            content = sample_key(row.sample) + repr(row.sample.id) if isinstance(row, Row) else "bad"
            digest.update(f"{row.line} {content}\n".encode("utf-8", "backslashreplace"))
        return digest.hexdigest()


class _Step:
    """Works in a run's locked folder: each stage is written down before and after it is done."""

    def __init__(self, client: OpenAICompatible, folder: Path, state: _State, journal: Journal) -> None:
        self.state = state
        self._client, self._folder, self._journal = client, folder, journal
        self._judge = identity_json(client)
        self._refused = 0  # direct requests in a row
        self._hopeless = False  # the provider refuses every batch

    def save(self) -> None:
        """Write the state down, after the replies that it knows of."""
        self._journal.flush()
        self.state.left_out = cast("list[Droppable]", sorted(self._client.left_out))
        with replacing(self._folder / "state.json") as target:
            target.write(_STATE.dump_json(self.state))
            _sync(target)

    def open_batches(self) -> list[BatchState]:
        return [batch for batch in self.state.batches if batch.stage != "settled"]

    # --- evaluations on the replies so far

    def progress(self, evaluations: Iterator[_Evaluation]) -> Iterator[tuple[_Evaluation, _Progress]]:
        """Yield what became of each evaluation."""
        rounds = [list(batches) for _, batches in groupby(reversed(self.state.batches), lambda batch: batch.round)]
        lost = takewhile(lambda batches: all(batch.status == "failed" for batch in batches), rounds)
        self._hopeless = sum(1 for _ in lost) >= _MOST_REFUSALS
        with ThreadPoolExecutor(_THREADS, "ragstone-embed") as pool:
            while some := list(islice(evaluations, 8 * _THREADS)):
                yield from zip(some, pool.map(self._progress, some), strict=True)

    def _progress(self, evaluation: _Evaluation) -> _Progress:
        kept = self._journal.outcome(evaluation.key)
        if kept is not None:
            return kept
        meter = Meter()
        try:
            progress = self._follow(evaluation, meter)
        except JournalError:
            raise
        except Exception as error:
            progress = unscored(evaluation.metric, error, meter)
        if not isinstance(progress, dict):
            self._journal.put_outcome(evaluation.key, progress)
        return progress

    def _follow(self, evaluation: _Evaluation, meter: Meter) -> _Progress:
        """Run a flow from its start until a reply is missing."""
        _, metric, draw, payer = evaluation
        counted: set[str] = set()

        def answer(request: LLMRequest | EmbedRequest) -> object:
            if isinstance(request, EmbedRequest):
                return needed(metric.judge_embedder).embed(request.texts)
            key = reply_key(request, self._judge, draw)
            asked = self.state.requests.get(key)
            if asked is not None and asked.payer == payer and key not in counted:
                counted.add(key)
                return kept[key]
            meter.spared()
            return replace(kept[key], input_tokens=0, output_tokens=0)

        with closing(metric.flow(evaluation.row.sample)) as flow:
            replies: tuple[object, ...] | None = None
            while True:
                round_ = advance(flow, replies)
                if not isinstance(round_, tuple):
                    return round_.model_copy(update={"usage": meter.usage()})
                requests = {reply_key(r, self._judge, draw): r for r in round_ if isinstance(r, LLMRequest)}
                kept = {key: reply for key in requests if (reply := self._journal.reply(key)) is not None}
                missing = {key: of_draw(requests[key], draw) for key in requests if key not in kept}
                for key, request in missing.items():
                    asked = self.state.requests.get(key)
                    if asked is not None and (self._hopeless or asked.times >= _MOST_ASKED):
                        raise CannotScore("judge_error", f"{request.task}: {asked.problem}")
                if missing:
                    return missing
                meter.asking(round_)
                replies = tuple([answer(request) for request in round_])
                meter.answered(replies)

    # --- requests of a round

    def gather(self, evaluations: Iterator[_Evaluation], max_requests: int, max_bytes: int, *, try_first: bool) -> bool:
        """Write down all requests that evaluations wait for; return whether there are any."""
        batches, requests = self.state.batches, self.state.requests
        halves = [max(1, batch.lines // 2) for batch in batches if "token_limit_exceeded" in batch.problem]
        most = min([max_requests, *halves])
        round_ = 1 + (batches[-1].round if batches else 0)
        tried = {frozenset(asked.form) for asked in requests.values() if asked.form is not None}
        wanted: set[str] = set()
        written: list[BatchState] = []
        targets: list[IO[bytes]] = []
        answered = size = 0
        with ExitStack() as files:
            for evaluation, progress in self.progress(evaluations):
                for key, request in progress.items() if isinstance(progress, dict) else ():
                    if key in wanted:
                        continue  # another evaluation of this round asks it
                    wanted.add(key)
                    asked = requests.setdefault(key, _Asked(evaluation.key, request.choices))
                    new = try_first and self._client.chat_call(request).optional not in tried
                    if new and self._ask_now(key, request, asked):
                        tried.add(self._client.chat_call(request).optional)
                        answered += 1
                        continue
                    call = self._client.chat_call(request)  # the client may have learned what to leave out
                    asked.form = sorted(call.optional)
                    body = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": call.body}
                    # Half a surrogate pair cannot be encoded; its escape is good JSON.
                    line = json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
                    if len(line) > max_bytes:
                        asked.times, asked.problem = _MOST_ASKED, "it is longer than a batch's file may be (max_bytes)"
                        continue
                    if not written or written[-1].lines >= most or size + len(line) > max_bytes:
                        files.close()
                        number = len(batches) + len(written) + 1
                        written.append(BatchState(number, round_, f"requests-{number:05}.jsonl", secrets.token_hex(16)))
                        targets.append(files.enter_context(open_private(self._folder / written[-1].file, "wb")))
                        files.callback(_sync, targets[-1])
                        size = 0
                    targets[-1].write(line)
                    size += len(line)
                    written[-1].lines += 1
                    asked.batch = written[-1].number
        batches += written
        self.save()
        return bool(written or answered)

    def _ask_now(self, key: str, request: LLMRequest, asked: _Asked) -> bool:
        """Ask a request now, which shows a wrong key, model or parameter in seconds; return whether it is answered."""
        self.save()  # also after a kill it is known which evaluation pays for the call
        try:
            reply = self._client.generate(request)
        except load_openai().APIStatusError as error:
            self._refused += 1
            if error.status_code not in _REQUEST_AT_FAULT or self._refused >= _MOST_ASKED:
                raise
            return False
        self._refused = 0
        asked.form = sorted(self._client.chat_call(request).optional)
        self._journal.put_reply(key, reply)
        self.save()
        return True

    # --- batches

    def advance(self, batch: BatchState) -> None:
        """Do what can be done now: upload the batch, begin it, look how it is doing, take its replies."""
        endpoint = self._client.batches
        if batch.stage == "begun":
            try:
                facts = endpoint.look(batch.id)
            except load_openai().NotFoundError:
                facts = BatchFacts(batch.id, "failed", problem="the server does not know the batch any more")
            batch.status, batch.completed, batch.failed = facts.status, facts.completed, facts.failed
            batch.problem = facts.problem
            if facts.ended:
                self._settle(batch, facts.files)
            return
        begun = None
        if batch.stage == "beginning":  # the process was killed then, or the answer was lost
            begun = endpoint.find(batch.mark)
            if begun is None:
                _log.warning("%s: the server knows no batch of it; it is begun again", batch.file)
        if begun is None:
            uploaded = endpoint.upload(self._folder / batch.file)
            batch.stage = "beginning"
            self.save()
            begun = endpoint.begin(uploaded, batch.mark)
        batch.stage, batch.id, batch.status = "begun", begun.id, begun.status
        self.save()
        _log.info("%s: %d requests in batch %s, of round %d", batch.file, batch.lines, batch.id, batch.round)

    def _settle(self, batch: BatchState, files: Iterable[str]) -> None:
        """Take the replies of a batch that has ended; requests without one wait for the next batch."""
        batch.replies = 0
        for name in files:
            try:
                content = self._client.batches.download(name)
            except load_openai().NotFoundError:
                batch.problem = f"{batch.problem} the server does not hold {name} any more".strip()
                continue
            batch.replies += sum(self._take(line, batch.number) for line in content.split(b"\n"))
        for asked in self.state.requests.values():
            if asked.batch == batch.number:
                asked.batch = 0
                asked.times += batch.status != "failed"  # a batch refused as a whole costs nothing
                asked.problem = f"its batch ended without an answer to it ({batch.status}) {batch.problem}".strip()
        batch.stage = "settled"
        self.save()
        _log.info("%s: %s, %d replies of %d", batch.file, batch.status, batch.replies, batch.lines)
        if batch.problem:
            _log.warning("%s: %s", batch.file, batch.problem)

    def _take(self, line: bytes, batch: int) -> bool:
        """Take a line of a file of answers; return whether it is a reply."""
        try:
            answer = as_dict(json.loads(line))
        except (ValueError, RecursionError):
            return False
        key, error, response = (
            str(answer.get("custom_id")),
            as_dict(answer.get("error")),
            as_dict(answer.get("response")),
        )
        asked = self.state.requests.get(key)
        if asked is None or asked.batch != batch or error.get("code") in _NOT_RUN:
            return False  # of another run or batch, there twice, or not run
        asked.batch = 0
        status, body = as_count(response.get("status_code")) or 0, as_dict(response.get("body"))
        reply = read_completion(body, LLMRequest("", "", "", {}, choices=asked.choices)) if status == 200 else None
        if reply is not None:
            self._journal.put_reply(key, reply)
            return True
        call = ChatCall({"model": self._client.model}, frozenset(asked.form or ()))
        if not self._client.learn(call, status, body):  # else the next batch asks without what the model does not take
            why = error.get("message") or as_dict(body.get("error")).get("message") or body.get("error")
            asked.times += 1
            asked.problem = f"status {status}: {without_keys(str(why)[:LONGEST], self._client.secrets)[:500]}"
        return False


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _passes(error: Exception) -> bool:
    """Whether an error of the provider's may be gone in a minute."""
    if isinstance(error, load_openai().APIConnectionError):
        return True
    status = getattr(error, "status_code", 0)
    return status >= 500 or status in _PASSING
