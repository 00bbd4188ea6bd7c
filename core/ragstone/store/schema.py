"""The tables of a results database, how they came about, and their rows: for SQLite and every other database alike.

A database says in `ragstone_schema` which migrations it has seen (`version`) and the lowest version whose programs may
still write to it (`oldest_writer`). A program migrates an older database, writes to a newer one as long as that
still takes its rows, and refuses otherwise. So programs of several versions can share one database.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragstone.outcome import Score
from ragstone.plain import clean_integer, clean_key, clean_real, clean_text, to_json
from ragstone.store.base import Health, SinkError

if TYPE_CHECKING:
    from ragstone.store.record import Record

Value = str | float | int | None
Row = Mapping[str, Value]
Kind = Literal["key", "text", "real", "integer"]


class Column(NamedTuple):
    """A column: "key" is a short text that may be part of a key; `null` says that it may be empty."""

    name: str
    kind: Kind
    null: bool = False


class Table(NamedTuple):
    """A table with the columns of its primary key."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()


class Index(NamedTuple):
    """An index."""

    name: str
    table: str
    columns: tuple[str, ...]


class AddColumn(NamedTuple):
    """A column that a table gets later. It may be empty: older programs do not fill it."""

    table: str
    column: Column


class Migration(NamedTuple):
    """What leads from one version to the next.

    Attributes:
        steps: What is made, in order.
        oldest_writer: The lowest version whose programs can still write afterwards.
    """

    steps: tuple[Table | Index | AddColumn, ...]
    oldest_writer: int


VERSIONS = Table("ragstone_schema", (Column("version", "integer"), Column("oldest_writer", "integer")))
"""One row; made with the first migration."""

OUTCOMES = Table(
    "outcomes",
    (
        Column("sample_id", "key"),
        Column("metric", "key"),
        Column("version", "key"),
        Column("status", "text"),  # scored, unscored
        Column("value", "real", null=True),
        Column("passed", "integer", null=True),  # 0, 1
        Column("reason", "text"),
        Column("detail", "text"),
        Column("breakdown", "text"),  # JSON
        Column("verdicts", "text"),  # JSON
        Column("judge", "text"),
        Column("submitted_at", "real"),  # seconds since 1970 (UTC), as all times here
        Column("scored_at", "real"),
        Column("rate", "real"),
        Column("chosen_by", "text"),
        Column("llm_calls", "integer"),
        Column("embed_calls", "integer"),
        Column("input_tokens", "integer", null=True),
        Column("output_tokens", "integer", null=True),
        Column("seconds", "real"),
        Column("trace_id", "text", null=True),
        Column("span_id", "text", null=True),
        Column("sample", "text", null=True),  # JSON; only where texts are stored
        Column("suspected", "text", null=True),  # JSON; only where something is
    ),
    key=("sample_id", "metric", "version"),
)
HEALTH = Table(
    "health",
    (
        Column("process", "key"),
        Column("at", "real"),
        Column("started_at", "real"),
        Column("counts", "text"),  # JSON
        Column("reasons", "text"),  # JSON
        Column("longest_queue", "integer"),
    ),
    key=("process",),
)
SPENDING = Table(
    "spending",
    (Column("name", "key"), Column("starts_at", "integer"), Column("amount", "real")),
    key=("name", "starts_at"),
)

MIGRATIONS = (
    Migration(
        steps=(OUTCOMES, Index("outcomes_by_time", "outcomes", ("metric", "submitted_at")), HEALTH, SPENDING),
        oldest_writer=1,
    ),
)


class State(NamedTuple):
    """What a database says of itself in `ragstone_schema`."""

    version: int
    oldest_writer: int


class Schema:
    """The schema that a program of some version knows.

    Args:
        migrations: All that there were up to then, the first one first.

    Attributes:
        state: What a database says of itself when it has seen all of them.

    Example:
        >>> SCHEMA.state, SCHEMA.table("health").key
        (State(version=1, oldest_writer=1), ('process',))
    """

    def __init__(self, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self._migrations = tuple(migrations)
        self.state = State(len(self._migrations), max(migration.oldest_writer for migration in migrations))
        self._tables: dict[str, Table] = {}
        for migration in migrations:
            for step in migration.steps:
                self._follow(step)

    def _follow(self, step: Table | Index | AddColumn) -> None:
        if isinstance(step, Table):
            self._tables[step.name] = step
        elif isinstance(step, AddColumn):
            if not step.column.null:
                raise ValueError(f"{step.table}.{step.column.name}: older programs cannot fill it; let it be empty")
            before = self._tables[step.table]
            self._tables[step.table] = before._replace(columns=(*before.columns, step.column))

    def table(self, name: str) -> Table:
        """Return a table as it is after all migrations."""
        return self._tables[name]

    def missing(self, state: State | None, where: str) -> tuple[Migration, ...]:
        """Return the migrations that a database has not seen; none for one of this version or a newer one.

        Args:
            state: What it says of itself; None: it holds nothing of ragstone's.
            where: Its name for the message.

        Raises:
            SinkError: It is of a newer version that no longer takes this program's rows.
        """
        if state is None:
            return self._migrations
        if state.oldest_writer > self.state.version:
            raise SinkError(
                f"{where}: its schema is version {state.version} and takes rows from programs that know version "
                f"{state.oldest_writer} or later; this one knows version {self.state.version}. "
                "Upgrade ragstone here, or write to another database. Nothing was changed."
            )
        return self._migrations[state.version :]


SCHEMA = Schema()
"""The one of this release."""


def outcome_row(record: "Record") -> dict[str, Value]:
    """Return a record as a row of `outcomes`.

    Example:
        >>> from ragstone import Unscored
    >>> from ragstone.store.record import Record
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="after 30 s", version="1")
        >>> row = outcome_row(Record("a", nothing, judge="j", scored_at=1.5))
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
