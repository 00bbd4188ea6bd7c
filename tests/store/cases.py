"""Every sink on an empty store of its own, with a way to read back what it kept."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ragstone import Sample, Score, Unscored, Usage, Verdict
from ragstone.plain import clean_key, restore_text
from ragstone.sinks import CallableSink, JSONLSink, OpenTelemetrySink, Record, Sink, SQLiteSink, SQLSink
from ragstone.store import otel as semconv

KINDS = ("sqlite", "sql_sqlite", "postgres", "jsonl", "call", "otel")


class Kept(NamedTuple):
    """What can be read back of a record from any sink; the sample's metadata is None where a sink takes none."""

    sample_id: str
    text: str
    metadata: Mapping[str, Any] | None


class Case(NamedTuple):
    kind: str
    sink: Sink
    read: Callable[[], list[Kept]]
    query: Callable[[str], list[tuple]] | None = None
    source: str = ""  # as `open_results` takes it

    def execute(self, statement: str) -> None:
        """Change a database behind the sink's back."""
        if self.kind == "postgres":
            with _postgres(self.source) as connection:
                connection.execute(statement)
        else:
            with closing(sqlite3.connect(self.source.removeprefix("sqlite:///"))) as connection, connection:
                connection.execute(statement)

    @property
    def keyed(self) -> bool:
        return self.query is not None

    def id_of(self, sample_id: str) -> str:
        """The id as it is kept: tables shorten long ones."""
        return restore_text(clean_key(sample_id)) if self.keyed else sample_id


def score(sample_id: str = "run-1", value: float = 0.5, *, text: str = "1 of 2.", **fields: Any) -> Record:
    verdict = Verdict(id="1", kind="claim", text=text, verdict="supported", probability=0.9)
    usage = Usage(llm_calls=2, input_tokens=90, output_tokens=None, seconds=1.5)
    outcome = Score(
        metric="demo", value=value, passed=True, reason=text, breakdown={"a": 1.0}, verdicts=(verdict,), usage=usage, version="1"
    )  # fmt: skip
    plain: dict[str, Any] = {"judge": "judge-1", "submitted_at": 1000.0, "scored_at": 1001.5}
    return Record(sample_id=sample_id, outcome=outcome, **(plain | fields))


def unscored(sample_id: str = "run-1", detail: str = "after 30 s", **fields: Any) -> Record:
    outcome = Unscored(metric="demo", reason="timeout", detail=detail, version="1")
    plain: dict[str, Any] = {"judge": "judge-1", "submitted_at": 1000.0, "scored_at": 1001.5}
    return Record(sample_id=sample_id, outcome=outcome, **(plain | fields))


def with_metadata(metadata: dict[str, Any]) -> Record:
    return score(sample=Sample(user_input="Who?", metadata=metadata))


def make_case(kind: str, folder: Path, url: str | None = None) -> Case:
    path = folder / f"{kind}.db"
    if kind == "sqlite":
        return _tables(kind, SQLiteSink(path), _sqlite_query(path), str(path))
    if kind == "sql_sqlite":
        return _tables(kind, SQLSink(f"sqlite:///{path}"), _sqlite_query(path), f"sqlite:///{path}")
    if kind == "postgres":
        assert url is not None
        return _tables(kind, SQLSink(url), _postgres_query(url), url)
    if kind == "jsonl":
        return Case(kind, JSONLSink(folder / "outcomes.jsonl"), lambda: _lines(folder / "outcomes.jsonl"))
    if kind == "call":
        records: list[Record] = []
        return Case(kind, CallableSink(records.extend), lambda: [_kept(record) for record in records])
    return _otel(kind)


def _tables(kind: str, sink: Sink, query: Callable[[str], list[tuple]], source: str) -> Case:
    def read() -> list[Kept]:
        rows = query("SELECT sample_id, reason, sample FROM outcomes ORDER BY sample_id")
        return [
            Kept(restore_text(name), restore_text(reason), json.loads(sample)["metadata"] if sample else None)
            for name, reason, sample in rows
        ]

    return Case(kind, sink, read, query, source)


def _sqlite_query(path: Path) -> Callable[[str], list[tuple]]:
    def query(statement: str) -> list[tuple]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(statement).fetchall()

    return query


def _postgres_query(url: str) -> Callable[[str], list[tuple]]:
    def query(statement: str) -> list[tuple]:
        with _postgres(url) as connection:
            return connection.execute(statement).fetchall()

    return query


def _postgres(url: str) -> Any:
    import psycopg

    return psycopg.connect(url.replace("+psycopg", ""))


def _lines(path: Path) -> list[Kept]:
    if not path.exists():
        return []
    found = []
    for line in path.read_text("utf-8").split("\n")[:-1]:
        value = json.loads(line, parse_constant=_refuse)
        sample = value.get("sample")
        found.append(Kept(value["id"], value["reason"], sample and sample["metadata"]))
    return found


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def _kept(record: Record) -> Kept:
    return Kept(record.sample_id, record.outcome.reason, record.sample and record.sample.metadata)


def _otel(kind: str) -> Case:
    from opentelemetry.sdk._logs import LoggerProvider, export
    from opentelemetry.sdk.metrics import MeterProvider

    exporter = getattr(export, "InMemoryLogRecordExporter", None) or export.InMemoryLogExporter
    memory = exporter()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(export.SimpleLogRecordProcessor(memory))

    def read() -> list[Kept]:
        found = [dict(one.log_record.attributes) for one in memory.get_finished_logs()]
        return [
            Kept(restore_text(one[semconv.SAMPLE_ID]), restore_text(one[semconv.EXPLANATION]), None) for one in found
        ]

    return Case(kind, OpenTelemetrySink(provider, MeterProvider(shutdown_on_exit=False)), read)
