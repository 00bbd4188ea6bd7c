"""What a batch would cost, with no judge asked."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, cast

from ragstone.batch.estimation.estimated import Estimate, MetricEstimate
from ragstone.batch.estimation.supposed import supposed_reply
from ragstone.errors import unscored
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.drivers import advance
from ragstone.judging.flow import EmbedRequest, Flow, Meter, Round
from ragstone.judging.prompt import tokens
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome, Unscored
from ragstone.sample import BadLine, Sample
from ragstone.sources import Source, rows_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PER = 1_000_000
_MOST_ROUNDS = 100  # a flow that asks until it likes an answer would never end here


def estimate(
    samples: Source,
    metrics: Sequence[Metric] | Metric,
    *,
    fields: Mapping[str, str] | None = None,
    repeat: int = 1,
    input_price: float | None = None,
    output_price: float | None = None,
) -> Estimate:
    """Return what scoring the samples would take: calls, rounds, tokens and money. Neither judge nor embedder is asked.

    Each metric is run on each sample, its calls answered by made-up replies. The requests of the first round do not
    depend on a reply: they are exact, in number and as prompts. What comes later rests on these assumptions, which
    are read from the schema of the asked reply, so that they hold for metrics of your own too:

    - `SummarizationScore`: one question for every two sentences of the source, at most 10.
    - `AlignmentCoverage`: one claim for every two sentences of the summary; `n_questions` questions.
    - `ResponseRelevancy`: `strictness` questions. `ContextRelevancy`: all of its calls are in the first round.
    - A question or claim is 80 characters long, the judge names one in ten of the numbered sentences (1 to 5).

    The real number may be half or double that. Tokens are a quarter of the UTF-8 bytes of prompt and reply; schemas
    sent beside the prompt, the reasoning of models that think first, second asks after replies that cannot be used,
    and embedding tokens are not in it. Nor is what is saved where equal requests share a reply (`evaluate` does so),
    or at a provider's batch endpoint, which takes half the price.

    Args:
        samples: As for `evaluate`; read once, in constant memory. No asynchronous iterable.
        metrics: What to score by.
        fields: The key or column by the sample's field, where it is none of the known names.
        repeat: Scorings of each sample by each metric.
        input_price: For a million prompt tokens.
        output_price: For a million reply tokens.

    Raises:
        TypeError: The samples are none, or asynchronous; a metric is none.
        ValueError: A price is negative or comes without the other; `repeat` is below 1; a file cannot be read.
    """
    listed = [metrics] if isinstance(metrics, Metric) else list(metrics)
    for metric in cast("list[object]", listed):
        if not isinstance(metric, Metric):
            raise TypeError(
                f"metrics: {type(metric).__name__} is no metric; pass objects such as ContextRelevancy(llm=llm)"
            )
    _check(repeat, input_price, output_price)
    rows = rows_of(samples, fields)
    if isinstance(rows, AsyncIterator):
        raise TypeError("samples: is an asynchronous iterable; estimate reads lists, generators, tables and files")
    found = [MetricEstimate(metric.name, metric.judge.model) for metric in listed]
    count = bad_rows = 0
    for row in rows:
        if isinstance(row, BadLine):
            bad_rows += 1
            continue
        count += 1
        for metric, total in zip(listed, found, strict=True):
            _add(total, metric, row.sample, repeat)
    if input_price is not None and output_price is not None:
        for total in found:
            total.cost = (total.input_tokens * input_price + total.output_tokens * output_price) / _PER
    return Estimate(tuple(found), count, bad_rows, repeat)


def _check(repeat: int, input_price: float | None, output_price: float | None) -> None:
    if not isinstance(cast("object", repeat), int) or repeat < 1:
        raise ValueError(f"repeat: {repeat!r} is not a whole number of at least 1")
    for name, price in (("input_price", input_price), ("output_price", output_price)):
        if price is not None and not (isfinite(price) and price >= 0):
            raise ValueError(f"{name}: {price!r} is no price; pass what a million tokens cost, such as 0.25")
    if (input_price is None) != (output_price is None):
        raise ValueError("input_price and output_price: pass both, for a million tokens each")


@dataclass(slots=True)
class _Seen:
    """The rounds of one evaluation: of each its judge calls, embedding calls, and tokens."""

    rounds: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])

    def add(self, round_: Round, replies: Sequence[object]) -> None:
        asked = [request for request in round_ if isinstance(request, LLMRequest)]
        written = [reply.text for reply in replies if isinstance(reply, LLMReply)]
        size = sum(tokens(request.system, request.user) for request in asked)
        self.rounds.append((len(asked), len(round_) - len(asked), size, sum(tokens(text) for text in written)))


def _add(total: MetricEstimate, metric: Metric, sample: Sample, repeat: int) -> None:
    """Add one sample, scored so many times."""
    total.evaluations += repeat
    seen = _Seen()
    outcome: Outcome | None = None
    try:
        outcome = _followed(metric.flow(sample), seen)
    except Exception as error:
        if not seen.rounds:  # a metric of somebody's own, which would raise in a run too
            outcome = unscored(metric, error, Meter())
    if not seen.rounds:
        if isinstance(outcome, Unscored):
            total.unscored[outcome.reason] += repeat
        return
    # Where a made-up reply was no good, the rounds after it asked for it again.
    lost = outcome is None or (isinstance(outcome, Unscored) and outcome.reason == "judge_unparseable")
    rounds = seen.rounds[:1] if lost else seen.rounds
    total.first_round_only += repeat * lost
    total.first_calls += repeat * rounds[0][0]
    total.first_input_tokens += repeat * rounds[0][2]
    total.calls += repeat * sum(calls for calls, _, _, _ in rounds)
    total.embed_calls += repeat * sum(calls for _, calls, _, _ in rounds)
    total.input_tokens += repeat * sum(size for _, _, size, _ in rounds)
    total.output_tokens += repeat * sum(size for _, _, _, size in rounds)
    total.rounds = max(total.rounds, sum(calls > 0 for calls, _, _, _ in rounds))


def _followed(flow: Flow[Outcome], seen: _Seen) -> Outcome | None:
    """Run a flow on made-up replies; None if it goes on and on."""
    replies: tuple[object, ...] | None = None
    try:
        for _ in range(_MOST_ROUNDS):
            done, value = advance(flow, replies)
            if done:
                return cast("Outcome", value)
            replies = tuple([_vectors(r) if isinstance(r, EmbedRequest) else supposed_reply(r) for r in value])
            seen.add(value, replies)
        return None
    finally:
        flow.close()


def _vectors(request: EmbedRequest) -> "NDArray[np.float32]":
    import numpy as np

    return np.ones((len(request.texts), 4), dtype=np.float32)
