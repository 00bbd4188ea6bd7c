"""What a calibration looks at: the judge's word on an item, and what is cheap beside it."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

Item = Literal["sentence", "noncommittal", "score"]
Signal = Literal["judge", "score", "cosine", "cosine_gap", "context_gap", "fewness"]

WITHOUT_EMBEDDER: Mapping[Item, tuple[Signal, ...]] = {
    "sentence": ("judge", "fewness"),
    "noncommittal": ("judge",),
    "score": ("score",),
}
WITH_EMBEDDER: tuple[Signal, ...] = ("judge", "cosine", "cosine_gap", "context_gap", "fewness")
"""Of sentences. The gaps make cosines comparable between questions, whose cosines are high or low together."""

EMBEDDED: frozenset[Signal] = frozenset({"cosine", "cosine_gap", "context_gap"})

_LEAST = 1e-4  # of a probability: further out a log-probability is rounding, and its logit would outweigh all others


def logit(p: float) -> float:
    """Return ln(p / (1 - p)), p held within [0.0001, 0.9999].

    Example:
        >>> logit(0.5), round(logit(1.0), 2)
        (0.0, 9.21)
    """
    held = min(max(p, _LEAST), 1.0 - _LEAST)
    return math.log(held / (1.0 - held))


def sigmoid(z: float) -> float:
    """Return 1 / (1 + exp(-z)), for any finite z.

    Example:
        >>> sigmoid(0.0), sigmoid(-1e6)
        (0.5, 0.0)
    """
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    power = math.exp(z) if z > -700.0 else 0.0
    return power / (1.0 + power)


def columns(
    names: Sequence[Signal],
    judged: Sequence[float],
    cosines: Sequence[float] | None = None,
    contexts: Sequence[int] | None = None,
) -> list[list[float]]:
    """Return each signal's values, one per item of one sample.

    - "judge": the logit of the judge's probability.
    - "score": the sample's score as it is.
    - "cosine": of the item's embedding with the question's.
    - "cosine_gap": that, minus the highest cosine among the sample's items; 0 for the best one.
    - "context_gap": the mean cosine of the items of the same context, minus the highest such mean of the sample.
    - "fewness": minus ln of the number of the sample's items: of many sentences a smaller share is needed.

    Args:
        names: Which signals.
        judged: The judge's probability of each item, or the score.
        cosines: Of each item; needed by the signals of `EMBEDDED`.
        contexts: In which context each item stands; None: all in one.

    Raises:
        ValueError: Cosines are needed and not there, or not as many as items; or contexts are not as many.

    Example:
        >>> columns(("judge", "cosine_gap"), [0.5, 0.5], [0.25, 0.75])
        [[0.0, 0.0], [-0.5, 0.0]]
    """
    if not EMBEDDED.isdisjoint(names) and (cosines is None or len(cosines) != len(judged)):
        raise ValueError(f"cosines: {0 if cosines is None else len(cosines)} for {len(judged)} items")
    near = list(cosines or ())
    if contexts is not None and len(contexts) != len(judged):
        raise ValueError(f"contexts: {len(contexts)} for {len(judged)} items")
    best = max(near, default=0.0)
    values: dict[Signal, list[float]] = {"score": list(judged), "cosine": near}
    if "judge" in names:
        values["judge"] = [logit(p) for p in judged]
    if "cosine_gap" in names:
        values["cosine_gap"] = [cosine - best for cosine in near]
    if "context_gap" in names:
        places = [0] * len(near) if contexts is None else contexts
        together: dict[int, list[float]] = {}
        for place, cosine in zip(places, near, strict=True):
            together.setdefault(place, []).append(cosine)
        means = {place: math.fsum(found) / len(found) for place, found in together.items()}
        highest = max(means.values(), default=0.0)
        values["context_gap"] = [means[place] - highest for place in places]
    if "fewness" in names:
        values["fewness"] = [-math.log(len(judged))] * len(judged)
    return [values[name] for name in names]
