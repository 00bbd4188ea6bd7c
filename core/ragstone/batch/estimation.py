"""The cost of a batch, with no judge asked."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, cast

from ragstone.batch.prices import Price, check_price, cost_of
from ragstone.judge import DecisionReply, DecisionRequest, LLMReply, LLMRequest, Meter
from ragstone.judging.flow import EmbedRequest, Request, advance
from ragstone.judging.prompt import tokens
from ragstone.metrics.base import Metric
from ragstone.metrics.outcomes import unscored
from ragstone.outcome import Outcome, Unscored, UnscoredReason
from ragstone.plain import count
from ragstone.sample import BadLine, Sample
from ragstone.sources.rows import Source, rows_of
from ragstone.text.plain import text_table

# A flow that asks until it likes an answer would never end here.
_MOST_ROUNDS = 100
_TEXT_CHARACTERS = 80
_MOST_NUMBERS = 5
_LONGEST_LIST = 1_000
# A line that ends with ">" ends a fence, not a sentence.
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f\u0964\u06d4]|[^\s.!?>](?=\s*\n)")
_SUMS = (
    "evaluations",
    "calls",
    "first_calls",
    "input_tokens",
    "output_tokens",
    "embed_calls",
    "first_input_tokens",
    "first_round_only",
)
_HEAD = ("metric", "judge calls", "round 1", "tokens in", "tokens out", "embeddings", "cost")


@dataclass(slots=True)
class MetricEstimate:
    """The cost of one metric.

    Attributes:
        metric: Its name.
        judge: The judge's model.
        evaluations: Samples.
        unscored: Those that would be `Unscored` before any call, by reason.
        first_calls: Judge calls of the first round: exact.
        first_input_tokens: Their prompts' tokens, by `ragstone.judging.tokens`.
        calls: Judge calls in all.
        embed_calls: Calls to the embedder in all.
        rounds: The most rounds of judge calls that one sample takes.
        input_tokens: Prompt tokens in all.
        output_tokens: Reply tokens in all.
        first_round_only: Evaluations that could not be followed beyond their first round (a metric of your own that
            asks for no schema, or for one with more than objects, lists, texts, words, integers and flags): what comes
            after it is in none of these numbers.
        cost: At the price; None without one.
    """

    metric: str
    judge: str
    evaluations: int = 0
    unscored: Counter[UnscoredReason] = field(default_factory=Counter["UnscoredReason"])
    first_calls: int = 0
    first_input_tokens: int = 0
    calls: int = 0
    embed_calls: int = 0
    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    first_round_only: int = 0
    cost: float | None = None

    def add(self, more: "MetricEstimate") -> None:
        """Add another estimate; its rounds do not add up."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.unscored.update(more.unscored)
        self.rounds = max(self.rounds, more.rounds)

    def cells(self, *, priced: bool) -> list[str]:
        """Return its row of the table."""
        numbers = (
            self.calls,
            self.first_calls,
            self.input_tokens,
            self.output_tokens,
            self.embed_calls,
        )
        cost = "-" if self.cost is None else f"{self.cost:,.2f}" if self.cost >= 1 else f"{self.cost:.4f}"
        cells = [self.metric, *[f"{number:,}" for number in numbers], cost]
        return cells if priced else cells[:-1]


@dataclass(slots=True)
class Estimate(MetricEstimate):
    """The cost of a batch: the sums of its metrics. `print` shows it as a table.

    Attributes:
        metrics: By metric, in the given order.
        samples: Samples.
        bad_rows: Rows that hold no sample.

    Example:
        >>> from ragstone import ContextRelevancy, Sample
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: "never asked"))
        >>> cost = estimate([Sample(user_input="Why?", retrieved_contexts=["So."])], [metric])
        >>> cost.calls, cost.rounds, cost.output_tokens
        (1, 1, 3)
    """

    metrics: tuple[MetricEstimate, ...] = ()
    samples: int = 0
    bad_rows: int = 0

    def __str__(self) -> str:
        priced = self.cost is not None
        rows = [each.cells(priced=priced) for each in self.metrics]
        if len(rows) > 1:
            rows.append(self.cells(priced=priced))
        lines = text_table(_HEAD if priced else _HEAD[:-1], rows)
        for each in self.metrics:
            for reason, number in sorted(each.unscored.items()):
                lines.append(f"unscored by {each.metric}, without a call: {number:,} {reason}")
            if each.first_round_only:
                lines.append(
                    f"{each.metric}: {each.first_round_only:,} by their first round only, the rest is not known"
                )
        if self.bad_rows:
            lines.append(f"{count(self.bad_rows, 'row')} held no sample")
        exact = "Calls of round 1 are exact; later ones and tokens out suppose replies of the asked form."
        lines.append(f"{count(self.samples, 'sample')}. {exact}")
        return "\n".join(lines)


