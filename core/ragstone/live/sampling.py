"""Which samples are scored by which metrics: the same choice on every machine."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

from ragstone.live.pending import Choice
from ragstone.metrics.base import Metric
from ragstone.options import Share, checked
from ragstone.sample import Sample

Predicate = Callable[[Sample], object]

_THUMBS_DOWN = frozenset({"thumbs_down", "thumbs-down", "down", "negative", "dislike", "bad", "-1", "👎"})
_THUMBS_UP = frozenset({"thumbs_up", "thumbs-up", "up", "positive", "like", "good", "1", "+1", "👍"})


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Which samples are scored. A hash of the id decides, so that every process and machine chooses the same.

    Args:
        rate: The share of samples to score, 0 to 1, or a share for each metric by name; a metric that is not named
            has 1.0.
        where: Only samples for which this returns true are scored.
        always: Rules that choose a sample at any rate: "error" (`metadata["error"]`), "thumbs_down"
            (`metadata["feedback"]` is "thumbs_down", "down", "negative", False or a number below 0),
            "empty_retrieval" (no context with text), or a function of the sample.
        seed: Changes which samples are chosen.

    Raises:
        ValueError: A rate is not from 0 to 1, a rule is not known, or another option is not of its type.
        TypeError: `where` or a rule cannot be called, or is async.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> sampling = Sampling(rate=0.5)
        >>> choices = sampling.choices([ContextRelevancy(llm=FakeLLM(lambda _: "yes"))])
        >>> [bool(sampling.choose(choices, Sample(), id)) for id in "ghijkl"]
        [False, True, False, True, True, False]
    """

    rate: float | Mapping[str, float] = 1.0
    where: Predicate | None = None
    always: str | Predicate | Sequence[str | Predicate] = ()
    seed: str | int = ""

    def __post_init__(self) -> None:
        for rate in self.rate.values() if isinstance(self.rate, Mapping) else (self.rate,):
            checked("rate", rate, Share)
        check_function("where", self.where)
        seed = cast("object", self.seed)
        if not isinstance(seed, (str, int)):
            raise TypeError(f"seed: is {type(seed).__name__}; pass text or a whole number")
        for rule in self._always():
            if isinstance(rule, str) and rule not in _RULES:
                use = f"use {', '.join(_RULES)}, or a function of the sample"
                raise ValueError(f"always: {rule!r} is not a rule; {use}")
            check_function("always", _RULES[rule] if isinstance(rule, str) else rule)

    def choices(self, metrics: Sequence[Metric]) -> list[Choice]:
        """Return the metrics with their rates.

        Raises:
            ValueError: `rate` names another metric.
        """
        names = {metric.name for metric in metrics}
        rates = dict(self.rate) if isinstance(self.rate, Mapping) else dict.fromkeys(names, self.rate)
        if unknown := sorted(set(rates) - names, key=str):
            raise ValueError(f"rate: {unknown[0]!r} is not a metric of this monitor; it has {sorted(names)}")
        return [Choice(m.name, m.version, float(rates.get(m.name, 1.0)), "rate") for m in metrics]

    def choose(self, choices: Sequence[Choice], sample: Sample, sample_id: str) -> list[Choice]:
        """Return the metrics that are to score the sample.

        Raises:
            Exception: Whatever `where` or a rule of the user's raises.
        """
        if self.where is not None and not self.where(sample):
            return []
        drawn = [choice for choice in choices if self._draws(choice, sample_id)]
        for rule in self._always():
            applies = _RULES[rule] if isinstance(rule, str) else rule
            if applies(sample):
                name = str(rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__))
                return [choice._replace(rate=1.0, by=name, drawn=choice in drawn) for choice in choices]
        return drawn

    def _draws(self, choice: Choice, sample_id: str) -> bool:
        if choice.rate in (0.0, 1.0):
            return choice.rate == 1.0
        text = f"{self.seed}\0{sample_id}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") / 2**64 < choice.rate

    def _always(self) -> Sequence[str | Predicate]:
        return [self.always] if isinstance(self.always, str) or callable(self.always) else self.always


def check_function(name: str, function: object) -> None:
    """Refuse what is neither a plain function nor None; what an async one returns would always be true."""
    if function is not None and not callable(function):
        raise TypeError(f"{name}: is {type(function).__name__}; pass a function, or None")
    called = getattr(function, "__call__", None)  # noqa: B004 - of an object, to see whether it is async
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        raise TypeError(f"{name}: is async; pass a plain function")


def thumb(feedback: object) -> object:
    """Return "thumbs_up" or "thumbs_down" for the words, flags and numbers that mean it, and all else as it is."""
    if isinstance(feedback, str):
        word = feedback.strip().lower()
        return "thumbs_down" if word in _THUMBS_DOWN else "thumbs_up" if word in _THUMBS_UP else feedback
    if not isinstance(feedback, (int, float)):
        return feedback
    return "thumbs_down" if feedback is False or feedback < 0 else "thumbs_up" if feedback > 0 else feedback


_RULES: Mapping[str, Predicate] = {
    "error": lambda sample: sample.metadata.get("error"),
    "thumbs_down": lambda sample: thumb(sample.metadata.get("feedback")) == "thumbs_down",
    "empty_retrieval": lambda sample: not any(context.strip() for context in sample.retrieved_contexts),
}
