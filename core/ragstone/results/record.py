r"""One outcome with what is known of its sample, and its one form as JSON: in results files, journals, sinks, queues.

    {"id": "q1", "row": 4, "draw": 0, "judge": "qwen3", "status": "scored", the outcome's fields, "sample": {...}}

What concerns live traffic alone is left out where it has its default. The text is UTF-8 and one line; half a surrogate
pair, which a judge may write, stands in it as JSON's `\ud83d`.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Annotated, Any, cast

import pydantic_core
from pydantic import Field, TypeAdapter

from ragstone.judge import LLMReply
from ragstone.judging.flow import without_reply
from ragstone.outcome import Outcome, Score, Unscored, Usage, Verdict
from ragstone.plain import clean_integer, clean_key, clean_real, clean_text, is_list, to_json, to_plain
from ragstone.sample import Sample

_Place = Annotated[int, Field(ge=0, lt=1 << 62)]
_Time = Annotated[float, Field(ge=0, le=253_402_300_799)]  # the end of the year 9999: what a calendar can show
_NOT_FINAL = frozenset({"judge_error", "timeout", "cancelled", "over_budget"})
_DAMAGE = (AttributeError, KeyError, TypeError, RecursionError)
_KINDS: Mapping[str, tuple[type[Score] | type[Unscored], frozenset[str]]] = {
    "scored": (Score, frozenset(Score.model_fields)),
    "unscored": (Unscored, frozenset(Unscored.model_fields)),
}

COLUMNS = {
    "sample_id": "key", "metric": "key", "version": "key", "status": "text", "value": "real", "passed": "integer",
    "reason": "text", "detail": "text", "breakdown": "json", "verdicts": "json", "judge": "text",
    "submitted_at": "real", "scored_at": "real", "rate": "real", "chosen_by": "text", "llm_calls": "integer",
    "embed_calls": "integer", "input_tokens": "integer", "output_tokens": "integer", "seconds": "real",
    "trace_id": "text", "span_id": "text", "sample": "json", "suspected": "json",
    "run_id": "text", "run_name": "text", "tags": "json", "user_id": "text", "thread_id": "text",
}  # fmt: skip
"""The columns of a record in a database, and the kind of each. Times are in seconds since 1970 (UTC)."""


@dataclass(frozen=True, slots=True)
class Record:
    """One metric's outcome for one sample, in one draw.

    A sink tells records apart by `(sample_id, outcome.metric, outcome.version)`; a batch also by `row` and `draw`.

    Attributes:
        sample_id: The sample's id. Without one: in a batch its line, from 1; live its trace.
        outcome: The outcome. From a monitor without `store_text` it has no texts of the app: verdicts keep ids, words,
            probabilities and the positions of their evidence.
        judge: The judge's `model`.
        row: The sample's position in a batch's input, from 0; rows without a sample count.
        draw: Which of `repeat` scorings it is, from 0.
        submitted_at: When the app submitted the sample, in seconds since 1970 (UTC); 0.0 in a batch.
        scored_at: When it was scored, likewise.
        rate: The probability of choosing this sample; 1.0 if a rule chose it.
        chosen_by: "rate", the rule that chose it, or "feedback" that came later (means leave it out).
        origin: Facts that a sink recorded when the sample was submitted (`trace_id` and `span_id` of OpenTelemetry).
        sample: The sample, if it is kept with the record.
        run_id: The framework's own id of the run: LangChain's run id, the id of LlamaIndex' span.
        run_name: What ran: a chain's or an engine's name.
        tags: The run's tags.
        user_id: Whose question it was, by the app's metadata.
        thread_id: The conversation that it belongs to, likewise.
        alerts: The monitor's alerts that count the outcome, by name, each with the slices that it is in.

    Example:
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> record = Record("a", nothing, judge="j", row=4)
        >>> decode(encode(record)) == record
        True
    """

    sample_id: str
    outcome: Outcome
    judge: str = ""
    row: _Place = 0
    draw: _Place = 0
    submitted_at: _Time = 0.0
    scored_at: _Time = 0.0
    rate: float = 1.0
    chosen_by: str = "rate"
    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    sample: Sample | None = None
    run_id: str | None = None
    run_name: str | None = None
    tags: tuple[str, ...] = ()
    user_id: str | None = None
    thread_id: str | None = None
    alerts: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others in a sink: sample id, metric, version."""
        return self.sample_id, self.outcome.metric, self.outcome.version


