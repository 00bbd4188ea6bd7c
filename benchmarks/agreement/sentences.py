"""Sentences that people chose, against those that a metric chose."""

import math
from collections.abc import Callable, Iterator, Sequence

from . import statistics as st
from .comparison import Comparison, Measured, Pair, Take, taken
from .fields import Place
from .lines import Line

_LEXICAL = (0.2, 0.3)  # shares of the question's words that make a sentence relevant to the lexical floor


def sentence_f1(chosen: frozenset[Place], relevant: frozenset[Place]) -> float:
    """Return F1 of a row's chosen sentences; where none is relevant, 1 if none is chosen, else 0.

    Example:
        >>> sentence_f1(frozenset({(0, 0), (0, 1)}), frozenset({(0, 1)}))
        0.6666666666666666
        >>> sentence_f1(frozenset(), frozenset()), sentence_f1(frozenset({(0, 0)}), frozenset())
        (1.0, 0.0)
    """
    if not relevant:
        return float(not chosen)
    return 2 * len(chosen & relevant) / (len(chosen) + len(relevant))


def sentence_precision(chosen: frozenset[Place], relevant: frozenset[Place]) -> float:
    """Return the share of the chosen sentences that are relevant; NaN where none is chosen."""
    return len(chosen & relevant) / len(chosen) if chosen else float("nan")


def sentence_recall(chosen: frozenset[Place], relevant: frozenset[Place]) -> float:
    """Return the share of the relevant sentences that are chosen; NaN where none is relevant."""
    return len(chosen & relevant) / len(relevant) if relevant else float("nan")


Chosen = Callable[[Pair], "frozenset[Place]"]
OfRow = Callable[["frozenset[Place]", "frozenset[Place]"], float]


def sentence_comparisons() -> Iterator[Comparison]:
    """Yield what there is to compare: decisions, probabilities, and the share of relevant sentences."""

    def decided(line: Line) -> bool:
        return line.value is not None and line.sentences is not None

    def graded(line: Line) -> bool:
        return decided(line) and all(mark[3] is not None for mark in line.sentences or ())

    trivial: dict[str, Chosen] = {"take all": lambda pair: frozenset(pair[0].places())}
    trivial |= {f"lexical {share:g}".replace("0.", "."): _lexical(share) for share in _LEXICAL}
    of_rows: dict[str, OfRow] = {
        "sentence F1": sentence_f1,
        "sentence F1, answerable rows": lambda chosen, relevant: (
            sentence_f1(chosen, relevant) if relevant else math.nan
        ),
        "sentence precision": sentence_precision,
        "sentence recall": sentence_recall,
    }
    for name, of_row in of_rows.items():
        yield Comparison(
            "sentences",
            "relevant",
            name,
            decided,
            _by_row(of_row, lambda pair: pair[1].chosen),
            {floor: _by_row(of_row, chosen) for floor, chosen in trivial.items()},
        )
    yield Comparison(
        "probabilities",
        "relevant",
        "AUROC of sentences",
        graded,
        lambda pairs: st.sentence_auroc(
            [[mark[3] or 0.0 for mark in line.sentences or ()] for _, line in pairs],
            [[mark[:2] in each.relevant for mark in line.sentences or ()] for each, line in pairs],
        ),
        {
            "lexical": lambda pairs: st.sentence_auroc(
                [[each.signals.overlaps[p][s] for p, s in each.places()] for each, _ in pairs],
                [[place in each.relevant for place in each.places()] for each, _ in pairs],
            )
        },
    )
    for reading in ("value", "sentence_expected"):
        take = taken(reading)
        yield from _of_share(reading, take)


def _of_share(reading: str, take: Take) -> Iterator[Comparison]:
    def has(line: Line) -> bool:
        return take(line) is not None

    def lexical(pairs: Sequence[Pair]) -> list[float]:
        places = _lexical(_LEXICAL[0])
        return [len(places(pair)) / max(1, sum(1 for _ in pair[0].places())) for pair in pairs]

    def shares(pairs: Sequence[Pair]) -> list[float]:
        return [each.target["share"] for each, _ in pairs]

    def values(pairs: Sequence[Pair]) -> list[float]:
        return [value for _, line in pairs if (value := take(line)) is not None]

    def constant(pairs: Sequence[Pair]) -> list[float]:
        ordered = sorted(shares(pairs))
        return [ordered[len(ordered) // 2]] * len(ordered)

    yield Comparison(
        reading,
        "share",
        "rho of the share",
        has,
        lambda pairs: st.pooled(values(pairs), shares(pairs), [None] * len(pairs)),
        {"lexical .2": lambda pairs: st.pooled(lexical(pairs), shares(pairs), [None] * len(pairs))},
    )
    yield Comparison(
        reading,
        "share",
        "mean error of the share",
        has,
        lambda pairs: st.absolute_error(values(pairs), shares(pairs)),
        {"the median label": lambda pairs: st.absolute_error(constant(pairs), shares(pairs))},
    )


def _by_row(of_row: OfRow, chosen: Chosen) -> Measured:
    return lambda pairs: st.mean([of_row(chosen(pair), pair[0].relevant) for pair in pairs])


def _lexical(share: float) -> Chosen:
    return lambda pair: frozenset((p, s) for p, s in pair[0].places() if pair[0].signals.overlaps[p][s] >= share)
