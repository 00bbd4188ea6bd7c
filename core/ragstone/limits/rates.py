"""A rate per minute, spread evenly over it."""


class Bucket:
    """A token bucket that holds one second's worth (and at least one), so that no burst opens a minute.

    Whole requests taken from it are never more than `per_minute` in any 60 seconds. Sizes that are not known
    before may overdraw it, and what comes later waits for longer.

    Args:
        per_minute: What may be taken in a minute.

    Example:
        >>> bucket = Bucket(60)
        >>> bucket.take(1, now=0.0)
        >>> bucket.wait(1, now=0.25)
        0.75
    """

    def __init__(self, per_minute: float) -> None:
        self._holds = max(1.0, per_minute / 60)
        self._per_second = (per_minute - self._holds + 1) / 60
        self._level = self._holds
        self._at: float | None = None

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until `amount` may be taken; more than it holds is waited for until it is full."""
        self._refill(now)
        missing = min(amount, self._holds) - self._level
        return 0.0 if missing <= 1e-9 else missing / self._per_second  # a billionth is rounding, not debt

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, or give it back where it is negative."""
        self._refill(now)
        self._level = min(self._holds, self._level - amount)

    def _refill(self, now: float) -> None:
        if self._at is not None:
            self._level = min(self._holds, self._level + (now - self._at) * self._per_second)
        self._at = now
