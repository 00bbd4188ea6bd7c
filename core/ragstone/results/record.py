r"""One outcome with its sample's facts, and its one form as JSON: in results files, journals, sinks, queues.

    {"id": "q1", "row": 4, "status": "scored", the outcome's fields, "judge": "qwen3", "sample": {...}}

Defaults are left out. The text is UTF-8 and one line; one of a pair of surrogates, which a judge may
write, stands in it as JSON's `\ud83d`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from ragstone.judge import DecisionReply, JudgeReply, LLMReply
from ragstone.judging.flow import without_reply
from ragstone.outcome import Outcome, Score, Unscored, Usage, Verdict
from ragstone.plain import to_plain
from ragstone.results.clean import clean_integer, clean_key, clean_real, clean_text
from ragstone.sample import Sample

_RowNumber = Annotated[int, Field(ge=0, lt=1 << 62)]
# A calendar ends with the year 9999.
_Time = Annotated[float, Field(ge=0, le=253_402_300_799)]
_NOT_FINAL = frozenset({"judge_error", "timeout", "cancelled", "over_budget"})
_DAMAGE = (AttributeError, IndexError, KeyError, TypeError, RecursionError)
_KINDS: Mapping[str, type[Score] | type[Unscored]] = {"scored": Score, "unscored": Unscored}

RESULTS_MARK = "ragstone_results"
RESULTS_VERSION = 1
COLUMNS = {
    "sample_id": "key", "metric": "key", "version": "key", "status": "text", "value": "real", "passed": "integer",
    "reason": "text", "detail": "text", "breakdown": "json", "verdicts": "json", "judge": "text",
    "submitted_at": "real", "scored_at": "real", "rate": "real", "chosen_by": "text", "llm_calls": "integer",
    "embed_calls": "integer", "input_tokens": "integer", "output_tokens": "integer", "seconds": "real",
    "trace_id": "text", "span_id": "text", "sample": "json",
    "run_id": "text", "run_name": "text", "tags": "json", "user_id": "text", "thread_id": "text", "watched": "json",
    "of_group": "text", "setup": "text",
}  # fmt: skip
"""The columns of a record in a database, and the kind of each. Times are in seconds since 1970 (UTC)."""


class Watched(NamedTuple):
    """What an alert that counts an outcome watches: the lowest mean, the metric's bounds, version, judge and set-up."""

    below: float
    low: float
    high: float
    by: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One metric's outcome for one sample.

    In a sink the key is `(sample_id, outcome.metric, outcome.version)`; in a batch `row`, too.

    Attributes:
        sample_id: The sample's id. Without one: in a batch its line, from 1; live its trace.
        outcome: The outcome. From a monitor without `store_text` it has no texts of the app: verdicts keep ids, words,
            probabilities and the positions of their evidence.
        judge: The judge's `model`.
        row: The sample's position in a batch's input, from 0; rows without a sample count.
        submitted_at: When the app submitted the sample, in seconds since 1970 (UTC); 0.0 in a batch.
        scored_at: When it was scored, likewise.
        rate: The probability of choosing this sample; 1.0 if a rule chose it.
        chosen_by: "rate", or the rule that chose it.
        origin: Facts that a sink recorded when the sample was submitted (`trace_id` and `span_id` of OpenTelemetry).
        sample: The sample, if it is kept with the record.
        run_id: The id that the app's framework gives the run.
        run_name: The name of the chain or engine that ran.
        tags: The run's tags.
        user_id: Whose question it was, by the app's metadata.
        thread_id: The conversation that it belongs to, likewise.
        group: Its group by `group=`, such as "document=handbook.pdf"; None without one.
        watched: The value for the monitor's alert, if it counts the outcome.
        setup: The metric's set-up, where it moves the score and is not the default
            (`ragstone.metrics.setup.setup_of`).

    Example:
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> record = Record("a", nothing, judge="j", row=4)
        >>> decode(encode(record)) == record
        True
    """

    sample_id: str
    outcome: Outcome
    judge: str = ""
    row: _RowNumber = 0
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
    group: str | None = None
    watched: Watched | None = None
    setup: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The key in a sink: sample id, metric, version."""
        return self.sample_id, self.outcome.metric, self.outcome.version


