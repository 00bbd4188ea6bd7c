"""What a batch would cost, with no judge asked, and what it may spend."""

import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from math import inf, isfinite
from typing import Any

from ragstone.judge import LLMReply, LLMRequest, Meter
from ragstone.judging.flow import EmbedRequest, Flow, advance
from ragstone.judging.prompt import tokens
from ragstone.limits.budget import Account, BudgetMeter, MemoryLedger, Price, RunBudget, list_price
from ragstone.metrics.base import Metric
from ragstone.metrics.outcomes import unscored
from ragstone.options import Count, checked
from ragstone.outcome import Outcome, Unscored, UnscoredReason
from ragstone.plain import as_dict, as_list
from ragstone.registry import is_embedded
from ragstone.sample import BadLine, Sample
from ragstone.sources import Source, rows_of
from ragstone.text.plain import text_table

_PER = 1_000_000
_MOST_ROUNDS = 100  # a flow that asks until it likes an answer would never end here
_TEXT_CHARACTERS = 80
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f\u0964\u06d4]|[^\s.!?>](?=\s*\n)")  # ">" ends a fence
_MOST_NUMBERS = 5
_LONGEST_LIST = 1_000
_DEEPEST = 32

_FREE = Price(0.0, 0.0, "")


@dataclass(slots=True)
class MetricEstimate:
    """What one metric would cost.

    Attributes:
        metric: Its name.
        judge: The judge's model.
        evaluations: Samples, times `repeat`.
        unscored: Those that would be `Unscored` before any call, by reason.
        first_calls: Judge calls of the first round: exact.
        first_input_tokens: Their prompts' tokens, by `ragstone.judging.tokens`.
        calls: Judge calls in all.
        embed_calls: Calls to the embedder in all.
        rounds: The most rounds of judge calls that one sample takes.
        input_tokens: Prompt tokens in all.
        output_tokens: Reply tokens in all.
        first_round_only: Evaluations that could not be followed beyond their first round (a metric of your own whose
            judge replies are in no schema): what comes after it is in none of these numbers.
        cost: In the currency of the prices; None without prices.
    """

    metric: str
    judge: str
    evaluations: int = 0
    unscored: dict[UnscoredReason, int] = field(default_factory=dict["UnscoredReason", int])
    first_calls: int = 0
    first_input_tokens: int = 0
    calls: int = 0
    embed_calls: int = 0
    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    first_round_only: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a batch would cost; `print` shows it as a table.

    Attributes:
        metrics: By metric, in the given order.
        samples: Samples.
        bad_rows: Rows that hold no sample.
        repeat: Scorings of each sample by each metric.
        calls: Judge calls.
        embed_calls: Calls to embedders.
        rounds: Rounds of judge calls, one after the other: as many batches would a provider's batch endpoint take.
        input_tokens: Prompt tokens.
        output_tokens: Reply tokens.
        cost: In the currency of the prices; None without prices.

    Example:
        >>> from ragstone import ContextRelevancy, Sample
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: "never asked"))
        >>> cost = estimate([Sample(user_input="Why?", retrieved_contexts=["So."])], [metric])
        >>> cost.calls, cost.rounds, cost.output_tokens
        (1, 1, 3)
    """

    metrics: tuple[MetricEstimate, ...]
    samples: int
    bad_rows: int
    repeat: int
    calls: int
    embed_calls: int
    rounds: int
    input_tokens: int
    output_tokens: int
    cost: float | None

    def __str__(self) -> str:
        priced = self.cost is not None
        head = ["metric", "samples", "rounds", "judge calls", "in round 1", "tokens in", "tokens out", "embed calls"]
        together = _sum(self.metrics)
        rows = [_cells(each, priced=priced) for each in (*self.metrics, *[together] * (len(self.metrics) > 1))]
        lines = text_table(head + ["cost"] * priced, rows)
        for each in self.metrics:
            lines += [
                f"unscored by {each.metric}, without a call: {number:,} {reason}"
                for reason, number in sorted(each.unscored.items())
            ]
            if each.first_round_only:
                lines.append(
                    f"{each.metric}: {each.first_round_only:,} by their first round only, the rest is not known"
                )
        if self.bad_rows:
            lines.append(f"{self.bad_rows:,} row(s) hold no sample")
        lines.append("Calls of round 1 are exact; later ones and tokens out suppose replies of the asked form.")
        return "\n".join(lines)


def _cells(of: MetricEstimate, *, priced: bool) -> list[str]:
    numbers = (of.evaluations, of.rounds, of.calls, of.first_calls, of.input_tokens, of.output_tokens, of.embed_calls)
    cost = "-" if of.cost is None else f"{of.cost:,.2f}" if of.cost >= 1 else f"{of.cost:.4f}"
    return [of.metric, *[f"{number:,}" for number in numbers], *[cost] * priced]


def _sum(metrics: Sequence[MetricEstimate]) -> MetricEstimate:
    total = MetricEstimate("together", "")
    for each in metrics:
        _add(total, each)
    if metrics and all(each.cost is not None for each in metrics):
        total.cost = sum(each.cost or 0.0 for each in metrics)
    return total


def _add(total: MetricEstimate, more: MetricEstimate, repeat: int = 1) -> None:
    for name in ("evaluations", "first_calls", "first_input_tokens", "calls", "embed_calls", "input_tokens",
                 "output_tokens", "first_round_only"):  # fmt: skip
        setattr(total, name, getattr(total, name) + repeat * getattr(more, name))
    for reason, number in more.unscored.items():
        total.unscored[reason] = total.unscored.get(reason, 0) + repeat * number
    total.rounds = max(total.rounds, more.rounds)


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
    - `ResponseCompleteness`: one part for every two sentences of the question, at most 8.
    - `ResponseRelevancy`: `strictness` questions. `ContextRelevancy`: all of its calls are in the first round.
    - A question, part or claim is 80 characters long, the judge names one in ten of the numbered sentences (1 to 5).

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
    listed: list[Any] = [metrics] if isinstance(metrics, Metric) else list(metrics)
    for metric in listed:
        if not isinstance(metric, Metric):
            raise TypeError(
                f"metrics: {type(metric).__name__} is no metric; pass objects such as ContextRelevancy(llm=llm)"
            )
    _check(repeat, input_price, output_price)
    rows = rows_of(samples, fields)
    if isinstance(rows, AsyncIterator):
        raise TypeError("samples: is an asynchronous iterable; estimate reads lists, generators, tables and files")
    totals = [MetricEstimate(metric.name, metric.judge.model) for metric in listed]
    number = bad_rows = 0
    for row in rows:
        if isinstance(row, BadLine):
            bad_rows += 1
            continue
        number += 1
        for metric, total in zip(listed, totals, strict=True):
            _add(total, estimate_sample(metric, row.sample), repeat)
    if input_price is not None and output_price is not None:
        for total in totals:
            total.cost = (total.input_tokens * input_price + total.output_tokens * output_price) / _PER
    all_ = _sum(totals)
    tokens_ = all_.input_tokens, all_.output_tokens
    return Estimate(
        tuple(totals), number, bad_rows, repeat, all_.calls, all_.embed_calls, all_.rounds, *tokens_, all_.cost
    )


def _check(repeat: int, input_price: float | None, output_price: float | None) -> None:
    checked("repeat", repeat, Count)
    for name, price in (("input_price", input_price), ("output_price", output_price)):
        if price is not None and not (isfinite(price) and price >= 0):
            raise ValueError(f"{name}: {price!r} is no price; pass what a million tokens cost, such as 0.25")
    if (input_price is None) != (output_price is None):
        raise ValueError("input_price and output_price: pass both, for a million tokens each")


def estimate_sample(metric: Metric, sample: Sample) -> MetricEstimate:
    """Return what one sample would cost one metric, whose flow is run on made-up replies."""
    rounds: list[MetricEstimate] = []
    outcome: Outcome | None = None
    try:
        outcome = _followed(metric.flow(sample), rounds)
    except Exception as error:
        if not rounds:  # a metric of somebody's own, which would raise in a run too
            outcome = unscored(metric, error, Meter())
    total = MetricEstimate(metric.name, "", evaluations=1)
    if not rounds:
        total.unscored = {outcome.reason: 1} if isinstance(outcome, Unscored) else {}
        return total
    # Where a made-up reply was no good, the rounds after it asked for it again.
    if outcome is None or (isinstance(outcome, Unscored) and outcome.reason == "judge_unparseable"):
        rounds, total.first_round_only = rounds[:1], 1
    for each in rounds:
        _add(total, each)
    total.first_calls, total.first_input_tokens = rounds[0].calls, rounds[0].input_tokens
    total.rounds = sum(each.calls > 0 for each in rounds)
    return total


def _followed(flow: Flow[Outcome], rounds: list[MetricEstimate]) -> Outcome | None:
    """Run a flow on made-up replies, adding its rounds; None if it goes on and on."""
    replies: tuple[object, ...] | None = None
    with closing(flow):
        for _ in range(_MOST_ROUNDS):
            round_ = advance(flow, replies)
            if not isinstance(round_, tuple):
                return round_
            cost = MetricEstimate("", "")
            replies = tuple([_reply(request, cost) for request in round_])
            rounds.append(cost)
    return None


def _reply(request: LLMRequest | EmbedRequest, cost: MetricEstimate) -> object:
    if isinstance(request, EmbedRequest):
        import numpy as np

        cost.embed_calls += 1
        return np.ones((len(request.texts), 4), dtype=np.float32)
    reply = synthetic_reply(request)
    cost.calls += 1
    cost.input_tokens += tokens(request.system, request.user)
    cost.output_tokens += tokens(reply.text)
    return reply


def synthetic_reply(request: LLMRequest) -> LLMReply:
    """Return a reply of the asked form and of plausible size; nothing in it means anything.

    - One of a few words: the first; each is as probable as the others.
    - A list of so many items: so many, as the schema says. A list without bounds: one item for every two sentences
      of the data, within the schema's bounds; of numbers (of sentences, say) one for every ten in the range, 1 to 5.
    - A text: 80 characters, which differ from those of the other texts. A flag: false. A number: the least.
    - Without a schema: such a text.

    Example:
        >>> from ragstone.judging.reply import TEXT, listing, record
        >>> reply = synthetic_reply(LLMRequest("demo.claims", "", "One. Two. Three.", record(claims=listing(TEXT))))
        >>> len(json.loads(reply.text)["claims"])
        2
    """
    if request.choices is not None:
        share = 1.0 / len(request.choices)
        return LLMReply(request.choices[0], probabilities=dict.fromkeys(request.choices, share))
    maker = _Maker(request)
    if not request.schema:
        return LLMReply(maker.text({}))
    return LLMReply(json.dumps(maker.value(request.schema, 0), ensure_ascii=False))


def sentence_count(text: str) -> int:
    """Return about how many sentences or lines a text has, at least 1; in microseconds, so only about.

    Example:
        >>> sentence_count("One. Two? 3.5 is three."), sentence_count("")
        (3, 1)
    """
    return 1 + sum(1 for _ in _SENTENCE_END.finditer(text.strip()))


class _Maker:
    """Makes values of a request's schema."""

    def __init__(self, request: LLMRequest) -> None:
        self._schema = request.schema
        self._user = request.user
        self._numbers = count(1)

    def value(self, schema: object, depth: int) -> object:
        node = self._resolved(as_dict(schema))
        if depth > _DEEPEST:  # a schema that holds itself: what is optional ends it
            return None
        if "const" in node:
            return node["const"]
        if options := as_list(node.get("enum")):
            return options[0]
        if alternatives := as_list(node.get("anyOf")) or as_list(node.get("oneOf")):
            return self.value(alternatives[0], depth + 1)
        kind = node.get("type")
        kind = next(iter(as_list(kind)), kind)
        if kind == "object" or "properties" in node:
            properties = as_dict(node.get("properties"))
            names = map(str, as_list(node.get("required")) or properties)
            return {name: self.value(properties.get(name), depth + 1) for name in names}
        if kind == "array":
            return self._list(node, depth)
        if kind in ("integer", "number"):
            least = _number(node, "minimum", 1 if kind == "integer" else 0.5)
            return min(least, _number(node, "maximum", least))
        return False if kind == "boolean" else None if kind == "null" else self.text(node)

    def text(self, node: dict[str, object]) -> str:
        text = (f"Supposed text {next(self._numbers)}. " * 6)[:_TEXT_CHARACTERS]
        return text[: int(_number(node, "maxLength", _TEXT_CHARACTERS))]

    def _list(self, node: dict[str, object], depth: int) -> list[object]:
        items = self._resolved(as_dict(node.get("items")))
        least, most = int(_number(node, "minItems", 0)), node.get("maxItems")
        if items.get("type") == "integer" and "minimum" in items and "maximum" in items:
            first, last = int(_number(items, "minimum", 0)), int(_number(items, "maximum", 0))
            length = min(max(1, (last - first + 1) // 10), most if isinstance(most, int) else _MOST_NUMBERS)
            return list(range(first, min(first + max(least, length), last + 1)))
        data = self._user.rpartition("\n</")[0] or self._user  # without the instructions behind the last fence
        length = max(least, -(-sentence_count(data) // 2))
        length = min(length, most if isinstance(most, int) else _LONGEST_LIST)
        return [self.value(items, depth + 1) for _ in range(length)]

    def _resolved(self, node: dict[str, object]) -> dict[str, object]:
        for _ in range(_DEEPEST):
            where = node.get("$ref")
            if not isinstance(where, str):
                return node
            target: object = self._schema
            for part in where.removeprefix("#").strip("/").split("/"):
                target = as_dict(target).get(part.replace("~1", "/").replace("~0", "~"))
            node = as_dict(target)
        return {}


def _number(node: dict[str, object], name: str, default: float) -> float:
    value = node.get(name)
    return value if isinstance(value, (int, float)) else default


class Spending:
    """Prices of the judges of a run, and its limits; without a limit it only counts.

    An evaluation reserves what it is expected to take before its first call, so that hardly any is broken off half-way.

    Args:
        metrics: Their judges are asked.
        price: Of all judges, per million prompt and reply tokens. None: each one's list price, where it is known.
        judge: The name by which the judges were made, if they were made by name.
        max_calls: Calls to judges, at most.
        max_tokens: Prompt and reply tokens together, at most.
        max_cost: Money, at most.

    Attributes:
        prices: What the judges cost, by their `model`; those that are not known are missing.

    Raises:
        ValueError: Money is limited, and no price is known of a judge.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        price: tuple[float, float] | None,
        judge: object = None,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ) -> None:
        if price is not None and not (len(price) == 2 and all(0 <= each < inf for each in price)):
            raise ValueError(f"price: {price!r} is none; pass what a million prompt and reply tokens cost: (0.25, 2.0)")
        self.prices: dict[str, Price] = {}
        self._accounts: dict[str, Account] = {}
        ledger, now = MemoryLedger(), int(time.time())
        for metric in (each for each in metrics if each.llm is not None):  # the others ask no judge
            model = metric.judge.model
            rate = Price(*price) if price else list_price(metric.judge)
            if rate is None and isinstance(judge, str) and judge.endswith(f":{model}"):
                rate = list_price(judge)
            if rate is not None:
                self.prices[model] = rate
            if max_cost is not None and rate is None and not is_embedded(metric.judge):
                raise ValueError(f"max_cost: no price of {model!r} is known; give one, per million tokens in and out")
            if (max_calls, max_tokens, max_cost) != (None, None, None):
                budget = RunBudget(
                    calls=max_calls, tokens=max_tokens, cost=max_cost, per_million=rate or _FREE, begun_at=now
                )
                self._accounts.setdefault(model, Account(budget, ledger))

    def meter(self, metric: Metric, sample: Sample) -> Meter:
        """Return what counts one evaluation, and refuses it where the run has no room for it."""
        account = self._accounts.get(metric.judge.model)
        if account is None:
            return Meter()

        def expected() -> Counter[str]:
            whole = estimate_sample(metric, sample)
            return Counter(calls=whole.calls, input=whole.input_tokens, output=whole.output_tokens)

        return BudgetMeter(account, (metric.name, metric.version), expected)