_ADAPTER = TypeAdapter(Record)
_OPTIONAL = tuple(each.name for each in fields(Record) if each.name not in ("sample_id", "outcome"))


def encode(record: Record, *, texts: bool = True) -> str:
    """Return a record as one line of JSON, without its end. Never raises.

    Args:
        record: The record.
        texts: False leaves out the sample's texts (its id and metadata stay), and those of verdicts and evidence.

    Example:
        >>> score = Score(metric="demo", value=0.5, reason="", version="1")
        >>> encode(Record("a", score, row=1))[:66]
        '{"id":"a","row":1,"draw":0,"judge":"","status":"scored","metric":"'
    """
    head = {"id": record.sample_id, "row": record.row, "draw": record.draw, "judge": record.judge}
    line = f"{_json(head)[:-1]},{encode_outcome(record.outcome if texts else without_texts(record.outcome))[1:]}"
    tail: dict[str, object] = {}
    if record.submitted_at or record.scored_at:
        tail["submitted_at"], tail["scored_at"] = record.submitted_at, record.scored_at
    if record.rate != 1.0:
        tail["rate"] = record.rate
    if record.chosen_by != "rate":
        tail["chosen_by"] = record.chosen_by
    for name in ("origin", "run_id", "run_name", "tags", "user_id", "thread_id", "alerts"):
        if value := getattr(record, name):
            tail[name] = value
    if record.sample is not None:
        tail["sample"] = sample_fields(record.sample, texts=texts)
    return f"{line[:-1]},{_json(tail)[1:]}" if tail else line


def decode(text: str | bytes) -> Record:
    """Return the record that a line of JSON holds. Fields that a newer version added are passed over.

    Raises:
        ValueError: It holds none, or is damaged.
    """
    try:
        values = json.loads(text)
    except RecursionError as error:
        raise ValueError("no record: too deep") from error
    return record_of(values)


def record_of(values: Mapping[str, object]) -> Record:
    """Return the record of a JSON object's fields.

    Raises:
        ValueError: They are of none.
    """
    try:
        named = {name: values[name] for name in _OPTIONAL if name in values}
        return _ADAPTER.validate_python({"sample_id": values["id"], "outcome": _outcome(values), **named})
    except _DAMAGE as error:
        raise ValueError(f"no record: {type(error).__name__}: {error}") from None


def to_row(record: Record) -> dict[str, str | float | int | None]:
    """Return a record as a row of a database; what there is none of is NULL.

    Example:
        >>> row = to_row(Record("a", Unscored(metric="demo", reason="timeout", detail="after 30 s", version="1")))
        >>> row["status"], row["value"], row["reason"], row["detail"]
        ('unscored', None, 'timeout', 'after 30 s')
    """
    values: dict[str, Any] = {name: getattr(record, name) for name in _OPTIONAL if name in COLUMNS}
    values |= {**dict(record.outcome), **dict(record.outcome.usage), "sample_id": record.sample_id}
    values |= {"status": _status(record.outcome)} | {name: record.origin.get(name) for name in ("trace_id", "span_id")}
    return {
        name: None if values.get(name) in (None, ()) else _CELLS[kind](values[name]) for name, kind in COLUMNS.items()
    }


def _json_cell(value: object) -> str:
    if is_list(value):  # of verdicts: ten thousand in one piece would hold up the app's threads
        return f"[{','.join(map(_json_cell, value))}]"
    if not isinstance(value, Sample):  # whose metadata may be of any kind
        with suppress(ValueError):  # half a surrogate pair
            return pydantic_core.to_json(value).decode()
    return to_json(value)


_CELLS: Mapping[str, Callable[[Any], str | float | int]] = {
    "key": clean_key,
    "text": clean_text,
    "json": _json_cell,
    "real": clean_real,
    "integer": clean_integer,
}


