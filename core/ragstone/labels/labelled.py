"""A labelled sample: what the judge said on its items, and what a person says."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Labelled:
    """One sample's items.

    Attributes:
        group: What it belongs to, such as its question; a group is never divided between fitting and testing.
        judged: The judge's probability of each item, or the sample's score.
        labels: 1 for yes, 0 for no, of each item; for a score any number from 0 to 1.
        cosines: Of each item with the question, where they are wanted.
        contexts: In which context each item stands, where cosines are wanted.

    Example:
        >>> Labelled("Who wrote Emma?", [0.25, 0.75], [0.0, 1.0]).cosines is None
        True
    """

    group: str
    judged: Sequence[float]
    labels: Sequence[float]
    cosines: Sequence[float] | None = None
    contexts: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """All labelled samples that could be scored.

    Attributes:
        samples: The samples.
        unscored: How many could not be, by reason.
    """

    samples: Sequence[Labelled]
    unscored: Mapping[str, int] = field(default_factory=dict[str, int])


def folds(groups: Sequence[str], most: int, seed: int = 0) -> Iterator[tuple[list[int], list[int]]]:
    """Yield what to fit on and what to test on, as indices; each sample is tested once, with all of its group.

    Args:
        groups: Each sample's group.
        most: How many folds at most; never more than groups.
        seed: Of the order in which groups are dealt out.

    Example:
        >>> sorted(test for _, test in folds(["a", "b", "a"], 10))
        [[0, 2], [1]]
    """
    names = sorted(set(groups))
    random.Random(seed).shuffle(names)  # noqa: S311 - no secret hangs on it
    count = min(most, len(names))
    fold = {name: i % count for i, name in enumerate(names)}
    for number in range(count):
        test = [i for i, group in enumerate(groups) if fold[group] == number]
        yield [i for i, group in enumerate(groups) if fold[group] != number], test