_APART = {"sample_id", "outcome", "sample"}
_OPTIONAL = {each.name for each in fields(Record)} - {"sample_id", "outcome"}
_TRAFFIC = ("judge", "setup", "submitted_at", "scored_at", "rate", "chosen_by")


def encode(record: Record, sample: Sample | None = None, *, texts: bool = True) -> str:
    """A record as one line of JSON, without its end. Never raises.

    Args:
        record: The record.
        sample: The sample that the reader will have, as a line before holds it; a record's own goes first. A
            verdict's quotes of it are not written again.
        texts: False leaves out the sample's texts (its id and metadata stay), and those of verdicts and evidence.

    Example:
        >>> score = Score(metric="demo", value=0.5, reason="", version="1")
        >>> encode(Record("a", score, row=1))
        '{"id":"a","row":1,"status":"scored","metric":"demo","value":0.5,"reason":"","version":"1"}'
    """
    return json_of(to_fields(record, record.sample or sample, texts=texts))


def encode_head(info: Mapping[str, object]) -> str:
    """The first line of a results file: facts of the run (name, metrics, bad_rows). Never raises.

    Example:
        >>> encode_head({"name": "July"})
        '{"ragstone_results":1,"name":"July"}'
    """
    return json_of({RESULTS_MARK: RESULTS_VERSION, **info})


def encode_rows(
    records: Iterable[Record],
    sample_of: Callable[[Record], Sample | None] = attrgetter("sample"),
    *,
    texts: bool = True,
) -> Iterator[str]:
    """Yield a line for each record; those of a row stand together, and one of them alone holds the sample."""
    for _, row in groupby(records, row_of):
        sample = None
        for record in row:
            new = sample_of(record) if sample is None else None
            sample = sample or new
            yield encode(replace(record, sample=new), sample, texts=texts)


def decode_rows(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Record | None]]:
    """Yield each line's number and record, as `encode_rows` wrote them, now each with its row's sample.

    It is None for a line that holds none.
    """
    row, sample = None, None
    for number, line in lines:
        try:
            values = of_json(line)
            if row != (row := (values.get("row", 0), values["id"])):
                sample = None
            if sample is not None:
                values.setdefault("sample", sample)
            record = record_of(values)
        except (ValueError, *_DAMAGE):
            yield number, None
            continue
        sample = record.sample
        yield number, record


def row_of(record: Record) -> tuple[int, str]:
    """The position and the sample's id, which the records of one row have in common."""
    return record.row, record.sample_id


def decode(text: str | bytes, sample: Sample | None = None) -> Record:
    """The record that a line of JSON holds. Fields that a newer version added are passed over.

    Args:
        text: The line.
        sample: The sample that the writer had; a record's own goes first.

    Raises:
        ValueError: It holds none, or is damaged.
    """
    try:
        return record_of(of_json(text), sample)
    except RecursionError:
        raise ValueError("no record: too deep") from None


def to_fields(record: Record, sample: Sample | None = None, *, texts: bool = True) -> dict[str, object]:
    """A record as a flat JSON object, without defaults; the row is always there.

    A verdict is `[id, kind, verdict, lowers_score, evidence, text, probability]`, without the `null`s at its end. Its
    text is `null` where the first evidence has the same. Evidence is `[where, start, end, text]`, without its text
    if `sample` has it there; `where` is the number of a context, or the name of another field.
    """
    outcome = record.outcome if texts else without_texts(record.outcome)
    status = "scored" if isinstance(outcome, Score) else "unscored"
    values: dict[str, object] = {"id": record.sample_id, "row": record.row, "status": status}
    values |= outcome.model_dump(exclude={"verdicts"}, exclude_defaults=True, warnings=False)
    if isinstance(outcome, Score) and outcome.verdicts:
        known: _Texts = _texts_by_field(sample) if texts else {}
        values["verdicts"] = [_verdict_cells(each, known) for each in outcome.verdicts]
    values |= _adapter().dump_python(record, exclude=_APART, exclude_defaults=True, warnings=False)
    if record.sample is not None:
        values["sample"] = sample_fields(record.sample, texts=texts)
    return values


