"""Keys under which a journal keeps outcomes and replies: the same in every process, on every machine, for years.

A key is 32 hex digits (BLAKE2b) of canonical JSON. What could change an outcome is in it; names and order are not.
"""

import dataclasses
import json
import types
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import date, time
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import PurePath
from re import Pattern
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel

from ragstone.identity import IdentityError, identity_json
from ragstone.judge import LLMRequest
from ragstone.metrics.base import DEFAULT_MAX_CHARACTERS, Metric
from ragstone.sample import Sample

_HALVES = ("generate", "agenerate", "embed", "aembed")


class NoKeyError(TypeError):
    """An option of a metric, or a judge's `identity`, that no journal could recognise in another process."""


def sample_key(sample: Sample) -> str:
    """Return the key of a sample's texts. Id and metadata are not in it.

    Example:
        >>> sample_key(Sample(response="Yes.", id="a")) == sample_key(Sample(response="Yes.", id="b"))
        True
        >>> sample_key(Sample(response="Yes.")) == sample_key(Sample(user_input="Yes."))
        False
    """
    # None given and no contexts are two things: the one is "empty_input", the other "missing_input".
    given = "retrieved_contexts" in sample.model_fields_set or bool(sample.retrieved_contexts)
    contexts = list(sample.retrieved_contexts) if given else None
    return _digest("sample-1", [sample.user_input, contexts, sample.response])


def metric_key(metric: Metric) -> str:
    """Return the key of a metric: class, name, version, judge and all options.

    Judges and embedders count by their `identity`, else by class and `model`. Functions count by their name and
    source, those of ragstone by their name, as the metric's version changes with them. What they call is not looked
    into. An object that is none of Python's plain values counts by its attribute `cache_key`, a text that you change
    with what it does.

    Raises:
        NoKeyError: An option is none of these, such as a lambda; or a judge's `identity` cannot be used.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> llm = FakeLLM(lambda request: "yes")
        >>> metric_key(ContextRelevancy(llm=llm)) == metric_key(ContextRelevancy(llm=llm, granularity="chunk"))
        False
    """
    kind = type(metric)
    options = {name: _canonical(value, f"{metric.name}.{name}") for name, value in _options(metric).items()}
    judge = judge_key(metric.judge)
    return _digest("metric-2", [kind.__qualname__, metric.name, metric.version, judge, metric.asks_one_by_one, options])


def judge_key(judge: object) -> str:
    """Return the key of a judge or an embedder, of all that makes it: its `identity`.

    Raises:
        NoKeyError: Its `identity` is neither a text nor a mapping that JSON can hold.

    Example:
        >>> from ragstone.clients import OpenAICompatible
        >>> one, other = (OpenAICompatible("qwen3", base_url=f"http://127.0.0.1:{n}/v1") for n in (8080, 8081))
        >>> judge_key(one) == judge_key(other)
        False
    """
    try:
        return _digest("judge-1", identity_json(judge))
    except IdentityError as error:
        raise NoKeyError(f"{error}; return what makes this judge as plain values, without keys") from None


def outcome_key(sample: Sample | str, metric: Metric | str, draw: int = 0) -> str:
    """Return the key of what a metric gives for a sample.

    Args:
        sample: The sample; or its `sample_key`, where it is scored by several metrics.
        metric: The metric; or its `metric_key`, where it scores many samples.
        draw: Which of several scorings of the same sample it is, from 0.

    Raises:
        NoKeyError: As `metric_key`.

    Example:
        >>> outcome_key("a", "b", 0) == outcome_key("a", "b", 1)
        False
    """
    of_sample = sample if isinstance(sample, str) else sample_key(sample)
    of_metric = metric if isinstance(metric, str) else metric_key(metric)
    return _digest("outcome-1", [of_sample, of_metric, draw])


def reply_key(request: LLMRequest, judge: str, draw: int = 0) -> str:
    """Return the key of a judge's reply to a request.

    All of the request is in it, the order of the schema's properties too: a judge writes in that order.

    Args:
        request: What is asked.
        judge: The `judge_key` of who is asked.
        draw: As for `outcome_key`.

    Example:
        >>> request = LLMRequest(task="demo.ask", system="Answer.", user="Is it?", schema={})
        >>> reply_key(request, "a") == reply_key(request, "b")
        False
    """
    asked = [request.task, request.system, request.user, request.schema, request.temperature, request.sample_index]
    return _digest("reply-2", [*asked, request.choices, judge, draw])


