"""Who judges, and a journal's keys of outcomes: the same in every process, on every machine, for years.

A key is 32 hex digits (BLAKE2b) of canonical JSON. What could change an outcome is in it; names and order are not. A
judge's identity is the part that distinguishes two of one model name.
"""

import dataclasses
import json
import types
from collections.abc import Mapping
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from ragstone.judge import DecisionRequest, JudgeRequest
from ragstone.plain import fields_of, to_plain
from ragstone.public import public_url
from ragstone.sample import Sample

if TYPE_CHECKING:
    from ragstone.metrics import Metric

_HALVES = ("generate", "agenerate", "decide", "adecide", "embed", "aembed")


class NoKeyError(TypeError):
    """An option of a metric, or a judge's `identity`, that no journal could recognise in another process."""


def identity_json(judge: object) -> str:
    """The identity of a judge or an embedder as JSON: class, `model`, `base_url` and its declared `identity`.

    Raises:
        NoKeyError: Its `identity` is neither a text nor a mapping that JSON can hold.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> identity_json(FakeLLM(lambda request: "yes"))
        '{"class": "FakeLLM", "identity": "fake", "model": "fake"}'
    """
    where = f"{type(judge).__name__}.identity"
    facts = {"class": type(judge).__qualname__, "model": getattr(judge, "model", None)}
    if isinstance(url := getattr(judge, "base_url", None), str):
        facts["base_url"] = public_url(url)
    if (identity := getattr(judge, "identity", None)) is not None:
        if not isinstance(identity, (str, Mapping)):
            raise NoKeyError(f"{where}: is {type(identity).__name__}, not a text or a mapping of plain values")
        facts["identity"] = identity if isinstance(identity, str) else {**identity}
    try:
        return json.dumps(facts, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise NoKeyError(f"{where}: holds what JSON cannot ({error})") from None


def undeclared(judge: object) -> str:
    """A warning of a judge or embedder without a declared `identity` that is used with a journal; else ""."""
    if getattr(judge, "identity", None) is not None:
        return ""
    name = type(judge).__name__
    return (
        f"{name}({getattr(judge, 'model', '')!r}) declares no identity: the journal knows it by class, model and "
        "base_url alone. Give it another `identity`, a text, whenever you change its settings, or use a new journal"
    )


def sample_key(sample: Sample) -> str:
    """Return the key of a sample's texts. Id and metadata are not in it."""
    # None given and no contexts are two things: the one is "empty_input", the other "missing_input".
    has_contexts = "retrieved_contexts" in sample.model_fields_set or bool(sample.retrieved_contexts)
    contexts = list(sample.retrieved_contexts) if has_contexts else None
    turns = [[turn.role, turn.content] for turn in sample.history]
    # These fields came later: without them the key is the former one.
    later: list[object] = [turns] if turns else []
    later += [{"reference": sample.reference}] if sample.reference is not None else []
    later += [{"reference_ids": [*sample.reference_ids]}] if sample.reference_ids else []
    later += [{"retrieved_ids": [*sample.retrieved_ids]}] if "retrieved_ids" in sample.model_fields_set else []
    return _key("sample-1", [sample.user_input, contexts, sample.response, *later])


def sample_digest(sample: Sample) -> str:
    """A digest of all texts of a sample.

    Example:
        >>> sample_digest(Sample(response="Yes.")) == sample_digest(Sample(response="Yes.", id="q1"))
        True
    """
    turns = [[turn.role, turn.content] for turn in sample.history]
    return digest_of([sample.user_input, turns, list(sample.retrieved_contexts), sample.response, sample.reference])


def digest_of(value: object) -> str:
    """A digest of a value that JSON can hold."""
    return blake2b(json.dumps(value).encode(), digest_size=8).hexdigest()


def metric_key(metric: "Metric") -> str:
    """Return the key of a metric: class, name, version, judge and all options.

    Judges and embedders count by class, `model`, `base_url` and `identity`. Options may be plain values, lists,
    mappings, dataclasses, pydantic models, enums, classes and functions. A function counts by its module and name,
    not by its code: rename a function that you edit between runs. Any other object counts by
    its attribute `cache_key`, a text that you change with what it does.

    Raises:
        NoKeyError: An option is none of these, such as a lambda; or a judge's `identity` cannot be used.
    """
    kind = type(metric)
    options = {
        name: to_plain(value, partial(_object, where=f"{metric.name}.{name}"))
        for name, value in _options(metric).items()
        # Keys are what they were before this option.
        if (name, value) != ("reason", False)
    }
    facts = [kind.__qualname__, metric.name, metric.version, judge_key(metric.judge), metric.asks_one_by_one]
    return _key("metric-3", [*facts, json.dumps(options, sort_keys=True)])


def left_out_of(judge: object) -> Mapping[str, str]:
    """The parameters that a judge's provider has refused so far, with its words; none where the judge does not say."""
    names: Mapping[object, object] = getattr(judge, "left_out", None) or {}
    return {str(name): str(why) for name, why in names.items()}


def judge_key(judge: object) -> str:
    """The key of a judge or an embedder: its `identity`, and the parameters that it refused.

    Raises:
        NoKeyError: Its `identity` is neither a text nor a mapping that JSON can hold.
    """
    identity, left_out = identity_json(judge), sorted(left_out_of(judge))
    return _key("judge-1", [identity, left_out] if left_out else identity)


def outcome_key(sample: str, metric: str, given: object = None) -> str:
    """The key of what the metric of a `metric_key` gives for the sample of a `sample_key`.

    What the metric is given in the sample's metadata (`Metric.given_in`) counts beside them.
    """
    more = [] if given is None else [json.dumps(given, default=repr)]
    return _key("outcome-2", [sample, metric, *more])


def reply_key(request: JudgeRequest, judge: str) -> str:
    """Return the key of a reply to a request by the judge of a `judge_key`.

    All of the request is in it, the order of the schema's properties too: a judge writes in that order.
    """
    if isinstance(request, DecisionRequest):
        questions = [[name, each.instruction, each.choices] for name, each in request.questions.items()]
        return _key("reply-3", [request.task, dict(request.texts), questions, judge])
    asked = [request.task, request.system, request.user, request.schema, request.temperature, request.sample_index]
    return _key("reply-3", [*asked, request.choices, judge])


def _key(kind: str, value: object) -> str:
    # Surrogates pass as they are: escaped, two halves and the whole character would be the same.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind.encode()).hexdigest()


def _options(metric: "Metric") -> dict[str, object]:
    """Return the metric's options by name: its fields, and what else it was given when it was made."""
    cls = type(metric)
    names = {field.name for field in dataclasses.fields(metric)}
    for name in getattr(metric, "__dict__", {}):
        if not name.startswith("_") and not isinstance(getattr(cls, name, None), cached_property):
            names.add(name)
    names -= {"llm"} if metric.writer is not None else {"llm", "writer"}
    options = {name: getattr(metric, name) for name in sorted(names)}
    options["scoring"] = "expected" if metric.expects else "count"
    if "embedder" in options:
        options["embedder"] = metric.judge_embedder
    return options


def _object(value: object, where: str) -> object:
    """A JSON value that stands for one that is none of JSON's."""
    kind = type(value).__qualname__
    if isinstance(getattr(value, "model", None), str) and any(hasattr(value, half) for half in _HALVES):
        return {"judge": judge_key(value)}
    if isinstance(own := getattr(value, "cache_key", None), str):
        return {"object": kind, "key": own}
    name: object = getattr(value, "__qualname__", None)
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) and "<" not in str(name):
        return {"name": f"{value.__module__}.{name}"}
    if (fields := fields_of(value)) is not None:
        return {"class": kind, "fields": fields}
    what = "a lambda" if str(name).endswith("<lambda>") else kind
    raise NoKeyError(
        f"{where}: is or holds {what}, which a journal cannot recognise in another process; give it a text "
        "attribute cache_key that changes with what it does, use a function of a module, or run without a journal"
    )
