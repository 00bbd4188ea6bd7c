"""What is fitted: weights of probabilities and cosines, each with the rows, the judge and the date it was fitted with.

`benchmarks/agreement/fit.py` makes the numbers again from the committed scores and prints its figures on rows that a
fit did not see; docs/metrics has them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragstone.judging.prompt import tokens
from ragstone.judging.reply import Answer

# Tokens, of the texts that `SUPPORTED` was fitted on.
_SHORTEST, _LONGEST = 30, 730


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A logistic map of z = intercept + sum of weight * signal: p = sigmoid(z), yes where p is at least .5.

    Each of several items is held against the best: where the best z is above `reach`, p = sigmoid(z - best z + reach).
    So p is at most sigmoid(reach).

    Attributes:
        weights: By signal.
        intercept: Added to the weighted signals.
        reach: Of several items, those whose z is further below the best one's are a no.
        judge: The judge whose probabilities it was fitted on.
        embedder: The embedder whose cosines it was fitted on; "" where it takes none.
        rows: The data that it was fitted on.
        date: When.
    """

    weights: Mapping[str, float]
    intercept: float
    reach: float = math.inf
    judge: str = "local:qwen2.5-coder-1.5b-instruct-q4_k_m"
    embedder: str = ""
    rows: str
    date: str

    def answers(self, signals: Sequence[Mapping[str, float]]) -> list[Answer]:
        """Return for each item, by its signals, yes or no with p.

        Example:
            >>> demo = Fitted(weights={"a": 1.0}, intercept=0.0, reach=2.0, rows="none", date="")
            >>> [answer.choice for answer in demo.answers([{"a": 3.0}, {"a": 0.5}, {"a": -1.0}])]
            ['yes', 'no', 'no']
        """
        z = [self.intercept + sum(weight * one[name] for name, weight in self.weights.items()) for one in signals]
        least = max(0.0, max(z, default=0.0) - self.reach)
        shares = [1.0 / (1.0 + math.exp(least - one)) for one in z]
        return [Answer("yes" if p >= 0.5 else "no", {"yes": p, "no": 1.0 - p}) for p in shares]


SENTENCES = Fitted(
    weights={"passage": 1.879, "cosine": 4.006, "with_previous": 4.862},
    intercept=-2.736,
    reach=1.55,
    embedder="local:all-minilm-l6-v2-int8",
    rows="CLAPNQ (39) and HotpotQA (30), development rows",
    date="2026-11-24",
)
"""Whether a sentence is needed: the log-odds that its passage helps to answer the question, and two cosines."""

_REFUSALS = "XSTest (44, development rows) and benchmarks/agreement/data: short answers (98 and 70)"

OPEN = Fitted(weights={"open": 3.451}, intercept=-2.547, rows=f"{_REFUSALS}: 151 short ones", date="2026-11-27")
"""Whether a short response is noncommittal: the log-odds that the user has no answer."""

REFUSED = Fitted(weights={"refused": 1.762}, intercept=-3.805, rows=f"{_REFUSALS}: 61 long ones", date="2026-11-27")
"""Whether a long response is noncommittal: the log-odds of a refusal."""

ANSWERED = Fitted(
    weights={"answered": 3.182},
    intercept=2.043,
    rows=_REFUSALS,
    date="2026-11-23",
)
"""Whether a response answers a part of a question: the log-odds that the user has an answer."""

SUPPORTED = Fitted(
    weights={"supported": 1.235, "length": -0.574},
    intercept=1.013,
    rows="benchmarks/agreement/data: claims (120 and 60); SummEval (48, development rows: all claims supported or not)",
    date="2026-11-27",
)
"""Whether a text supports a claim: the log-odds that it does, and the length of the text.

Of long texts a small judge says yes more readily than of short ones.
"""


def length(text: str) -> float:
    """Return the logarithm of a text's length in hundreds of tokens, within the lengths that `SUPPORTED` knows.

    Example:
        >>> length("word" * 100), round(length(""), 3)
        (0.0, -1.204)
    """
    return math.log(min(max(tokens(text), _SHORTEST), _LONGEST) / 100)
