"""A judge or embedder that refuses its first calls for good: it is found out once, not once a sample."""

import asyncio

from ragstone.errors import describe, secrets_of, without_keys
from ragstone.judge import LLM, Embedder
from ragstone.limits.pushback import causes, statuses

_WAYS_OUT = {
    401: "check the API key",
    403: "check what the API key may use",
    404: "check the address and the model's name",
}


class Standing:
    """Whether one judge or embedder is asked: no more, once all of its first calls were refused by 401, 403 or 404.

    The first calls are those in flight together. While one of them was refused and none was answered, the others are
    waited for: a provider's moderation says 403 of one sample, too. After an answer nothing is refused for good.

    Args:
        kind: "judge" or "embedder".
        whom: The object.
    """

    def __init__(self, kind: str, whom: LLM | Embedder) -> None:
        self._kind = kind
        self._whom = whom  # held, so that no other object gets its id
        self._why: str | None = None
        self._answered = False
        self._in_flight = 0
        self._known = asyncio.Event()
        self._known.set()

    @property
    def refusal(self) -> str | None:
        """Why it is not asked any more; None if it is."""
        return self._why if self._known.is_set() else None

    @property
    def in_doubt(self) -> bool:
        """Whether a call was refused and others are in flight."""
        return not self._known.is_set()

    async def known(self) -> None:
        """Wait until it is not in doubt."""
        await self._known.wait()

    def asking(self) -> None:
        """Say that a call begins."""
        self._in_flight += 1

    def ended(self) -> None:
        """Say that a call has ended, after `answered` or `failed`."""
        self._in_flight -= 1
        if not self._in_flight:
            self._known.set()

    def answered(self) -> None:
        """Say that a call was answered."""
        self._answered, self._why = True, None
        self._known.set()

    def failed(self, error: Exception) -> None:
        """Say what a call raised."""
        if self._answered or self._why is not None or (todo := _way_out(error)) is None:
            return
        whom, keys = self._whom, secrets_of(self._whom)
        shown = repr(whom.model) if type(whom).__repr__ is object.__repr__ else without_keys(repr(whom)[:200], keys)
        self._why = f"the {self._kind} {shown} refused the first call: {todo} ({describe(error, keys, 300)})"
        self._known.clear()


def _way_out(error: BaseException) -> str | None:
    """Return what to do about an exception that says of one call what holds for all."""
    for each in causes(error):
        for status in statuses(each):
            if status in _WAYS_OUT:
                return _WAYS_OUT[status]
    return None