def from_row(row: Mapping[str, object], place: int) -> Record:
    """Return the record of a database's row.

    Args:
        row: Its columns; some may be left out.
        place: What becomes `Record.row`.

    Raises:
        ValueError: A hand has changed it.
    """
    try:
        values = {
            name: json.loads(cast("str", cell)) if COLUMNS[name] == "json" else cell
            for name, cell in row.items()
            if cell is not None
        }
    except (TypeError, RecursionError) as error:
        raise ValueError(f"no record: {error}") from None
    usage = {name: row[name] for name in Usage.model_fields}
    origin = {name: row[name] for name in ("trace_id", "span_id") if row.get(name) is not None}
    return record_of({**values, "id": row["sample_id"], "row": place, "usage": usage, "origin": origin})


def encode_outcome(outcome: Outcome) -> str:
    """Return an outcome as JSON: the part of a record that a journal keeps. Never raises.

    Example:
        >>> score = Score(metric="demo", value=0.5, reason="", version="1")
        >>> decode_outcome(encode_outcome(score)) == score
        True
    """
    return f'{{"status":"{_status(outcome)}",{_outcome_json(outcome)[1:]}'


def decode_outcome(text: str | bytes) -> Outcome:
    """Return the outcome that `encode_outcome` wrote.

    Raises:
        ValueError: The text is damaged.
    """
    try:
        return _outcome(json.loads(text))
    except _DAMAGE as error:
        raise ValueError(f"no outcome: {type(error).__name__}: {error}") from None


def encode_reply(reply: LLMReply) -> str:
    """Return a judge's reply as JSON, for a journal.

    Example:
        >>> decode_reply(encode_reply(LLMReply("yes", input_tokens=9)))
        LLMReply(text='yes', input_tokens=9, output_tokens=None, probabilities=None, ended='')
    """
    return _json([reply.text, reply.input_tokens, reply.output_tokens, reply.probabilities, reply.ended])


def decode_reply(text: str) -> LLMReply:
    """Return the reply that `encode_reply` wrote.

    Raises:
        ValueError: The text is damaged.
    """
    try:
        reply, input_tokens, output_tokens, probabilities, *ended = json.loads(text)  # older journals do not say it
        return LLMReply(reply, input_tokens, output_tokens, probabilities, *ended)
    except _DAMAGE as error:
        raise ValueError(f"no reply: {type(error).__name__}: {error}") from None


def is_final(outcome: Outcome) -> bool:
    """Whether asking again would change nothing: False for a failure whose cause lies outside the sample.

    Example:
        >>> is_final(Unscored(metric="demo", reason="timeout", detail="60 s", version="1"))
        False
    """
    return isinstance(outcome, Score) or outcome.reason not in _NOT_FINAL


def without_texts(outcome: Outcome) -> Outcome:
    """Return an outcome without the app's texts: value, breakdown, ids, words, probabilities and places stay."""
    if isinstance(outcome, Unscored):
        quotes = outcome.reason == "judge_unparseable"
        return outcome.model_copy(update={"detail": without_reply(outcome.detail)}) if quotes else outcome
    verdicts: list[Verdict] = []
    for verdict in outcome.verdicts:  # there may be ten thousand
        evidence = tuple([each.model_copy(update={"text": ""}) for each in verdict.evidence])
        verdicts.append(verdict.model_copy(update={"text": "", "evidence": evidence}))
    return outcome.model_copy(update={"reason": "", "verdicts": tuple(verdicts)})


def sample_fields(sample: Sample, *, texts: bool = True) -> dict[str, object]:
    """Return the fields of a sample that were set, or its id and metadata alone."""
    kept = sample.model_fields_set if texts else sample.model_fields_set & {"id", "metadata"}
    return {name: getattr(sample, name) for name in type(sample).model_fields if name in kept}


def _status(outcome: Outcome) -> str:
    return "scored" if isinstance(outcome, Score) else "unscored"


def _outcome(values: Mapping[str, object]) -> Outcome:
    kind, names = _KINDS[cast("str", values["status"])]
    return kind.model_validate({name: value for name, value in values.items() if name in names})


def _outcome_json(outcome: Outcome) -> str:
    # pydantic writes null for what JSON has no number for, and something else for half a surrogate pair in a key.
    if isfinite(outcome.usage.seconds) and (not isinstance(outcome, Score) or all(map(str.isascii, outcome.breakdown))):
        with suppress(ValueError):  # half a surrogate pair elsewhere
            return outcome.model_dump_json()
    return _json(outcome.model_dump())


def _json(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):  # metadata of any kind
        text = json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
