"""The rows of a run: read ahead where they may wait, and what they say of the metrics and groups that fit them."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import get_args

from ragstone.background import daemon, in_daemon
from ragstone.errors import GroupError, describe
from ragstone.fields.names import ID_FIELDS
from ragstone.judge_names import NullJudge, RegistryError
from ragstone.metrics.names import GROUPS, make_metric, metric_names
from ragstone.outcome import Unscored
from ragstone.plain import count, printable
from ragstone.results.groups import group_name, group_of
from ragstone.results.record import Record
from ragstone.sample import BadLine, Row, Sample, SampleField
from ragstone.sources.base import Rows, SourceError
from ragstone.sources.rows import Source, rows_of

# How many rows are read, at most, to tell what fits them.
_LOOKED_AT = 100
ReadRow = Row | BadLine


class RunRows:
    """The rows of a run, one after the other.

    Rows that may wait (of a file, a pipe, a generator) are read in a daemon thread: some are scored while the next one
    is waited for. Those of a list are read on the event loop.

    Args:
        samples: What is to be scored.
        fields: The key by the sample's field, as for `evaluate`.
        group: What rows depend on each other by.

    Attributes:
        group: The same, checked.
    """

    def __init__(self, samples: Source, fields: Mapping[str, str] | str | None, group: str | None) -> None:
        self.group = None if group is None else group_name(group)
        self._in_memory = isinstance(samples, (list, tuple))
        self._rows = rows_of(samples, fields)
        self._read: asyncio.Queue[ReadRow | Exception | None] = asyncio.Queue()
        self._ahead = threading.Semaphore(0)
        self._closed = threading.Event()

    async def check_group(self) -> None:
        """Look whether one of the first rows has the group's field.

        Raises:
            GroupError: None has; the message says what their metadata have.
        """
        if self.group is not None:
            self._rows = await in_daemon(lambda: _check_group(self.group or "", self._rows))

    async def fitting_group(self) -> tuple[str, str]:
        """The group of metrics that fits the rows, and a line that says so, as `fitting_group` finds them."""
        group, line, self._rows = await in_daemon(lambda: fitting_group(self._rows))
        return group, line

    def begin(self, ahead: int) -> None:
        """Begin to read, so many rows ahead at most."""
        if not self._in_memory:
            loop = asyncio.get_running_loop()
            self._ahead = threading.Semaphore(ahead)
            daemon(lambda: self._read_ahead(loop), "ragstone-rows")

    async def next(self) -> ReadRow | None:
        """The next row; None at the end. What reading raises is raised here, after the rows before it."""
        if self._in_memory:
            return next(self._rows, None)
        row = await self._read.get()
        if isinstance(row, Exception):
            raise row
        self._ahead.release()
        return row

    def close(self) -> None:
        """End the thread, which may still wait for a row that nobody wants."""
        self._closed.set()
        self._ahead.release()

    def _read_ahead(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # What is read is handed on at once: no name holds a row while there is no room for the next one.
            while self._ahead.acquire() and not self._closed.is_set() and self._hand_on(loop, next(self._rows, None)):
                pass
        except Exception as error:
            self._hand_on(loop, error)
        except BaseException as error:
            # It is not the run's own, whose thread this is.
            self._hand_on(loop, SourceError(f"samples: reading them was ended by {describe(error)}"))

    def _hand_on(self, loop: asyncio.AbstractEventLoop, row: ReadRow | Exception | None) -> bool:
        """Hand a row to the event loop, unless it is closed; whether there may be more of them."""
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._read.put_nowait, row)
        return row is not None


def _check_group(group: str, rows: Rows) -> Rows:
    seen = list(islice(rows, _LOOKED_AT))
    samples = [item.sample for item in seen if isinstance(item, Row)]
    nothing = Record("", Unscored(metric="", reason="undefined", detail="", version=""))
    if samples and not any(group_of(group, nothing, sample) for sample in samples):
        known = dict.fromkeys(f"metadata.{name}" for sample in samples for name in sample.metadata)
        have = (
            f"; they have {printable(', '.join(known), 300)}"
            if known
            else "; they have no metadata: name a column as fields={'metadata': COLUMN} (--field metadata=COLUMN)"
        )
        raise GroupError(f"group: no {group} in the first {count(len(samples), 'row')}{have}")
    return chain(seen, rows)


def fitting_group(rows: Rows) -> tuple[str, str, Rows]:
    """The group of metrics that fits the rows, a line that says so, and all the rows.

    The first of the first 100 rows that has contexts and a response decides, and none after it is read. Where no row
    holds a sample, the group is "rag" and the line empty.

    Raises:
        RegistryError: None of them has both; the message says for which metrics the first sample would do.

    Example:
        >>> fitting_group(iter([Row(1, Sample(retrieved_contexts=["Emma is a novel."], response="A novel."))]))[1]
        'Metrics: summary (summarization_score, alignment_coverage), because row 1 has retrieved_contexts and response.'
    """
    seen: list[ReadRow] = []
    for item in islice(rows, _LOOKED_AT):
        seen.append(item)
        if isinstance(item, Row) and item.sample.retrieved_contexts and item.sample.response:
            has = _fields_with_text(item.sample)
            group = "rag" if "user_input" in has else "summary"
            line = f"Metrics: {group} ({', '.join(GROUPS[group])}), because row {item.line} has {_and(has)}."
            line += " The group golden compares with the reference." if "reference" in has else ""
            return group, line, chain(seen, rows)
    first = next((item for item in seen if isinstance(item, Row)), None)
    if first is None:
        return "rag", "", chain(seen, rows)
    has = _fields_with_text(first.sample)
    said = first.first
    for field in ("retrieved_contexts", "response"):
        if said is not None and field not in has and field in said.may_be:
            name = said.may_be[field]
            raise RegistryError(
                f"none is named, and row {first.line} has no {field}; {name!r} may be it: {said.way(field, name)}"
            )
    metrics = [make_metric(name, {}, NullJudge(), NullJudge()) for name in metric_names()]
    enough = ", ".join(metric.name for metric in metrics if set(metric.required_fields) <= set(has))
    also = "" if said is None or not said.also() else f"; it {said.also()}"
    raise RegistryError(
        f"none is named, and no row of the first {len(seen):,} has retrieved_contexts and response; "
        f"row {first.line} has {_and(has) or 'no text'}, which is enough for {enough or 'no metric of ragstone'}{also}"
    )


def _fields_with_text(sample: Sample) -> list[str]:
    return [name for name in (*get_args(SampleField), *ID_FIELDS) if getattr(sample, name)]


def _and(words: Sequence[str]) -> str:
    return " and ".join(", ".join(part) for part in (words[:-1], words[-1:]) if part)
