"""A claim checker whose probabilities are given."""

from collections.abc import Callable, Sequence


class FakeChecker:
    """A claim checker whose probabilities are given; everything around it is real.

    Args:
        probability: Of every claim, or a function that gets a text and a claim and gives the claim's probability; an
            exception is raised.
        model: Its name.
        most_claims: How many claims a call may have.
        most_tokens: The longest text of a call.

    Attributes:
        calls: The text and the claims of every call so far, in order of arrival.

    Example:
        >>> fake = FakeChecker(lambda text, claim: float(claim in text))
        >>> fake.check("Ann ran.", ["Ann ran.", "Bob sat."])
        [1.0, 0.0]
    """

    def __init__(
        self,
        probability: float | Exception | Callable[[str, str], float | Exception],
        *,
        model: str = "fake-checker",
        most_claims: int = 16,
        most_tokens: int = 400,
    ) -> None:
        self._probability = probability
        self.model = self.identity = model
        self.most_claims = most_claims
        self.most_tokens = most_tokens
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    def check(self, text: str, claims: Sequence[str], /) -> list[float]:
        """Give the probabilities."""
        self.calls.append((text, tuple(claims)))
        given = self._probability
        found: list[float] = []
        for claim in claims:
            value = given(text, claim) if callable(given) else given
            if isinstance(value, Exception):
                raise value
            found.append(value)
        return found

    async def acheck(self, text: str, claims: Sequence[str], /) -> list[float]:
        """Give the probabilities."""
        return self.check(text, claims)
