"""A meter that reserves what calls will cost before they are made: what a budget counts with."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

from ragstone.judge import JudgeReply, JudgeRequest, Meter
from ragstone.judging.prompt import tokens


class ReservingMeter(Meter, ABC):
    """Counts the cost of one evaluation, and reserves what a round of calls will cost before it is made.

    Cost is a Counter of "calls", "input" and "output" tokens: as the provider says, else as estimated.
    """

    def __init__(self) -> None:
        super().__init__()
        # so far, that of a round under way as it is estimated
        self._cost: Counter[str] = Counter()
        self._reserved: Counter[str] = Counter()
        # tokens of each prompt of this round
        self._estimates: list[int] = []

    @abstractmethod
    def _expect(self, need: Counter[str]) -> None:
        """Raise what the first round needs to what the whole evaluation is expected to need."""

    @abstractmethod
    def _reserve(self, more: Counter[str]) -> None:
        """Reserve more, or raise CannotScore."""

    def asking(self, round_: Sequence[object]) -> None:
        """Reserve the round's cost.

        Raises:
            CannotScore: "over_budget" and the like; the calls are not made.
        """
        requests = [request for request in round_ if isinstance(request, JudgeRequest)]
        if requests:
            estimates = [tokens(*request.texts_read) for request in requests]
            self._take(Counter(calls=len(requests), input=sum(estimates)))
            self._estimates = estimates
        super().asking(round_)

    def again(self) -> None:
        """Reserve another try of a call of this round: the one that failed was made, too.

        Raises:
            CannotScore: As `asking`.
        """
        self._take(Counter(calls=1))

    def spared(self) -> None:
        """Uncount a call that was not needed."""
        super().spared()
        self._cost["calls"] -= 1

    def answered(self, replies: Sequence[object]) -> None:
        """Count the cost of the replies."""
        super().answered(replies)
        of_judges = [reply for reply in replies if isinstance(reply, JudgeReply)]
        for estimate, reply in zip(self._estimates, of_judges, strict=True):
            sent, received = reply.input_tokens, reply.output_tokens
            if received is None:
                received = tokens(reply.text)
            self._cost.update(input=0 if sent is None else sent - estimate, output=received)
        self._estimates = []

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