def _digest(kind: str, value: object) -> str:
    # Surrogates pass as they are: escaped, two halves and the whole character would be the same.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind.encode()).hexdigest()


def _options(metric: Metric) -> dict[str, object]:
    """Return the metric's options by name, sorted: its fields, and what else it was given when it was made."""
    cls = type(metric)
    names = {field.name for field in dataclasses.fields(metric)}
    for name in getattr(metric, "__dict__", {}):
        if not name.startswith("_") and not isinstance(getattr(cls, name, None), cached_property):
            names.add(name)
    options = {name: getattr(metric, name) for name in sorted(names - {"llm"})}
    if options["max_characters"] == DEFAULT_MAX_CHARACTERS:  # journals older than the option still serve
        del options["max_characters"]
    return options


def _canonical(value: object, where: str) -> object:
    """Return what stands for a value in JSON. Values that are equal and of one kind give the same."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of numpy: one number, or an array of them
        value = cast("Any", value).tolist()
    if isinstance(value, Enum):
        return ["enum", type(value).__qualname__, value.name]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", value.hex()]
    if isinstance(value, Pattern):
        pattern = cast("Pattern[str]", value)
        return ["pattern", str(pattern.pattern), pattern.flags]
    if isinstance(value, (date, time, Decimal, Fraction, UUID, PurePath)):
        return [type(value).__name__, str(value)]
    if isinstance(value, (list, tuple, Set, Mapping)):
        return _collection(cast("list[object]", value), where)
    if isinstance(value, type):
        return ["class", value.__module__, value.__qualname__]
    return _object(value, where)


def _collection(value: object, where: str) -> object:
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return [
            "mapping",
            *_sorted([_canonical(key, where), _canonical(item, f"{where}[{key!r}]")] for key, item in items),
        ]
    if isinstance(value, Set):
        return ["set", *_sorted(_canonical(item, where) for item in cast("Set[object]", value))]
    return ["list", *(_canonical(item, f"{where}[{i}]") for i, item in enumerate(cast("list[object]", value)))]


def _sorted(values: Iterable[object]) -> list[object]:
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


def _object(value: object, where: str) -> object:
    kind = type(value).__qualname__
    if isinstance(getattr(value, "model", None), str) and any(hasattr(value, half) for half in _HALVES):
        return ["judge", judge_key(value)]
    own = getattr(value, "cache_key", None)
    if isinstance(own, str):
        return ["object", kind, own]
    if isinstance(value, types.FunctionType):
        return _function(value, where)
    if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, (types.ModuleType, type(None))):
        return ["function", value.__module__, value.__qualname__]
    if isinstance(value, types.MethodType):
        return ["method", _canonical(value.__self__, where), value.__name__]
    if isinstance(value, partial):
        made = cast("partial[object]", value)
        return ["partial", *(_canonical(part, where) for part in (made.func, made.args, made.keywords))]
    if isinstance(value, BaseModel):
        names = list(type(value).model_fields)
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        raise _unknown(value, where)
    return ["object", kind, {name: _canonical(getattr(value, name), f"{where}.{name}") for name in sorted(names)}]


def _function(function: types.FunctionType, where: str) -> object:
    """Return name, source, defaults, and the values that the function brought from where it was made."""
    module, name = function.__module__, function.__qualname__
    if module.partition(".")[0] == "ragstone":
        return ["function", module, name]
    source = None if name.endswith("<lambda>") else _source(function)
    if source is None and "<" in name:
        raise _unknown(function, where)
    # A script's module has one name when it is run and another when a worker imports it.
    known = ["function", module, name] if source is None else ["function", name, source]
    try:
        brought = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # not set yet: it refers to what comes after it
        raise _unknown(function, where) from None
    try:
        return [*known, _canonical([brought, function.__defaults__, function.__kwdefaults__], f"{where}.{name}")]
    except RecursionError:  # it brought itself
        raise _unknown(function, where) from None


def _source(function: Callable[..., object]) -> str | None:
    import inspect
    import textwrap

    try:
        return textwrap.dedent(inspect.getsource(cast("types.FunctionType", function).__code__))
    except (OSError, TypeError):  # typed in, or compiled
        return None


def _unknown(value: object, where: str) -> NoKeyError:
    kind = "a lambda" if getattr(value, "__name__", "") == "<lambda>" else f"{type(value).__qualname__}"
    return NoKeyError(
        f"{where}: is {kind}, which a journal cannot know again in another process; give it a text attribute "
        "cache_key that changes with what it does, use a function with a name, or run without a journal"
    )
