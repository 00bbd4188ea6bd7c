"""Which samples are scored by which metrics: the same choice on every machine."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from ragstone.live.pending import Choice
from ragstone.metrics.base import Metric
from ragstone.options import Share, checked
from ragstone.sample import Sample

Predicate = Callable[[Sample], object]

_THUMBS_DOWN = frozenset({"thumbs_down", "thumbs-down", "down", "negative", "dislike", "bad", "-1", "👎"})
_THUMBS_UP = frozenset({"thumbs_up", "thumbs-up", "up", "positive", "like", "good", "1", "+1", "👍"})


class Sampling:
    """Chooses by a hash of the sample's id, so that the same id is chosen everywhere or nowhere.

    The options are those of `Monitor`: `rate` is `sample_rate`, and a metric that it does not name has 1.0.

    Raises:
        ValueError: A rate is not from 0 to 1, or names no metric; a rule is not known.
        TypeError: `where` or a rule cannot be called, or is async, or `always` is no list.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> sampling = Sampling([ContextRelevancy(llm=FakeLLM(lambda _: "yes"))], rate=0.5)
        >>> [bool(sampling.choose(Sample(), id)) for id in "ghijkl"]
        [False, True, False, True, True, False]
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        rate: float | Mapping[str, float] = 1.0,
        where: Predicate | None = None,
        always: Sequence[str | Predicate] = (),
        seed: str = "",
        *,
        correlated: bool = True,
    ) -> None:
        names = {metric.name for metric in metrics}
        check_function("where", where)
        rules: Sequence[str | Predicate] = [always] if isinstance(always, str) or callable(always) else always
        rates = dict(rate) if isinstance(rate, Mapping) else dict.fromkeys(names, rate)
        if unknown := sorted(set(rates) - names, key=str):
            raise ValueError(f"sample_rate: {unknown[0]!r} is not a metric of this monitor; it has {sorted(names)}")
        for value in rates.values():
            checked("sample_rate", value, Share)
        self._choices = [Choice(m.name, m.version, float(rates.get(m.name, 1.0)), "rate") for m in metrics]
        self._where = where
        self._rules = [_rule(rule) for rule in rules]
        self._seed = seed
        self._correlated = correlated

    def choose(self, sample: Sample, sample_id: str) -> list[Choice]:
        """Return the metrics that are to score the sample.

        Raises:
            Exception: Whatever `where` or a rule of the user's raises.
        """
        if self._where is not None and not self._where(sample):
            return []
        drawn: dict[str, float] = {}
        for name, applies in self._rules:
            if applies(sample):
                return [
                    choice._replace(rate=1.0, by=name, drawn=self._draw(choice, sample_id, drawn))
                    for choice in self._choices
                ]
        return [choice for choice in self._choices if self._draw(choice, sample_id, drawn)]

    def _draw(self, choice: Choice, sample_id: str, drawn: dict[str, float]) -> bool:
        if choice.rate in (0.0, 1.0):
            return choice.rate == 1.0
        salt = self._seed if self._correlated else f"{self._seed}\0{choice.metric}"
        if salt not in drawn:
            text = f"{salt}\0{sample_id}".encode("utf-8", "surrogatepass")
            drawn[salt] = int.from_bytes(blake2b(text, digest_size=8).digest(), "big") / 2**64
        return drawn[salt] < choice.rate


def check_function(name: str, function: object) -> None:
    """Refuse what is neither a plain function nor None; what an async one returns would always be true."""
    if function is not None and not callable(function):
        raise TypeError(f"{name}: is {type(function).__name__}; pass a function, or None")
    called = getattr(function, "__call__", None)  # noqa: B004 - of an object, to see whether it is async
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        raise TypeError(f"{name}: is async; pass a plain function")


def _rule(rule: str | Predicate) -> tuple[str, Predicate]:
    if callable(rule):
        check_function("always", rule)
        return str(getattr(rule, "__name__", type(rule).__name__)), rule
    if rule not in _RULES:
        raise ValueError(f"always: {rule!r} is not a rule; use {', '.join(_RULES)}, or a function of the sample")
    return rule, _RULES[rule]


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