def estimate(
    samples: Source,
    metrics: Sequence[Metric] | Metric,
    *,
    fields: Mapping[str, str] | None = None,
    price: Price | None = None,
) -> Estimate:
    """The cost of scoring the samples: calls, rounds, tokens and money. Neither judge nor embedder is asked.

    Each metric is run on each sample, its calls answered by made-up replies. The requests of the first round do not
    depend on a reply: they are exact, in number and as prompts. Later rounds rest on these assumptions. They are read
    from the schema of the asked reply, so they hold for most metrics of your own, too:

    - `SummarizationScore`: one question for every two sentences of the source, at most 10.
    - `AlignmentCoverage`: one claim for every two sentences of the summary; `n_questions` questions.
    - `ResponseCompleteness`: one part for every two sentences of the question, at most 8.
    - `ResponseRelevancy`: `strictness` questions. `ContextRelevancy`: all of its calls are in the first round.
    - A question, part or claim is 80 characters long, the judge names one in ten of the numbered sentences (1 to 5).

    The real number may be half or double that. Tokens are a quarter of the UTF-8 bytes of prompt and reply; schemas
    sent beside the prompt, the reasoning of models that think first, second asks after replies that cannot be used,
    and embedding tokens are not in it. Nor are savings by shared replies (`evaluate` shares them).

    Args:
        samples: As for `evaluate`; read once, in constant memory.
        metrics: What to score by.
        fields: The key or column by the sample's field, where it is none of the known names.
        price: For a million prompt tokens and a million reply tokens.

    Raises:
        TypeError: The samples are none; a metric is none.
        ValueError: The price is none; a file cannot be read.
    """
    listed: list[Any] = [metrics] if isinstance(metrics, Metric) else list(metrics)
    for metric in listed:
        if not isinstance(metric, Metric):
            raise TypeError(
                f"metrics: {type(metric).__name__} is no metric; pass objects such as ContextRelevancy(llm=llm)"
            )
    check_price(price)
    rows = rows_of(samples, fields)
    whole = Estimate("together", "")
    whole.metrics = tuple([MetricEstimate(metric.name, metric.judge.model) for metric in listed])
    for row in rows:
        if isinstance(row, BadLine):
            whole.bad_rows += 1
            continue
        whole.samples += 1
        for metric, total in zip(listed, whole.metrics, strict=True):
            total.add(estimate_sample(metric, row.sample))
    for total in whole.metrics:
        whole.add(total)
    if price is not None:
        for total in (*whole.metrics, whole):
            total.cost = cost_of(price, total.input_tokens, total.output_tokens)
    return whole


def estimate_sample(metric: Metric, sample: Sample) -> MetricEstimate:
    """What one sample would cost one metric, whose flow is run on made-up replies."""
    total = MetricEstimate(metric.name, "", evaluations=1)
    rounds: list[MetricEstimate] = []
    # It stays None where the flow raises after its first round, or goes on and on.
    outcome: Outcome | None = None
    try:
        with closing(metric.flow(sample)) as flow:
            step = advance(flow, None)
            while isinstance(step, tuple) and len(rounds) < _MOST_ROUNDS:
                cost = MetricEstimate("", "")
                replies = tuple([_supposed_reply(request, cost) for request in step])
                if step:
                    rounds.append(cost)
                step = advance(flow, replies)
            outcome = None if isinstance(step, tuple) else step
    except Exception as error:
        # The metric is somebody's own, and would raise in a run too.
        if not rounds:
            outcome = unscored(metric, error, Meter())
    if not rounds:
        total.unscored.update([outcome.reason] if isinstance(outcome, Unscored) else [])
        return total
    # Where a made-up reply was no good, the rounds after it asked for it again.
    if outcome is None or (isinstance(outcome, Unscored) and outcome.reason == "judge_unparseable"):
        rounds, total.first_round_only = rounds[:1], 1
    for each in rounds:
        total.add(each)
    total.first_calls, total.first_input_tokens = rounds[0].calls, rounds[0].input_tokens
    total.rounds = sum(each.calls > 0 for each in rounds)
    return total