def record_of(values: Mapping[str, Any], sample: Sample | None = None) -> Record:
    """The record that `to_fields` gave.

    Raises:
        ValueError: They are the fields of none.
    """
    try:
        named = {name: values[name] for name in _OPTIONAL if name in values}
        if "sample" in named:
            given = named["sample"]
            sample = named["sample"] = given if isinstance(given, Sample) else Sample(**given)
        kind = _KINDS[values["status"]]
        outcome = {name: values[name] for name in kind.model_fields if name in values}
        if "verdicts" in outcome:
            known = _texts_by_field(sample)
            # Those of a frame have names already.
            outcome["verdicts"] = [
                each if isinstance(each, dict) else _verdict_fields(each, known) for each in outcome["verdicts"]
            ]
        return _adapter().validate_python({"sample_id": values["id"], "outcome": kind(**outcome), **named})
    except _DAMAGE as error:
        raise ValueError(f"no record: {type(error).__name__}: {error}") from None


def to_row(record: Record) -> dict[str, str | float | int | None]:
    """A record as a row of a database; a missing value is NULL.

    Example:
        >>> row = to_row(Record("a", Unscored(metric="demo", reason="timeout", detail="after 30 s", version="1")))
        >>> row["status"], row["value"], row["reason"], row["detail"]
        ('unscored', None, 'timeout', 'after 30 s')
    """
    values = {**_origin(record.origin), **to_fields(record), **dict(record.outcome.usage)}
    values |= {name: getattr(record, name) for name in ("sample_id", *_TRAFFIC)}
    # SQL has a word "group" of its own.
    values["of_group"] = record.group
    return {name: None if values.get(name) is None else _CELLS[kind](values[name]) for name, kind in COLUMNS.items()}


_CELLS: Mapping[str, Callable[[Any], str | float | int]] = {
    "key": clean_key,
    "text": clean_text,
    "json": lambda value: json_of(value),
    "real": clean_real,
    "integer": clean_integer,
}


def from_row(row: Mapping[str, Any], number: int) -> Record:
    """The record of a database's row.

    Args:
        row: Its columns; some may be left out.
        number: What becomes `Record.row`.

    Raises:
        ValueError: A hand has changed it.
    """
    try:
        values = {
            name: json.loads(cell) if COLUMNS[name] == "json" else cell
            for name, cell in row.items()
            if cell is not None
        }
        usage = {name: row[name] for name in Usage.model_fields}
    except _DAMAGE as error:
        raise ValueError(f"no record: {error}") from None
    facts = {"id": row["sample_id"], "row": number, "usage": usage, "origin": _origin(values)}
    facts["group"] = row.get("of_group")
    return record_of({**values, **facts})


def _origin(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in ("trace_id", "span_id") if name in values}


def _verdict_cells(verdict: Verdict, known: "_Texts") -> list[object]:
    evidence: list[list[object]] = []
    for each in verdict.evidence:
        passage: list[object] = [_where(each.field, each.chunk), each.start, each.end]
        text = known.get((each.field, each.chunk))
        if text is None or text[each.start : each.end] != each.text:
            passage.append(each.text)
        evidence.append(passage)
    text = None if verdict.evidence and verdict.evidence[0].text == verdict.text else verdict.text
    first: list[object] = [verdict.id, verdict.kind, verdict.verdict, verdict.lowers_score]
    values = [*first, evidence, text, verdict.probability]
    while values[-1] is None:
        values.pop()
    return values


