"""`ProviderBatch`: a data set judged through a provider's batch endpoint, at half the price and some hours later."""

import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import cast

from ragstone.batch.provider.step import BatchState, Evaluation, FolderError, Step
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.connection import load_openai
from ragstone.errors import describe
from ragstone.keys import judge_key, metric_key, outcome_key, sample_key
from ragstone.metrics.base import Metric, check_count, check_number
from ragstone.registry import make_llm
from ragstone.reporting.report import Report
from ragstone.sample import BadLine, Row
from ragstone.sources import Source, rows_of
from ragstone.store.record import Record

_log = logging.getLogger(__name__)
_PATIENCE = 20
_PASSING = frozenset({408, 409, 429})


class ProviderBatch:
    """Scores a data set through the batch endpoint of an OpenAI-compatible provider (files and batches).

    Metrics ask in rounds. The requests of all samples' first rounds go up as one file (as several where they are too
    many for one), their replies come down when the provider is done, then the second rounds go up, and so on: as many
    batches, one after the other, as the longest metric has rounds (`estimate` says how many). Embedders are called
    directly.

    Everything is written down in the folder before and after it is done. A run that was killed at any moment, or left
    with batches under way, goes on when it is run again with the same samples, metrics and folder: it looks after the
    same batches, and asks nothing again that was answered. One process at a time works in a folder.

    A request that is answered with an error is asked once more in the next batch; when that fails too, its samples
    are `Unscored("judge_error")` and the others go on. What an expired or cancelled batch left unanswered is asked
    again, up to three times in all. A batch that the provider refuses as a whole is tried again later, four times,
    and in halves if it was too many tokens at once. Parameters that the model does not take are left out, as by
    `OpenAICompatible`. Replies and outcomes are in `journal.db` in the folder: `evaluate(samples, metrics,
    journal=FOLDER/"journal.db")` asks directly what could not be had here.

    Args:
        client: The judge, or its name ("openai:gpt-5-mini"). The metrics' own judge must be of the same `identity`.
        folder: Where the run is kept; made when it is not there. On a local disk.
        poll_seconds: How long `run` waits between two looks; also the first of the waits after a refused batch.
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
            EmbedderError: The embedder keeps failing.
            TypeError: The samples or a metric are none.
            ValueError: A metric's judge is of another model, or two metrics have one name.
        """
        self.start(samples, metrics, fields=fields, repeat=repeat)
        failures, reached = 0, False
        while True:
            try:
                if self.step():
                    return self.report(name)
                failures, reached = 0, True
            except load_openai().APIError as error:
                failures += 1
                if not reached or not _passes(error) or failures > _PATIENCE:
                    raise
                _log.warning(
                    "the provider cannot be reached, trying again in %g s: %s", self._poll_seconds, describe(error)
                )
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
            "judge": judge_key(self._client),
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
            waiting = step.open_batches()
            for batch in waiting:
                step.advance(batch)
            if step.open_batches():
                step.save()
                return False
            if waiting:
                step.look_back(waiting, self._poll_seconds)
            if time.time() < step.state.not_before:
                return False
            while not step.open_batches():
                limits = self._max_requests, self._max_bytes
                if not step.gather(run.evaluations(), *limits, try_first=self._try_first):
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

    def _opened(self) -> AbstractContextManager[Step]:
        return Step.opened(self._client, self._folder)

    def _begun(self) -> "_Run":
        if self._run is None:
            raise RuntimeError("no run: call start() with the samples and metrics first, also to take one up again")
        return self._run

    def _check_metrics(self, metrics: Sequence[Metric]) -> None:
        if not metrics or any(not isinstance(cast("object", each), Metric) for each in metrics):
            raise TypeError("metrics: pass a list of metrics, such as [ContextRelevancy(llm=client)]")
        if len({metric.name for metric in metrics}) < len(metrics):
            raise ValueError("metrics: holds two of one name; run each in a folder of its own")
        for metric in metrics:
            if judge_key(metric.judge) != judge_key(self._client):
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

    def evaluations(self) -> Iterator[Evaluation]:
        for row in self.rows():
            if isinstance(row, Row):
                key = sample_key(row.sample)
                for of_metric, metric in self.metrics.items():
                    for draw in range(self.repeat):
                        yield Evaluation(row, metric, draw, outcome_key(key, of_metric, draw))

    def digest(self) -> str:
        """Return what tells one data set from another: its texts, ids and order."""
        digest = blake2b(digest_size=16)
        for row in self.rows():
            content = sample_key(row.sample) + repr(row.sample.id) if isinstance(row, Row) else "bad"
            digest.update(f"{row.line} {content}\n".encode("utf-8", "backslashreplace"))
        return digest.hexdigest()


def _passes(error: Exception) -> bool:
    """Whether an error of the provider's may be gone in a minute."""
    if isinstance(error, load_openai().APIConnectionError):
        return True
    status = getattr(error, "status_code", 0)
    return status >= 500 or status in _PASSING