def _supposed_reply(request: Request, cost: MetricEstimate) -> object:
    if isinstance(request, EmbedRequest):
        import numpy as np

        cost.embed_calls += 1
        return np.ones((len(request.texts), 4), dtype=np.float32)
    cost.calls += 1
    cost.input_tokens += tokens(*request.texts_read)
    if isinstance(request, DecisionRequest):
        even = {
            name: dict.fromkeys(question.choices, 1 / len(question.choices))
            for name, question in request.questions.items()
        }
        return DecisionReply(even)
    reply = synthetic_reply(request)
    cost.output_tokens += tokens(reply.text)
    return reply


def synthetic_reply(request: LLMRequest) -> LLMReply:
    """A reply of the asked form and of plausible size; nothing in it means anything.

    - One of a few words: the first; each is as probable as the others.
    - A list as long as the schema says; else one item for every two sentences of the data. Of numbers (of sentences,
      say) one for every ten in the range, 1 to 5.
    - A text: 80 characters, which differ from those of the other texts. A flag: false. A number: the least.
    - Without a schema, or with one that ragstone's own metrics do not use: such a text.

    Example:
        >>> from ragstone.judging.reply import TEXT, listing, record
        >>> reply = synthetic_reply(LLMRequest("demo.claims", "", "One. Two. Three.", record(claims=listing(TEXT))))
        >>> len(json.loads(reply.text)["claims"])
        2
    """
    if request.choices is not None:
        share = 1.0 / len(request.choices)
        return LLMReply(request.choices[0], probabilities=dict.fromkeys(request.choices, share))
    # The instructions behind the last fence are no data.
    data = request.user.rpartition("\n</")[0] or request.user
    numbers = itertools.count(1)

    def text() -> str:
        return (f"Supposed text {next(numbers)}. " * 6)[:_TEXT_CHARACTERS]

    def listed(schema: Mapping[str, Any]) -> list[object]:
        items, least, most = schema["items"], schema["minItems"], schema.get("maxItems", _LONGEST_LIST)
        if items["type"] == "integer":
            first, last = items["minimum"], items["maximum"]
            length = min(max(1, (last - first + 1) // 10), schema.get("maxItems", _MOST_NUMBERS))
            return list(range(first, min(first + max(least, length), last + 1)))
        length = max(least, -(-sentence_count(data) // 2))
        return [value(items) for _ in range(min(length, most))]

    def value(schema: Mapping[str, Any]) -> object:
        match schema["type"]:
            case "object":
                return {name: value(inside) for name, inside in schema["properties"].items()}
            case "array":
                return listed(schema)
            case "integer":
                return schema["minimum"]
            case "boolean":
                return False
            case _:
                return schema["enum"][0] if "enum" in schema else text()

    if not request.schema:
        return LLMReply(text())
    try:
        return LLMReply(json.dumps(value(cast("Mapping[str, Any]", request.schema)), ensure_ascii=False))
    except (KeyError, TypeError, RecursionError):
        # The schema is somebody's own.
        return LLMReply(text())


def sentence_count(text: str) -> int:
    """About how many sentences or lines a text has, at least 1; in microseconds, so only about.

    Example:
        >>> sentence_count("One. Two? 3.5 is three."), sentence_count("")
        (3, 1)
    """
    return 1 + sum(1 for _ in _SENTENCE_END.finditer(text.strip()))
