"""Flows on replies that came earlier: each is run from its start until a reply is missing, as often as it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, cast

from ragstone.batch.provider.state import State
from ragstone.errors import describe, secrets_of, unscored
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.draws import of_draw
from ragstone.judging.drivers import advance, needed
from ragstone.judging.flow import CannotScore, EmbedRequest, Meter, Round
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome
from ragstone.sample import Row
from ragstone.store.journal.file import JournalError
from ragstone.store.journal.journal import Journal
from ragstone.store.journal.keys import reply_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EMBEDDER_IS_DOWN = 10


class Evaluation(NamedTuple):
    """One scoring of one sample by one metric, and its `outcome_key`."""

    row: Row
    metric: Metric
    draw: int
    key: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far an evaluation came.

    Attributes:
        outcome: What it gave; None if it waits for replies.
        missing: The requests that it waits for, as they are to be asked, by their `reply_key`.
        vectors: What the embedder gave for each embedding request so far, by its place.
    """

    outcome: Outcome | None
    missing: Mapping[str, LLMRequest] = field(default_factory=dict[str, LLMRequest])
    vectors: "Mapping[int, NDArray[np.float32]]" = field(default_factory=dict[int, "NDArray[np.float32]"])


class EmbedderError(RuntimeError):
    """The embedder failed on many samples in a row; nothing is lost, run again when it is back."""


class Flows:
    """Runs evaluations on the replies that there are. Any thread may use it.

    Args:
        journal: Holds the replies and the outcomes.
        state: Knows which requests were given up, and what the embedder returned.
        judge: The judge's `judge_key`.
    """

    def __init__(self, journal: Journal, state: State, judge: str) -> None:
        self._journal = journal
        self._state = state
        self._judge = judge
        self._embedder_failures = 0

    def progress(self, evaluation: Evaluation) -> Progressed:
        """Run an evaluation as far as it goes; keep its outcome, if it gives one.

        Raises:
            EmbedderError: The embedder keeps failing.
            JournalError: The journal cannot be read or written.
        """
        kept = self._journal.outcome(evaluation.key)
        if kept is not None:
            return Progressed(kept)
        run = _Run(evaluation)
        try:
            progressed = self._run(run)
        except (JournalError, EmbedderError):
            raise
        except Exception as error:
            progressed = Progressed(unscored(evaluation.metric, error, run.meter))
        if progressed.outcome is not None:
            self._journal.put_outcome(evaluation.key, progressed.outcome)
        return progressed

    def _run(self, run: "_Run") -> Progressed:
        flow = run.evaluation.metric.flow(run.evaluation.row.sample)
        replies: tuple[object, ...] | None = None
        try:
            while True:
                done, value = advance(flow, replies)
                if done:
                    return Progressed(cast("Outcome", value).model_copy(update={"usage": run.meter.usage()}))
                round_ = cast("Round", value)
                asked = [self._keyed(run, request) for request in round_ if isinstance(request, LLMRequest)]
                found = [self._journal.reply(key) for key, _ in asked]
                missing = {key: request for (key, request), reply in zip(asked, found, strict=True) if reply is None}
                self._check(missing)
                if missing:
                    return Progressed(None, missing, run.vectors)
                run.meter.asking(round_)
                said = iter(
                    [self._paid(run, key, reply) for (key, _), reply in zip(asked, found, strict=True) if reply]
                )
                replies = tuple([self._embedded(run, r) if isinstance(r, EmbedRequest) else next(said) for r in round_])
                run.meter.answered(replies)
        finally:
            flow.close()

    def _keyed(self, run: "_Run", request: LLMRequest) -> tuple[str, LLMRequest]:
        draw = run.evaluation.draw
        key = reply_key(request, self._judge, draw)
        return key, of_draw(request, draw)

    def _check(self, missing: Mapping[str, LLMRequest]) -> None:
        for key, request in missing.items():
            state = self._state.request(key)
            if state is not None and state.standing == "given_up":
                raise CannotScore("judge_error", f"{request.task}: {state.problem}")

    def _paid(self, run: "_Run", key: str, reply: LLMReply) -> LLMReply:
        """Return the reply, with its tokens if it was asked for this evaluation and not counted yet."""
        state = self._state.request(key)
        if state is not None and state.payer == run.evaluation.key and key not in run.paid:
            run.paid.add(key)
            return reply
        run.meter.spared()
        return replace(reply, input_tokens=0, output_tokens=0)

    def _embedded(self, run: "_Run", request: EmbedRequest) -> "NDArray[np.float32]":
        place = len(run.vectors)
        vectors = self._state.vectors(run.evaluation.key, place)
        if vectors is None:
            embedder = needed(run.evaluation.metric._embedder())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            try:
                vectors = embedder.embed(request.texts)
            except Exception as error:
                self._embedder_failures += 1
                if self._embedder_failures < _EMBEDDER_IS_DOWN:
                    raise
                last = describe(error, secrets_of(embedder))
                raise EmbedderError(
                    f"the embedder {embedder.model!r} failed on {self._embedder_failures} samples in a row, at last "
                    f"with {last}. What was judged is safe: run again when it is back"
                ) from error
            self._embedder_failures = 0
        run.vectors[place] = vectors
        return vectors


class _Run:
    __slots__ = ("evaluation", "meter", "paid", "vectors")

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.meter = Meter()
        self.paid: set[str] = set()
        self.vectors: dict[int, NDArray[np.float32]] = {}
