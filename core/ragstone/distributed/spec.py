"""What every worker of a run needs to know, as JSON: names and numbers, no live client."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from ragstone.errors import describe
from ragstone.judge import LLM, Embedder
from ragstone.metrics.base import Metric, check_count
from ragstone.registry import (
    NullJudge,
    RegistryError,
    check_name,
    make_embedder,
    make_llm,
    make_metric,
    metrics_of,
    needs_embedder,
)

_SHARED = ("requests_per_minute", "tokens_per_minute")
_Count = Annotated[int, Field(ge=1)]
_Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None


class SpecError(ValueError):
    """A spec says what cannot be, or names what this machine does not have; the message says which part of it."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What is scored by, who judges, and within what limits. Checked when it is made; plain JSON throughout.

    Keys are not in it: each worker has its own environment (OPENAI_API_KEY).

    Args:
        metrics: Names, or options by name: {"response_relevancy": {"strictness": 3}}; "rag" and "summary" stand for
            several. A metric of your own is named "module:Class".
        judge: A judge by name, as in `ragstone.registry`. Each worker's process makes it once.
        embedder: Named in the same way. None: what goes with the judge.
        fields: The row's key by the sample's field, as for `evaluate`.
        repeat: How often each metric scores each sample.
        max_concurrency: Calls to judges in flight at most, all workers together.
        requests_per_minute: Calls to judges at most, all workers together.
        tokens_per_minute: Tokens of judges at most, all workers together.
        call_timeout: Seconds for one call.
        sample_timeout: Seconds for one sample by one metric in which its calls are in flight.
        journal: A folder that all workers reach, made if need be. Each worker appends outcomes to a file of its own
            there, and looks for an outcome before it asks a judge.
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

    metrics: Mapping[str, Mapping[str, JsonValue]] | Sequence[str]
    judge: str
    embedder: str | None = None
    fields: Mapping[str, str] | None = None
    repeat: _Count = 1
    max_concurrency: _Count = 16
    requests_per_minute: _Limit = None
    tokens_per_minute: _Limit = None
    call_timeout: _Limit = None
    sample_timeout: _Limit = None
    journal: str | None = None
    share_replies: bool = True

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            kind = TypeAdapter[Any](cast("Any", field.type), config=ConfigDict(strict=True))
            value: object = getattr(self, field.name)
            try:
                value = kind.dump_python(kind.validate_python(value))  # a copy: what was handed in may change later
            except ValidationError as error:
                message = error.errors(include_url=False, include_input=False)[0]["msg"]
                raise SpecError(f"{field.name}: {value!r:.200}: {message}") from None
            object.__setattr__(self, field.name, value)
        for part in ("judge", "embedder"):
            if (name := getattr(self, part)) is not None:
                _check(part, name)
        if not isinstance(self.metrics, Mapping):
            if len(set(self.metrics)) < len(self.metrics):
                raise SpecError("metrics: names one metric twice")
            object.__setattr__(self, "metrics", {name: {} for name in self.metrics})
        named = cast("Mapping[str, Mapping[str, JsonValue]]", self.metrics)
        metrics: dict[str, dict[str, JsonValue]] = {}
        for name, options in named.items():
            for metric, own in metrics_of([name]).items():
                metrics[metric] = {**metrics.get(metric, {}), **own, **options}
        object.__setattr__(self, "metrics", metrics)
        if not self.metrics:
            raise SpecError("metrics: is empty; pass names, or options by name: {name: options}")
        self.build_unasked()

    def to_json(self) -> str:
        """Return it as JSON, the same text for the same spec."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """Return the spec that `to_json` wrote, or that was written by hand.

        Raises:
            SpecError: It is no JSON object, has an unknown key (of a newer ragstone), or says what cannot be.
        """
        try:
            return cls(**json.loads(text))
        except (json.JSONDecodeError, TypeError) as error:
            raise SpecError(f"is not a spec in JSON: {error}") from None

    def build(self) -> list[Metric]:
        """Return the metrics over a judge made here and now: what each worker does once.

        Raises:
            SpecError: The judge, the embedder or a metric cannot be had on this machine.
        """
        part, name = "judge", self.judge
        try:
            llm = make_llm(name, max_concurrency=self.max_concurrency)
            part, name = "embedder", self.embedder or f"that of {self.judge}"
            if self.embedder is None and not any(map(needs_embedder, self.metrics)):
                return self._metrics(llm, NullJudge())
            embedder = make_embedder(self.embedder, llm, llm_name=self.judge, max_concurrency=self.max_concurrency)
        except Exception as error:
            raise SpecError(f"{part}: cannot load {name} on this machine: {describe(error)}") from error
        return self._metrics(llm, embedder)

    def build_unasked(self) -> list[Metric]:
        """Return the metrics with a null judge: for what is known of them without a judge."""
        return self._metrics(NullJudge(asking="one_by_one"), NullJudge())  # which may score in any way

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
                f"max_concurrency: {self.max_concurrency} calls in flight are too few for {workers} workers; "
                f"raise it to {workers} or more, or use fewer workers"
            )
        rates: dict[str, Any] = {name: rate / workers for name in _SHARED if (rate := getattr(self, name)) is not None}
        return replace(self, max_concurrency=self.max_concurrency // workers, **rates)

    def limits(self) -> str:
        """Return the limits in words."""
        rates = [(name.replace("_", " "), getattr(self, name)) for name in _SHARED]
        shown = [f"{rate:,.10g} {name}" for name, rate in rates if rate is not None]
        return ", ".join([f"{self.max_concurrency} calls in flight", *shown])

    def _metrics(self, llm: LLM, embedder: Embedder) -> list[Metric]:
        options = cast("Mapping[str, Mapping[str, object]]", self.metrics)
        try:
            wanted = {name: embedder if self.embedder or needs_embedder(name) else None for name in options}
            metrics = [make_metric(name, options[name], llm, wanted[name]) for name in options]
        except RegistryError as error:
            raise SpecError(f"metrics: {error}") from None
        names = [metric.name for metric in metrics]
        if twice := {name for name in names if names.count(name) > 1}:
            raise SpecError(f"metrics: two are called {min(twice)!r}; run them separately, and compare the reports")
        return metrics


def _check(part: str, name: str) -> None:
    """Refuse what names no judge or embedder, and an address with a password in it."""
    try:
        check_name(name)
    except RegistryError as error:
        raise SpecError(f"{part}: {error}") from None
    if "://" in name and "@" in name.rpartition("://")[2].partition("/")[0]:
        raise SpecError(
            f"{part}: the address contains a password, and specs are stored and sent; set OPENAI_BASE_URL and "
            "OPENAI_API_KEY on each worker, or name a function that makes the judge"
        )
