"""What a monitor was made with, checked once; the same in every process."""

import importlib
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from ragstone.limits.budget import Account, Budget, MemoryLedger
from ragstone.metrics.base import Metric, check_count, check_flag, check_number, check_option
from ragstone.monitor.redaction import Redact
from ragstone.monitor.sampling import Sampling, check_function
from ragstone.store.base import Sink

K = TypeVar("K")
T = TypeVar("T")
WhenFull = Literal["drop_newest", "drop_oldest", "spool", "block"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a monitor, with the meanings and errors of `Monitor`."""

    metrics: Mapping[tuple[str, str], Metric]
    sinks: Sequence[Sink]
    sampling: Sampling
    max_queue: int
    max_queue_bytes: int
    when_full: WhenFull
    workers: int
    budget: Budget | None
    redact: Redact | None
    outbox: Path | None
    store_text: bool
    timeout: float
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        check_count("max_queue", self.max_queue)
        check_count("max_queue_bytes", self.max_queue_bytes)
        check_count("workers", self.workers)
        check_option("when_full", self.when_full, ("drop_newest", "drop_oldest", "spool", "block"))
        check_flag("store_text", self.store_text)
        check_number("timeout", self.timeout, 0.001, math.inf)
        check_type("budget", self.budget, (Budget, type(None)), "ragstone.monitor.Budget(...)")
        check_function("redact", self.redact)
        if self.when_full == "spool" and self.outbox is None:
            raise ValueError('when_full="spool" needs a file to spool to: outbox="PATH"')

    def account(self) -> Account | None:
        """Return the budget's account, on the ledger of the first sink that has one; None without a budget."""
        if self.budget is None:
            return None
        ledgers = (sink.ledger() for sink in self.sinks)
        return Account(self.budget, next(filter(None, ledgers), None) or MemoryLedger())


def check_type(name: str, value: object, types: tuple[type, ...], instead: str) -> None:
    """Refuse an object of another type, or a class in place of an object."""
    if isinstance(value, type):
        raise TypeError(f"{name}: is the class {value.__name__}, not an object of it: write {value.__name__}(...)")
    if not isinstance(value, types):
        raise TypeError(f"{name}: is {type(value).__name__}; pass {instead}")


def metrics_by_key(metrics: Metric | Sequence[Metric]) -> dict[tuple[str, str], Metric]:
    """Return the metrics by name and version; refuse what is none, and two that could not be told apart."""
    instead = "metrics, such as ContextRelevancy(llm=...)"
    by_key: dict[tuple[str, str], Metric] = _by_key(
        "metrics", metrics, Metric, lambda metric: (metric.name, metric.version), instead
    )
    if not by_key:
        raise ValueError(f"metrics: is empty; pass {instead}")
    return by_key


def named_sinks(sinks: Sink | Sequence[Sink] | None) -> list[Sink]:
    """Return the sinks, `SQLiteSink("ragstone.db")` for None; refuse what is none, and two of one name."""
    if sinks is None:
        from ragstone.store.sqlite import SQLiteSink

        return [SQLiteSink()]
    instead = "sinks of ragstone.sinks, such as SQLiteSink(PATH)"
    return list(_by_key("sinks", sinks, Sink, lambda sink: sink.name, instead).values())


def _by_key(name: str, items: T | Sequence[T], kind: type[Any], key: Callable[[T], K], instead: str) -> dict[K, T]:
    check_type(name, items, (kind, Iterable), instead)
    by_key: dict[K, T] = {}
    for item in cast("list[T]", [items] if isinstance(items, kind) else items):
        if not isinstance(item, kind):
            raise TypeError(f"{name}: holds {type(item).__name__}; pass {instead}")
        if key(item) in by_key:
            raise ValueError(f"{name}: two are called {key(item)!r}; their outcomes could not be told apart")
        by_key[key(item)] = item
    return by_key


def outbox_path(outbox: str | os.PathLike[str] | None) -> Path | None:
    """Return the absolute path of the outbox; refuse what is none, and one that cannot be made."""
    check_type("outbox", outbox, (str, os.PathLike, type(None)), "the path of a file")
    if outbox is None:
        return None
    path = Path(outbox)
    if path.is_dir():
        raise ValueError(f"outbox: {path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"outbox: {path}: there is no folder {path.absolute().parent}")
    importlib.import_module("ragstone.store.outbox")  # loads sqlite3; in a thread of ours, a fork would break that
    return path.absolute()
