"""Records and counters as rows of the tables in `schema`."""

from collections.abc import Mapping

from ragstone.outcome import Score
from ragstone.plain import clean_integer, clean_key, clean_real, clean_text, to_json
from ragstone.store.health import Health
from ragstone.store.record import Record

Value = str | float | int | None
Row = Mapping[str, Value]


def outcome_row(record: Record) -> dict[str, Value]:
    """Return a record as a row of `outcomes`.

    Example:
        >>> from ragstone import Unscored
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="after 30 s", version="1")
        >>> row = outcome_row(Record(sample_id="a", outcome=nothing, judge="j", submitted_at=0.0, scored_at=1.5))
        >>> row["status"], row["value"], row["reason"], row["detail"]
        ('unscored', None, 'timeout', 'after 30 s')
    """
    outcome = record.outcome
    score = outcome if isinstance(outcome, Score) else None
    usage = outcome.usage
    return {
        "sample_id": clean_key(record.sample_id),
        "metric": clean_key(outcome.metric),
        "version": clean_key(outcome.version),
        "status": "unscored" if score is None else "scored",
        "value": None if score is None else score.value,
        "passed": None if score is None or score.passed is None else int(score.passed),
        "reason": clean_text(outcome.reason),
        "detail": "" if isinstance(outcome, Score) else clean_text(outcome.detail),
        "breakdown": to_json({} if score is None else score.breakdown),
        "verdicts": to_json(() if score is None else score.verdicts),
        "judge": clean_text(record.judge),
        "submitted_at": clean_real(record.submitted_at),
        "scored_at": clean_real(record.scored_at),
        "rate": clean_real(record.rate),
        "chosen_by": clean_text(record.chosen_by),
        "llm_calls": clean_integer(usage.llm_calls),
        "embed_calls": clean_integer(usage.embed_calls),
        "input_tokens": None if usage.input_tokens is None else clean_integer(usage.input_tokens),
        "output_tokens": None if usage.output_tokens is None else clean_integer(usage.output_tokens),
        "seconds": clean_real(usage.seconds),
        "trace_id": _optional(record.origin.get("trace_id")),
        "span_id": _optional(record.origin.get("span_id")),
        "sample": None if record.sample is None else to_json(record.sample),
        "suspected": to_json(outcome.suspected) if outcome.suspected else None,
    }


def health_row(health: Health) -> dict[str, Value]:
    """Return a process's counters as a row of `health`.

    Example:
        >>> health_row(Health(process="1", at=0.0, started_at=0.0, counts={"scored": 2}))["counts"]
        '{"scored": 2}'
    """
    return {
        "process": clean_key(health.process),
        "at": clean_real(health.at),
        "started_at": clean_real(health.started_at),
        "counts": to_json(health.counts),
        "reasons": to_json(health.reasons),
        "longest_queue": clean_integer(health.longest_queue),
    }


def _optional(text: str | None) -> str | None:
    return None if text is None else clean_text(text)
