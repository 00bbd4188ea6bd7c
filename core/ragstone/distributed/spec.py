"""What every worker of a run needs to know, as JSON: names and numbers, no live client."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from ragstone.distributed.judges import Nobody, SpecError, check_name, found, is_entry_point, make_embedder, make_judge
from ragstone.judge import LLM, Embedder
from ragstone.metrics import AlignmentCoverage, ContextRelevancy, Metric, ResponseRelevancy, SummarizationScore
from ragstone.metrics.options import check_count

__all__ = ["Spec", "SpecError"]

_CLASSES: Mapping[str, type[Metric]] = {
    cls.name: cls for cls in (SummarizationScore, AlignmentCoverage, ResponseRelevancy, ContextRelevancy)
}
_OBJECTS = {"llm", "embedder", "splitter", "calibration"}
_VERSION = 1
_SHARED = ("requests_per_minute", "tokens_per_minute")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What is scored by, who judges, and within what limits. Checked when it is made; plain JSON throughout.

    Keys are not in it: each worker has its own environment (OPENAI_API_KEY).

    Args:
        metrics: Names, or options by name: {"response_relevancy": {"strictness": 3}}. A metric of your own is named
            "module:Class".
        judge: openai:MODEL; the URL of an OpenAI-compatible server, or MODEL@URL; local or local:PATH; or
            module:function, which returns a judge and is called once in each worker's process.
        embedder: Named in the same way. None: what goes with the judge.
        fields: The row's key by the sample's field, as for `evaluate`.
        repeat: How often each metric scores each sample.
        max_concurrency: Calls to judges in flight at most, all workers together.
        requests_per_minute: Calls to judges at most, all workers together.
        tokens_per_minute: Tokens of judges at most, all workers together.
        call_timeout: Seconds for one call.
        sample_timeout: Seconds for one sample by one metric in which its calls are in flight.
        journal: A folder that all workers reach, made if need be: outcomes are kept there as they come, each worker in
            a file of its own, and looked for before a judge is asked.
        share_replies: Whether equal requests of one worker share one reply.

    Raises:
        SpecError: A part of it is impossible; the message names it.

    Example:
        >>> spec = Spec(metrics=["context_relevancy"], judge="http://127.0.0.1:8080", requests_per_minute=600)
        >>> Spec.from_json(spec.to_json()) == spec
        True
        >>> spec.divided(4).limits()
        '4 calls in flight, 150 requests per minute'
    """

    metrics: Mapping[str, Mapping[str, object]] | Sequence[str]
    judge: str
    embedder: str | None = None
    fields: Mapping[str, str] | None = None
    repeat: int = 1
    max_concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    call_timeout: float | None = None
    sample_timeout: float | None = None
    journal: str | None = None
    share_replies: bool = True

    def __post_init__(self) -> None:
        check_name("judge", self.judge)
        if self.embedder is not None:
            check_name("embedder", self.embedder)
        if self.journal is not None and not isinstance(cast("object", self.journal), str):
            raise SpecError(f"journal: is {type(self.journal).__name__}; name a folder, as text")
        if not isinstance(cast("object", self.share_replies), bool):
            raise SpecError(f"share_replies: {self.share_replies!r} is not True or False")
        try:
            check_count("repeat", self.repeat)
            check_count("max_concurrency", self.max_concurrency)
        except ValueError as error:
            raise SpecError(str(error)) from None
        for limit in (*_SHARED, "call_timeout", "sample_timeout"):
            _check_limit(limit, getattr(self, limit))
        given = self.fields
        if given is not None and not all(
            isinstance(part, str) for pair in cast("dict[object, object]", dict(given)).items() for part in pair
        ):
            raise SpecError("fields: is no mapping of texts, such as {'response': 'output'}")
        object.__setattr__(self, "metrics", _options(self.metrics))
        object.__setattr__(self, "fields", None if given is None else dict(given))
        self._metrics(Nobody(), Nobody())

    def to_json(self) -> str:
        """Return it as JSON, the same text for the same spec."""
        return json.dumps({"spec": _VERSION, **dataclasses.asdict(self)}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """Return the spec that `to_json` wrote, or that was written by hand.

        Raises:
            SpecError: It is no JSON object, has an unknown key, is of a newer ragstone, or says what cannot be.
        """
        try:
            value: object = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise SpecError(f"is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise SpecError(f"is JSON, but a {type(value).__name__} and not an object")
        given = cast("dict[str, Any]", value)
        version = given.pop("spec", _VERSION)
        if version != _VERSION:
            raise SpecError(f"spec: {version!r} is of a newer ragstone; this one knows {_VERSION}: upgrade the workers")
        known = [field.name for field in dataclasses.fields(cls)]
        if unknown := sorted(given.keys() - set(known)):
            raise SpecError(f"{unknown[0]}: is no part of a spec; there are {', '.join(known)}")
        if missing := sorted({"metrics", "judge"} - given.keys()):
            raise SpecError(f"{missing[0]}: is missing")
        return cls(**given)

    def build(self) -> list[Metric]:
        """Return the metrics over a judge made here and now: what each worker does once.

        Raises:
            SpecError: The judge, the embedder or a metric cannot be had on this machine.
        """
        judge = make_judge(self.judge, self.max_concurrency)
        asks_for = any(cls.needs_embedder for cls in map(_class, self.metrics))
        if not asks_for:
            return self._metrics(judge, Nobody())
        return self._metrics(judge, make_embedder(self.embedder, self.judge, judge, self.max_concurrency))

    def unasked(self) -> list[Metric]:
        """Return the metrics over nobody: for what is known of them without a judge."""
        return self._metrics(Nobody(), Nobody())

    def divided(self, workers: int) -> "Spec":
        """Return each worker's share of it: the limits divided by the number of workers, never rounded up.

        Raises:
            SpecError: There are more workers than calls in flight.

        Example:
            >>> Spec(metrics=["context_relevancy"], judge="local", max_concurrency=16).divided(3).max_concurrency
            5
        """
        check_count("workers", workers)
        if workers > self.max_concurrency:
            raise SpecError(
                f"max_concurrency: {self.max_concurrency} calls in flight cannot be divided among {workers} workers; "
                f"raise it to {workers} or more, or use fewer workers"
            )
        rates: dict[str, Any] = {
            name: None if (rate := getattr(self, name)) is None else rate / workers for name in _SHARED
        }
        return replace(self, max_concurrency=self.max_concurrency // workers, **rates)

    def limits(self) -> str:
        """Return the limits in words."""
        rates = [(name.replace("_", " "), getattr(self, name)) for name in _SHARED]
        said = [f"{rate:,.10g} {name}" for name, rate in rates if rate is not None]
        return ", ".join([f"{self.max_concurrency} calls in flight", *said])

    def _metrics(self, judge: LLM, embedder: Embedder) -> list[Metric]:
        metrics = [_metric(name, options, judge, embedder) for name, options in self._given()]
        names = [metric.name for metric in metrics]
        if twice := {name for name in names if names.count(name) > 1}:
            raise SpecError(f"metrics: holds two of the name {min(twice)!r}; run twice, and compare the reports")
        return metrics

    def _given(self) -> list[tuple[str, Mapping[str, object]]]:
        return list(cast("Mapping[str, Mapping[str, object]]", self.metrics).items())


def _options(metrics: object) -> dict[str, dict[str, object]]:
    if isinstance(metrics, Sequence) and not isinstance(metrics, str):
        names = cast("Sequence[object]", metrics)
        made: dict[str, dict[str, object]] = {name: {} for name in names if isinstance(name, str)}
        metrics = made
        if len(made) < len(names):
            raise SpecError("metrics: holds what is no name, or one name twice; write names, or {name: options}")
    if not isinstance(metrics, Mapping) or not metrics:
        raise SpecError(f"metrics: {metrics!r} names no metric; write names, or options by name: {{name: options}}")
    try:
        copied: object = json.loads(json.dumps(dict(cast("Mapping[str, object]", metrics)), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"metrics: the options are no JSON ({error})") from None
    for name, options in cast("dict[str, object]", copied).items():
        if not isinstance(options, dict):
            raise SpecError(f"metrics: {name}: the options are no mapping but {options!r}")
    return cast("dict[str, dict[str, object]]", copied)


def _class(name: str) -> type[Metric]:
    if name in _CLASSES:
        return _CLASSES[name]
    if not is_entry_point(name):
        raise SpecError(f"metrics: there is no metric {name!r}; there are {', '.join(_CLASSES)}, or module:Class")
    cls = found("metrics", name)
    if not (isinstance(cls, type) and issubclass(cls, Metric)):
        raise SpecError(f"metrics: {name} is no subclass of ragstone.Metric")
    return cls


def _fields(cls: type[Metric]) -> dict[str, object]:
    return {field.name: field.type for field in dataclasses.fields(cls)}


def _metric(name: str, options: Mapping[str, object], judge: LLM, embedder: Embedder) -> Metric:
    cls = _class(name)
    known = _fields(cls)
    more: dict[str, Any] = {"embedder": embedder} if cls.needs_embedder else {}
    for option, value in options.items():
        if option not in known or option in _OBJECTS:
            settable = ", ".join(sorted(known.keys() - _OBJECTS))
            raise SpecError(f"metrics: {name} has no option {option!r} that JSON can give; it has {settable}")
        kind = known[option]
        try:  # JSON has lists where an option may want a tuple
            more[option] = (
                value if isinstance(kind, str) else TypeAdapter[Any](cast("Any", kind)).validate_python(value)
            )
        except ValidationError as error:
            said = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise SpecError(f"metrics: {name}.{option}: {value!r}: {said}") from None
    try:
        return cls(llm=judge, **more)
    except (TypeError, ValueError) as error:
        raise SpecError(f"metrics: {name}: {error}") from None


def _check_limit(name: str, value: object) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (number and 0 < cast("float", value) < math.inf):
        raise SpecError(f"{name}: {value!r} is no number above 0, nor None")
