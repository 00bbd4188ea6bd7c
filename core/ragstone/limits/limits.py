"""`Limits`: what a run may ask of its judges, at most."""

from dataclasses import dataclass, fields

from ragstone.options import AboveZero, Count, checked


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one run on its judges: calls at once, rates, caps and time-outs. None: no limit.

    Args:
        max_concurrency: Calls to judges in flight at most (not samples), and to embedders as many. A judge may have
            a limit of its own, such as `OpenAICompatible(max_concurrency=...)`; the embedded one's is 1.
        requests_per_minute: Calls to judges at most, spread evenly. A retry by the judge's own client is not seen.
        tokens_per_minute: Tokens of judges at most: estimated before a call, then corrected.
        max_calls: Calls to judges at most, in this run, each try counted; tries by the judge's own client are not
            seen. An evaluation that has no room makes no call and is `Unscored("over_budget")`; with a journal, the
            same call goes on there, with its limits anew.
        max_tokens: Prompt and reply tokens of judges at most, likewise. Each call reserves as much as the largest one
            so far; the first goes alone. So the limit is passed only by calls in flight that are larger.
        max_cost: Money for judges at most, likewise. Needs `price=` of `evaluate`.
        call_timeout: Seconds for one call with all its tries, without the time that it waits.
            A call that takes longer makes its sample `Unscored("timeout")`. None: 120; no limit for a judge that says
            `in_turn`, as the embedded one does.
        sample_timeout: Seconds for the calls of one sample by one metric. The time that they wait
            is not counted.

    Raises:
        ValueError: One is not above 0.

    Example:
        >>> Limits(max_concurrency=64, requests_per_minute=500).max_concurrency
        64
    """

    max_concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    call_timeout: float | None = None
    sample_timeout: float | None = None

    def __post_init__(self) -> None:
        checked("max_concurrency", self.max_concurrency, Count)
        for each in fields(self):
            if (limit := getattr(self, each.name)) is not None:
                checked(each.name, limit, AboveZero)

    def caps(self) -> dict[str, float]:
        """The caps of a run, by the name of the field; empty without any."""
        caps = {"max_calls": self.max_calls, "max_tokens": self.max_tokens, "max_cost": self.max_cost}
        return {name: cap for name, cap in caps.items() if cap is not None}


def limits_of(given: object) -> Limits:
    """The limits of an option: those of None are the usual ones; a TypeError where it is something else."""
    if given is None:
        return Limits()
    if not isinstance(given, Limits):
        raise TypeError(f"limits: is {type(given).__name__}; pass Limits(max_concurrency=...)")
    return given
