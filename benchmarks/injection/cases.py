"""Which attack meets which sample, and what each is compared with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragstone import Sample
from ragstone.sample import SampleField

from .attacks import ATTACKS, SHORT, Attack, filler_for
from .samples import FIELDS, SAMPLES, Known, with_text


@dataclass(frozen=True, slots=True)
class Case:
    """An attack in a field of a sample.

    Attributes:
        attack: The attack.
        known: The sample that it is put into.
        field: Where.
    """

    attack: Attack
    known: Known
    field: SampleField

    @property
    def attacked(self) -> Sample:
        """The sample with the attack."""
        return with_text(self.known.sample, self.field, self.attack.text, alone=self.attack.alone)

    @property
    def filled(self) -> Sample:
        """The sample with a harmless text about as long."""
        return with_text(self.known.sample, self.field, filler_for(self.attack), alone=self.attack.alone)


def cases(attacks: Sequence[Attack] = ATTACKS, rounds: int = 1) -> list[Case]:
    """Return each attack in each field of each metric, on one sample that it wants to move.

    Attacks take turns with the samples of that kind; long ones share one sample, so that one filler serves them all.
    A second round puts each attack on the other sample of the kind, a third and a fourth on those that are as it wants
    them already.

    Example:
        >>> [case.known.name for case in cases(rounds=4) if case.field == "retrieved_contexts"][:4]
        ['bad-1', 'bad-2', 'good-1', 'good-2']
    """
    return [case for i, attack in enumerate(attacks) for metric in FIELDS for case in _of(i, attack, metric, rounds)]


def _of(i: int, attack: Attack, metric: str, rounds: int) -> Iterator[Case]:
    wanted = [known for known in SAMPLES if known.metric == metric and known.good == (attack.aim == "down")]
    others = [known for known in SAMPLES if known.metric == metric and known not in wanted]
    if i % 2 and len(attack.text) <= 1.2 * SHORT:
        wanted.reverse()
    for known in [*wanted, *others][:rounds]:
        for field in FIELDS[metric]:
            if not attack.alone or field == "response":
                yield Case(attack, known, field)


def runs(given: Iterable[Case]) -> list[tuple[Known, list[Sample]]]:
    """Return what must be scored for the cases: for each sample itself, with each attack, with each filler."""
    wanted: dict[tuple[str, str], tuple[Known, list[Sample]]] = {}
    for case in given:
        _, samples = wanted.setdefault((case.known.metric, case.known.name), (case.known, [case.known.sample]))
        samples += [sample for sample in (case.filled, case.attacked) if sample not in samples]
    return list(wanted.values())
