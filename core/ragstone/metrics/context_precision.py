"""ContextPrecision: whether the useful contexts were retrieved before the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ragstone.judging import Answer, CannotScore, Flow
from ragstone.metrics.asking import ItemDetails, ask_items
from ragstone.metrics.base import FOLLOW_UP, ItemKind, Metric
from ragstone.metrics.claims import whole_context
from ragstone.metrics.values import reworded, verdicts_of
from ragstone.outcome import Score, Verdict
from ragstone.plain import is_visible
from ragstone.sample import Sample, SampleField

_USEFUL = (
    "You are given a question, an answer to it, and the contexts that a search returned for the question. Say of each "
    "context whether it was useful for arriving at the answer. yes: it holds something that the answer says or rests "
    "on. no: the answer could have been given without it."
)
_IS_USEFUL = "Does the context hold something that the answer to the question says or rests on?"
_WORDS = {"yes": "useful", "no": "useless"}
_EACH = ItemDetails(
    alone="context", task="Say of each of the {n} contexts whether it was useful for arriving at the answer"
)


@dataclass(frozen=True, kw_only=True)
class ContextPrecision(Metric):
    """Average precision of the retrieved contexts in their order; higher is better.

        score = sum over ranks k of P(k) * v(k) / useful contexts

    v(k) is 1 where the context at rank k was useful for arriving at the answer, else 0; P(k) is the share of useful
    contexts among the first k. Without a useful context the score is 0. It falls when a useful context stands behind
    a useless one; `ContextRelevancy` says how much of the text is needed, in any order.

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        against: The answer that contexts are useful for: the sample's "reference" or its "response"; None: the
            reference where the sample has one, else the response.

    Returns:
        A score within [0, 1]. Breakdown: `useful` and `contexts` (counts), `first_useful` (its rank, from 1; only if
        there is one); where there are probabilities also `count` and `expected` (the expected score over independent
        verdicts, exactly). Verdicts: each context at its own rank, "useful" or "useless"; a blank one is useless, and
        the judge is not asked about it. `Unscored("missing_input")` without contexts or an answer.

    Source:
        ragas, "Context Precision"; DeepEval, "Contextual Precision". Average precision of information retrieval.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextPrecision(llm=FakeLLM(lambda request: {"answers": {"1": "no", "2": "yes"}}))
        >>> metric.score(
        ...     Sample(user_input="Who?", retrieved_contexts=["It rained.", "Ann did."], response="Ann.")
        ... ).value
        0.5
    """

    name: ClassVar[str] = "context_precision"
    asks: ClassVar[str] = "Were the useful contexts retrieved before the others?"
    costs: ClassVar[Mapping[str, str]] = {"context": "useful contexts are missing or stand behind others"}
    version: ClassVar[str] = "1"
    required_fields: ClassVar[Sequence[SampleField]] = ("user_input", "retrieved_contexts")
    has_expected: ClassVar[bool] = True
    auto_expects: ClassVar[bool] = False
    follows_history: ClassVar[bool] = True
    prompts: ClassVar[Mapping[str, str]] = FOLLOW_UP | {"useful": _USEFUL, "context": _IS_USEFUL}

    against: Literal["reference", "response"] | None = None

    def own_facts(self) -> Mapping[str, object]:
        """The named answer is required."""
        return {} if self.against is None else {"required_fields": (*self.required_fields, self.against)}

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The contexts."""
        return (ItemKind("context", "Was it useful for arriving at the answer?", ("useful", "useless"), "text"),)

    def judged_by(self, sample: Sample) -> Sequence[SampleField]:
        """Return the required fields, and the answer that contexts are useful for at the end."""
        if self.against is not None:
            return self.required_fields
        return (*self.required_fields, "reference" if is_visible(sample.reference or "") else "response")

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the average precision of the contexts' verdicts."""
        useful = [verdict.verdict == "useful" for verdict in verdicts if verdict.kind == "context"]
        return average_precision(useful) if useful else None

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        *_, against = self.judged_by(sample)
        if not is_visible(answer := getattr(sample, against) or ""):
            raise CannotScore("missing_input", f"reference, response: are missing; {self.name} needs one of them")
        contexts = sample.retrieved_contexts
        asked = [i for i, context in enumerate(contexts) if is_visible(context)]
        found = yield from ask_items(
            self,
            "useful",
            {"question": sample.user_input or "", "answer": answer},
            [contexts[i] for i in asked],
            kind="context",
            details=_EACH,
        )
        answers = [Answer("no")] * len(contexts)
        for i, each in zip(asked, found, strict=True):
            answers[i] = each
        useful = [answer.choice == "yes" for answer in answers]
        # What stands before a useful context lowers the score; if none is useful, all do.
        lowers = [not useful[i] and (any(useful[i:]) or not any(useful)) for i in range(len(contexts))]
        judged = [reworded(answer, _WORDS, whole_context(sample, i)) for i, answer in enumerate(answers)]
        verdicts = verdicts_of("context", contexts, judged, "useful", lowers)
        breakdown = {"useful": float(sum(useful)), "contexts": float(len(useful))}
        where = "none of them"
        if any(useful):
            breakdown["first_useful"] = float(useful.index(True) + 1)
            where = f"the first at rank {useful.index(True) + 1}"
        known = all(each.probabilities is not None for each in found)
        return self._score(
            self.value_of(verdicts, sample, {}),
            f"{sum(useful)} of {len(useful)} contexts were useful for the {against}, {where}.",
            expected=expected_precision([each.probability("yes") or 0.0 for each in answers]) if known else None,
            breakdown=breakdown,
            verdicts=verdicts,
        )


def average_precision(useful: Sequence[bool]) -> float:
    """Return the mean, over the useful ranks, of the share of useful ones up to there; 0 without one.

    Example:
        >>> average_precision([True, False, True])
        0.8333333333333333
    """
    ranks = [rank for rank, is_useful in enumerate(useful, 1) if is_useful]
    return sum(n / rank for n, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def expected_precision(probabilities: Sequence[float]) -> float:
    """Return the expected average precision where each rank is useful with its probability, independently of others.

    At rank k, with A useful ones before it and B behind it, (1 + A) / (1 + A + B) is the integral over s from 0 to 1 of
    (1 + A) * s ** (A + B). Its expectation is a polynomial in s, which Gauss-Legendre nodes integrate exactly.

    Example:
        >>> round(expected_precision([0.5, 1.0]), 3), expected_precision([])
        (0.75, 0.0)
    """
    import numpy as np

    if not probabilities:
        return 0.0
    p = np.array(probabilities)
    nodes, weights = np.polynomial.legendre.leggauss(len(p) // 2 + 1)
    s = (nodes[:, None] + 1.0) / 2.0
    # The generating function of each rank.
    q = 1.0 - p + p * s
    own = p * s / q
    before = np.cumsum(own, axis=1) - own
    ranks = np.arange(1, len(p) + 1)
    integrand = q.prod(axis=1) * (p / (ranks * q) * (1.0 + before)).sum(axis=1)
    return float(min(1.0, (weights / 2.0) @ integrand))
