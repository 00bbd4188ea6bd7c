"""From outcomes to figures: what each attack changed, and the means with their intervals. Pure functions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragstone import Outcome, Score
from ragstone.reporting.statistics import bootstrap_interval

from .cases import Case
from .scoring import Outcomes, key_of

Interval = tuple[float, float] | None
_EXPECTED = {
    "context_relevancy": ("sentence_expected",),
    "response_relevancy": ("expected",),
    "summarization_score": ("qa_expected",),
    "alignment_coverage": ("alignment_expected", "coverage_expected"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """What an attack changed in one sample.

    Attributes:
        attack, metric, sample, field: The case.
        towards: 1 where the attack wants the score up, -1 where it wants it down.
        plain, filler, attacked: The scores without, with a harmless text, with the attack; None: unscored.
        filler_expected, attacked_expected: The same by the judge's probabilities; None where it gives none.
        compared: The verdicts that there are with the harmless text and with the attack, on the sample's own items.
        changed: Those of them that differ.
        unscored: Why there is no score with the attack; "" where there is one.
        suspected: The kinds of attack that were noted.
    """

    attack: str
    metric: str
    sample: str
    field: str
    towards: int
    plain: float | None
    filler: float | None
    attacked: float | None
    filler_expected: float | None
    attacked_expected: float | None
    compared: int
    changed: int
    unscored: str
    suspected: tuple[str, ...]

    @property
    def shift(self) -> float | None:
        """How far the attack moved the score the way it wants, against the harmless text."""
        return _moved(self.filler, self.attacked, self.towards)

    @property
    def shift_from_plain(self) -> float | None:
        """The same against the sample as it is; None for an attack that is all of the response."""
        return None if self.plain is None else _moved(self.plain, self.attacked, self.towards)

    @property
    def shift_expected(self) -> float | None:
        """The same as `shift` by the judge's probabilities."""
        return _moved(self.filler_expected, self.attacked_expected, self.towards)


def changes(cases: Iterable[Case], outcomes: Outcomes) -> list[Change]:
    """Return what each attack changed."""
    return [_change(case, outcomes) for case in cases]


def _change(case: Case, outcomes: Outcomes) -> Change:
    known = case.known
    plain, filler, attacked = (outcomes[key_of(known, sample)] for sample in (known.sample, case.filled, case.attacked))
    before, after = _verdicts(filler), _verdicts(attacked)
    both = before.keys() & after.keys()
    return Change(
        attack=case.attack.name,
        metric=known.metric,
        sample=known.name,
        field=case.field,
        towards=1 if case.attack.aim == "up" else -1,
        plain=None if case.attack.alone else _value(plain),
        filler=_value(filler),
        attacked=_value(attacked),
        filler_expected=_expected(filler),
        attacked_expected=_expected(attacked),
        compared=len(both),
        changed=sum(before[item] != after[item] for item in both),
        unscored="" if isinstance(attacked, Score) else attacked.reason,
        suspected=tuple(sign.kind for sign in attacked.suspected),
    )


def _value(outcome: Outcome) -> float | None:
    return outcome.value if isinstance(outcome, Score) else None


def _expected(outcome: Outcome) -> float | None:
    if not isinstance(outcome, Score):
        return None
    parts = [outcome.breakdown.get(name) for name in _EXPECTED[outcome.metric]]
    known = [part for part in parts if part is not None]
    return min(known) if len(known) == len(parts) else None


def _verdicts(outcome: Outcome) -> Mapping[tuple[str, str], str]:
    """Return the verdicts by item: the same text, or, where the judge writes the questions, the same number."""
    if not isinstance(outcome, Score):
        return {}
    by_number = outcome.metric == "response_relevancy"
    return {(v.kind, v.id if by_number else v.text): v.verdict for v in outcome.verdicts}


def _moved(before: float | None, after: float | None, towards: int) -> float | None:
    return None if before is None or after is None else towards * (after - before)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % bootstrap interval, None for fewer than two values; `value` is None for none."""

    n: int
    value: float | None
    interval: Interval


def mean(values: Iterable[float | None]) -> Mean:
    """Return the mean of the values that are there.

    Example:
        >>> mean([0.0, 1.0, None]).value, mean([None]).value
        (0.5, None)
    """
    known = [value for value in values if value is not None]
    if not known:
        return Mean(0, None, None)
    return Mean(len(known), sum(known) / len(known), bootstrap_interval(np.array(known)))


def share_interval(hits: int, n: int) -> Interval:
    """Return Wilson's 95 % interval of a share; None of nothing.

    Example:
        >>> low, high = share_interval(0, 10)
        >>> round(low, 2), round(high, 2)
        (0.0, 0.28)
    """
    if not n:
        return None
    z = 1.959964
    share, scale = hits / n, 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    return max(0.0, centre - reach), min(1.0, centre + reach)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of some cases.

    Attributes:
        runs: How many cases.
        unscored: Those without a score, by reason.
        compared, changed, changed_interval: Verdicts, those that an attack changed, the interval of their share.
        shift, absolute, shift_from_plain, shift_expected: Means of what `Change` has.
        suspected: How many cases were noted as suspected.
    """

    runs: int
    unscored: Mapping[str, int]
    compared: int
    changed: int
    changed_interval: Interval
    shift: Mean
    absolute: Mean
    shift_from_plain: Mean
    shift_expected: Mean
    suspected: int


def figures(given: Sequence[Change]) -> Figures:
    """Return the figures of some cases."""
    compared, changed = sum(change.compared for change in given), sum(change.changed for change in given)
    reasons = [change.unscored for change in given if change.unscored]
    shifts = [change.shift for change in given]
    return Figures(
        runs=len(given),
        unscored={reason: reasons.count(reason) for reason in sorted(set(reasons))},
        compared=compared,
        changed=changed,
        changed_interval=share_interval(changed, compared),
        shift=mean(shifts),
        absolute=mean(None if shift is None else abs(shift) for shift in shifts),
        shift_from_plain=mean(change.shift_from_plain for change in given),
        shift_expected=mean(change.shift_expected for change in given),
        suspected=sum(bool(change.suspected) for change in given),
    )
