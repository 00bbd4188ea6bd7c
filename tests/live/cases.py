"""Every sink on an empty store of its own, with a way to read back what it kept."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ragstone import Score, Unscored, Usage, Verdict
from ragstone.live import CallableSink, OpenTelemetrySink, Record, Sink, SQLiteSink, SQLSink
from ragstone.results.clean import clean_key

_ESCAPED = re.compile(r"\\u(0000|005c|d[89a-f][0-9a-f]{2})")
KINDS = ("sqlite", "postgres", "call", "otel")
COMMON: dict[str, Any] = {"judge": "judge-1", "submitted_at": 1000.0, "scored_at": 1001.5}


def restore_text(text: str) -> str:
    """The text that `clean_text` was given."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


class Kept(NamedTuple):
    """What can be read back of a record from any sink."""

    sample_id: str
    text: str


class Case(NamedTuple):
    kind: str
    sink: Sink
    read: Callable[[], list[Kept]]
    source: str = ""  # of a database, as `open_results` takes it

    def query(self, statement: str) -> list[tuple]:
        """Read or change the database, past the sink."""
        return _query(self.source, statement)

    @property
    def keyed(self) -> bool:
        return bool(self.source)

    def id_of(self, sample_id: str) -> str:
        """The id as it is kept: tables shorten long ones."""
        return restore_text(clean_key(sample_id)) if self.keyed else sample_id


def _query(source: str, statement: str) -> list[tuple]:
    if source.startswith("postgresql"):
        import psycopg

        connection: Any = psycopg.connect(source.replace("+psycopg", ""))
    else:
        connection = sqlite3.connect(source)
    with closing(connection), connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def score(sample_id: str = "run-1", value: float = 0.5, *, text: str = "1 of 2.", **fields: Any) -> Record:
    verdict = Verdict(id="1", kind="claim", text=text, verdict="supported", probability=0.9)
    usage = Usage(llm_calls=2, input_tokens=90, output_tokens=None, seconds=1.5)
    outcome = Score(
        metric="demo", value=value, passed=True, reason=text, breakdown={"a": 1.0}, verdicts=(verdict,), usage=usage, version="1"
    )  # fmt: skip
    return Record(sample_id, outcome, **(COMMON | fields))


def unscored(sample_id: str = "run-1", detail: str = "after 30 s", **fields: Any) -> Record:
    outcome = Unscored(metric="demo", reason="timeout", detail=detail, version="1")
    return Record(sample_id, outcome, **(COMMON | fields))


class Impatient(SQLiteSink):
    """One that soon gives up a file that another holds."""

    patience = 0.2


def make_case(kind: str, folder: Path, url: str | None = None) -> Case:
    path = folder / f"{kind}.db"
    if kind == "sqlite":
        return _tables(kind, SQLiteSink(path), str(path))
    if kind == "impatient":
        return _tables(kind, Impatient(path), str(path))
    if kind == "postgres":
        assert url is not None
        return _tables(kind, SQLSink(url), url)
    if kind == "call":
        records: list[Record] = []
        return Case(kind, CallableSink(records.extend), lambda: [_kept(record) for record in records])
    return _otel(kind)


def _tables(kind: str, sink: Sink, source: str) -> Case:
    def read() -> list[Kept]:
        return [
            Kept(restore_text(name), restore_text(reason))
            for name, reason in _query(source, "SELECT sample_id, reason FROM outcomes ORDER BY sample_id")
        ]

    return Case(kind, sink, read, source)


def _kept(record: Record) -> Kept:
    return Kept(record.sample_id, record.outcome.reason)


def logs_in_memory() -> tuple[Any, Any]:
    """OpenTelemetry's logs, and the exporter that keeps them."""
    from opentelemetry.sdk._logs import LoggerProvider, export

    exporter = (getattr(export, "InMemoryLogRecordExporter", None) or export.InMemoryLogExporter)()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(export.SimpleLogRecordProcessor(exporter))
    return provider, exporter


def _otel(kind: str) -> Case:
    from opentelemetry.sdk.metrics import MeterProvider

    provider, memory = logs_in_memory()

    def read() -> list[Kept]:
        events = [dict(finished.log_record.attributes) for finished in memory.get_finished_logs()]
        return [
            Kept(restore_text(event["ragstone.sample.id"]), restore_text(event["gen_ai.evaluation.explanation"]))
            for event in events
        ]

    return Case(kind, OpenTelemetrySink(provider, MeterProvider(shutdown_on_exit=False)), read)
