"""What the tests of a monitor without an outbox share: judges that can be held, a sink that can fail, and the sum."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.judge import LLMRequest
from ragstone.live import Queue, Record, Stats
from ragstone.live.settings import Waits
from ragstone.live.sink import Sink
from ragstone.testing import FakeLLM

PATIENCE = 60.0
_EARLIER: WeakKeyDictionary[Monitor, set[threading.Thread]] = WeakKeyDictionary()
FATES = ("scored", "unscored", "dropped", "not_sampled", "over_budget", "duplicate", "spooled", "pending")


def sample(i: object = None, **more: Any) -> Sample:
    name = None if i is None else f"s{i}"
    given = {"id": name, "user_input": f"question {i}?", "retrieved_contexts": ["Here."], "response": "There."}
    return Sample(**{**given, **more})


def submit(monitor: Monitor, numbers: Iterable[object]) -> None:
    for i in numbers:
        monitor.submit(sample(i))


def yes(request: LLMRequest) -> Any:
    return "yes" if request.choices else {"ids": [1]}


def metric(reply: Callable[[LLMRequest], Any] = yes) -> ContextRelevancy:
    return ContextRelevancy(llm=FakeLLM(reply))


class Second(ContextRelevancy):
    """A metric of another name."""

    name = "second"


class Held:
    """A judge's words that come when it is let go; what comes to it meanwhile is counted."""

    def __init__(self, reply: Callable[[LLMRequest], Any] = yes) -> None:
        self._reply = reply
        self._free = threading.Event()
        self.asked = 0

    def __call__(self, request: LLMRequest) -> Any:
        self.asked += 1
        assert self._free.wait(PATIENCE)
        return self._reply(request)

    def let_go(self) -> None:
        self._free.set()


class Kept(Sink):
    """Keeps records by key, unless told to fail: `trouble` is called with each batch first."""

    def __init__(self, name: str = "kept", trouble: Callable[[Sequence[Record]], object] | None = None) -> None:
        self.name = name
        self.trouble = trouble
        self.records: dict[tuple[str, str, str], Record] = {}
        self.batches: list[list[str]] = []
        self.reports: list[Any] = []
        self.threads: set[int] = set()
        self.closed = 0

    def write(self, records: Sequence[Record]) -> None:
        self.threads.add(threading.get_ident())
        self.batches.append([record.sample_id for record in records])
        if self.trouble is not None:
            self.trouble(records)
        self.records |= {record.key: record for record in records}

    def health(self, health: Any) -> None:
        self.reports.append(health)

    def close(self) -> None:
        self.closed += 1

    @property
    def ids(self) -> set[str]:
        return {key[0] for key in list(self.records)}

    def only(self) -> Record:
        (record,) = self.records.values()
        return record


def waiting_as(waits: Waits | None) -> type[Monitor]:
    """Monitors that wait as long as is said."""
    return Monitor if waits is None else type("Waiting", (Monitor,), {"waits": waits})


def live(metrics: Any = None, sinks: Any = None, waits: Waits | None = None, **options: Any) -> Monitor:
    metrics, sinks = metric() if metrics is None else metrics, Kept() if sinks is None else sinks
    monitor = waiting_as(waits)(metrics, sinks=sinks, **with_queue(options))
    _EARLIER[monitor] = set(threading.enumerate())
    return monitor


def with_queue(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a monitor, those of its queue among them."""
    names = [field.name for field in fields(Queue) if field.name in options]
    of_queue = {name: options.pop(name) for name in names}
    return {**options, "queue": Queue(**of_queue)} if of_queue else options


def adds_up(stats: Stats) -> bool:
    """Whether every evaluation is accounted for, in all and by reason."""
    by_reason = all(
        sum(stats.reasons.get(fate, {}).values()) == getattr(stats, fate)
        for fate in FATES
        if fate not in ("scored", "pending")
    )
    return stats.accepted == sum(getattr(stats, fate) for fate in FATES) and stats.pending >= 0 and by_reason


def ours(monitor: Monitor) -> list[threading.Thread]:
    """The monitors' threads that run and were started after this one was made."""
    running = [thread for thread in threading.enumerate() if thread.name.startswith("ragstone-")]
    return [thread for thread in running if thread not in _EARLIER[monitor]]


def in_threads(number: int, work: Callable[[int], object]) -> None:
    """Do work(0), work(1), ... at once, and raise what it raises."""
    errors: list[BaseException] = []
    ready = threading.Barrier(number)

    def run(i: int) -> None:
        ready.wait(PATIENCE)
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
