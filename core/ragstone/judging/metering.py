"""A meter that reserves what calls will cost before they are made: what a budget counts with."""

from abc import ABC, abstractmethod
from collections import Counter

from ragstone.judge import Meter


class ReservingMeter(Meter, ABC):
    """Counts the cost of one evaluation, and reserves it before calls are made: by the round or by the call.

    Cost is a Counter of "calls", "input" and "output" tokens: as the provider says, else as estimated.
    """

    def __init__(self) -> None:
        super().__init__()
        # So far; that of a round under way is an estimate.
        self._cost: Counter[str] = Counter()
        self._reserved: Counter[str] = Counter()

    @abstractmethod
    def _expect(self, need: Counter[str]) -> None:
        """Raise what the first round needs to what the whole evaluation is expected to need."""

    @abstractmethod
    def _reserve(self, more: Counter[str]) -> None:
        """Reserve more, or raise CannotScore."""

    def again(self) -> None:
        """Reserve another try of a call of this round: the one that failed was made, too.

        Raises:
            CannotScore: "over_budget"; the call is not made.
        """
        self._take(Counter(calls=1))

    def spared(self) -> None:
        """Uncount a call that was not needed."""
        super().spared()
        self._cost["calls"] -= 1

    def _take(self, more: Counter[str]) -> None:
        need = self._cost + more
        if not self._cost:
            self._expect(need)
        missing = need - self._reserved
        self._reserve(missing)
        self._reserved += missing
        self._cost += more

    def _beyond(self) -> Counter[str]:
        """The cost beyond what was reserved; less than that is negative."""
        beyond = Counter(self._cost)
        beyond.subtract(self._reserved)
        return beyond
