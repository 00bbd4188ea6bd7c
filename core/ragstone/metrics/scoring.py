"""Arithmetic that metrics share, as pure functions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.errors import CannotScore
from ragstone.judging.reply import Answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def expected_share(probabilities: Sequence[float | None]) -> float | None:
    """Return the mean of the probabilities; None when one is missing or there are none.

    Example:
        >>> expected_share([0.5, 1.0]), expected_share([0.5, None])
        (0.75, None)
    """
    known = [p for p in probabilities if p is not None]
    return sum(known) / len(known) if known and len(known) == len(probabilities) else None


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
        raise CannotScore("judge_unparseable", "embedder: returned no array of numbers") from None
    if rows.ndim != 2 or rows.shape[0] != n + 1 or rows.shape[1] == 0:
        raise CannotScore("judge_unparseable", f"embedder: shape {rows.shape} for {n + 1} texts")
    if not np.isfinite(rows).all():
        raise CannotScore("judge_unparseable", "embedder: a vector holds NaN or infinity")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise CannotScore("judge_unparseable", "embedder: a zero vector has no direction")
    rows = rows / largest  # so that squares neither overflow nor vanish
    unit = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return [max(-1.0, min(1.0, float(cosine))) for cosine in unit[1:] @ unit[0]]