def _where(name: str, chunk: int | None) -> object:
    if chunk is None:
        return name
    return chunk if name == "retrieved_contexts" else [name, chunk]


def _field_and_chunk(where: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of JSON
    if isinstance(where, str):
        return where, None
    return ("retrieved_contexts", where) if isinstance(where, int) else tuple(where)


def _verdict_fields(values: Sequence[Any], known: "_Texts") -> dict[str, object]:
    cells: list[Any] = [*values, None, None]
    number, kind, word, lowers, passages, text, probability = cells[:7]
    evidence: list[dict[str, object]] = []
    for where, start, end, *quoted in passages:
        name, chunk = _field_and_chunk(where)
        quote = quoted[0] if quoted else known.get((name, chunk), "")[start:end]
        evidence.append({"field": name, "chunk": chunk, "start": start, "end": end, "text": quote})
    return {
        "id": number,
        "kind": kind,
        "verdict": word,
        "lowers_score": lowers,
        "evidence": evidence,
        "text": evidence[0]["text"] if text is None and evidence else text,
        "probability": probability,
    }


_Texts = Mapping[tuple[str, int | None], str]


def _texts_by_field(sample: Sample | None) -> _Texts:
    """A sample's texts by field, those of contexts also by number."""
    if sample is None:
        return {}
    texts: dict[tuple[str, int | None], str] = {}
    for name in ("user_input", "response", "reference"):
        texts[name, None] = getattr(sample, name) or ""
    for i, text in enumerate(sample.retrieved_contexts):
        texts["retrieved_contexts", i] = text
    return texts


@cache
def _adapter() -> "TypeAdapter[Record]":
    return TypeAdapter(Record)


def encode_reply(reply: JudgeReply) -> str:
    """A judge's reply as JSON, for a journal.

    Example:
        >>> decode_reply(encode_reply(LLMReply("yes", input_tokens=9)))
        LLMReply(text='yes', input_tokens=9, output_tokens=None, probabilities=None, ended='')
    """
    return json_of([getattr(reply, each.name) for each in fields(reply)])


def decode_reply(text: str) -> JudgeReply:
    """The reply that `encode_reply` wrote.

    Raises:
        ValueError: The text is damaged.
    """
    try:
        reply, input_tokens, output_tokens, *more = json.loads(text)
        if not more:
            return DecisionReply(reply, input_tokens, output_tokens)
        return LLMReply(reply, input_tokens, output_tokens, *more)
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
    """An outcome without the app's texts: value, breakdown, ids, words, probabilities and positions stay."""
    if isinstance(outcome, Unscored):
        quotes = outcome.reason == "judge_unparseable"
        return outcome.model_copy(update={"detail": without_reply(outcome.detail)}) if quotes else outcome
    verdicts: list[Verdict] = []
    for verdict in outcome.verdicts:
        evidence = tuple([each.model_copy(update={"text": ""}) for each in verdict.evidence])
        verdicts.append(verdict.model_copy(update={"text": "", "evidence": evidence}))
    return outcome.model_copy(update={"reason": "", "verdicts": tuple(verdicts)})


def sample_fields(sample: Sample, *, texts: bool = True) -> dict[str, object]:
    """The fields of a sample that were set, or its id and metadata alone."""
    kept = sample.model_fields_set if texts else sample.model_fields_set & {"id", "metadata"}
    return {name: getattr(sample, name) for name in type(sample).model_fields if name in kept}


_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def of_json(text: str | bytes) -> Any:  # noqa: ANN401 - of JSON
    """What JSON holds.

    Raises:
        ValueError: It is none.
    """
    try:
        return from_json(text)
    except ValueError:
        # Half characters, and what is nested deep.
        return json.loads(text)


def json_of(value: object) -> str:
    """Any value as JSON, as plain values where it has to be. Never raises."""
    try:
        text = _ENCODE(value)
    except Exception:
        # Metadata may be of any kind.
        text = json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
