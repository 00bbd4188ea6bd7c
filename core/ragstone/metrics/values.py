"""Arithmetic on answers and verdicts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ragstone.judging import Answer, CannotScore
from ragstone.outcome import Evidence, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The least probability that log-odds are taken of.
_LEAST = 1e-4


def expected_share(answers: Sequence[Answer], good: str) -> float | None:
    """Return the mean probability of the answer `good`; None when one is missing or there are none.

    Example:
        >>> graded, plain = Answer("yes", {"yes": 0.75, "no": 0.25}), Answer("yes")
        >>> expected_share([graded, graded], "yes"), expected_share([graded, plain], "yes")
        (0.75, None)
    """
    probabilities = [answer.probability(good) for answer in answers]
    known = [p for p in probabilities if p is not None]
    return sum(known) / len(known) if known and len(known) == len(probabilities) else None


def share_of(verdicts: Iterable[Verdict], kind: str, good: str) -> float | None:
    """Return the share of the verdicts of a kind that are `good`; None for 0 of 0.

    Example:
        >>> words = ("supported", "contradicted")
        >>> claims = [Verdict(id=word, kind="claim", text="", verdict=word) for word in words]
        >>> share_of(claims, "claim", "supported"), share_of(claims, "part", "yes")
        (0.5, None)
    """
    hits = [verdict.verdict == good for verdict in verdicts if verdict.kind == kind]
    return sum(hits) / len(hits) if hits else None


def least(answers: Sequence[Answer], good: str) -> float:
    """Return the least probability of the answer `good`; 1 where none is known."""
    return min((p for answer in answers if (p := answer.probability(good)) is not None), default=1.0)


def log_odds(answer: Answer, yes: str = "yes") -> float:
    """Return the log-odds of a choice of an answer that has probabilities, within -9.2 and 9.2.

    Further out a log-probability is rounding.

    Example:
        >>> log_odds(Answer("no", {"yes": 0.5, "no": 0.5}))
        0.0
    """
    p = min(max(answer.probability(yes) or 0.0, _LEAST), 1.0 - _LEAST)
    return math.log(p / (1.0 - p))


def by_odds(yes: float, no: float) -> Answer:
    """Return the answer whose odds are `yes` to `no`; where both are 0 they say nothing, and it is no.

    Example:
        >>> by_odds(3.0, 1.0)
        Answer(choice='yes', probabilities={'yes': 0.75, 'no': 0.25})
    """
    share = yes / (yes + no) if yes + no else 0.5
    return Answer("yes" if share > 0.5 else "no", {"yes": share, "no": 1.0 - share})


def cosines_to_first(vectors: "NDArray[np.float32]", n: int) -> list[float]:
    """Cosine of the first row with each of the `n` others, within [-1, 1].

    Raises:
        CannotScore: The embedder returned another shape, something not finite, or a zero vector.

    Example:
        >>> import numpy as np
        >>> cosines_to_first(np.asarray([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]], dtype=np.float32), 2)
        [1.0, 0.0]
    """
    import numpy as np

    try:
        rows = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CannotScore("judge_unparseable", "embedder: did not return an array of numbers") from None
    if rows.ndim != 2 or rows.shape[0] != n + 1 or rows.shape[1] == 0:
        raise CannotScore("judge_unparseable", f"embedder: shape {rows.shape} for {n + 1} texts")
    if not np.isfinite(rows).all():
        raise CannotScore("judge_unparseable", "embedder: a vector contains NaN or infinity")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise CannotScore("judge_unparseable", "embedder: a zero vector has no direction")
    # Divided by the largest, squares neither overflow nor vanish.
    rows = rows / largest
    unit = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return [max(-1.0, min(1.0, float(cosine))) for cosine in unit[1:] @ unit[0]]


def reworded(answer: Answer, words: Mapping[str, str], *evidence: Evidence) -> Answer:
    """The answer with a metric's own words for its choices, and with what it is of as evidence.

    Example:
        >>> reworded(Answer("no", {"yes": 0.25, "no": 0.75}), {"yes": "useful", "no": "useless"})
        Answer(choice='useless', probabilities={'useful': 0.25, 'useless': 0.75})
    """
    shares = answer.probabilities and {words[choice]: share for choice, share in answer.probabilities.items()}
    return Answer(words[answer.choice], shares, evidence)


def verdicts_of(
    kind: str, items: Sequence[str], answers: Sequence[Answer], good: str, lowers: Sequence[bool] | None = None
) -> list[Verdict]:
    """Return each item with its answer; what is not `good` lowers the score, unless `lowers` says otherwise."""
    low = [answer.choice != good for answer in answers] if lowers is None else lowers
    return [
        Verdict(
            id=str(i),
            kind=kind,
            text=item,
            verdict=answer.choice,
            probability=answer.probability(good),
            evidence=answer.evidence,
            lowers_score=lowers_score,
        )
        for i, (item, answer, lowers_score) in enumerate(zip(items, answers, low, strict=True), 1)
    ]
