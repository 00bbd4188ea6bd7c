"""What every sink is to the monitor, and the simplest one: a function."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from ragstone.errors import RagstoneError
from ragstone.live.alarms import Alarm
from ragstone.live.health import Health
from ragstone.live.sampling import check_function
from ragstone.results.database import Database
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback


class SinkError(RagstoneError):
    """A database or a file cannot be read or written; the message says why and what to do."""


class Sink(ABC):
    """Where outcomes go. Subclass it, define `write`, and hand it to a `Monitor`.

    A monitor calls `write`, `feedback`, `alarm`, `health` and `close` from one thread of the sink's own, never from
    the app's, and calls `write` again with the same records after it raised. A sink opens nothing before the first
    call, and is opened anew in a forked process.

    Attributes:
        name: Its name among the monitor's sinks, in `stats()` and in the outbox.
        database: Where a monitor's alerts count, and a budget reads what was spent today, if the sink has one.
        forgotten: How many outcomes it was given and did not keep, as their sample or user was forgotten meanwhile.
    """

    name: str
    forgotten: int = 0
    database: Database | None = None

    @abstractmethod
    def write(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none. One that is there already, by `Record.key`, is replaced.

        Raises:
            Exception: They could not be kept; they will be handed over again.
        """

    def health(self, health: Health) -> None:  # noqa: B027 - may be left as it is
        """Keep a process's counters in place of its earlier ones. Most sinks have no use for them."""

    def feedback(self, feedback: Sequence[Feedback]) -> None:  # noqa: B027 - may be left as it is
        """Keep what people said of answers, beside their outcomes. One of the same sample and time is replaced.

        Raises:
            Exception: It could not be kept; it will be handed over again.
        """

    def alarm(self, alarm: Alarm) -> None:  # noqa: B027 - may be left as it is
        """Take note of an alarm that an alert has raised.

        Raises:
            Exception: It could not be kept; it will be handed over again.
        """

    def origin(self) -> Mapping[str, str] | None:
        """Say what the sink must know of where a sample is submitted. Called in the app's context: be quick."""
        return None

    def close(self) -> None:  # noqa: B027 - may be left as it is
        """Close what is open. A later `write` opens it again."""


class CallableSink(Sink):
    """Calls a function with the records, a list at a time, on a thread of the monitor's.

    Where it raises, it is called again later with the same records; so it should not mind a record that it has seen.

    Args:
        function: Takes a list of `Record`; its result is ignored. Not async: no event loop runs there.
        name: Its name among the monitor's sinks; by default "call:" and the function's name.

    Attributes:
        function: The function.
        name: The name.

    Raises:
        TypeError: `function` cannot be called, or is async.

    Example:
        >>> from ragstone import Unscored
        >>> from ragstone.live import Record
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> records = []
        >>> sink = CallableSink(records.extend)
        >>> sink.write([Record("a", nothing, judge="j", scored_at=1.5)])
        >>> [record.sample_id for record in records], sink.name
        (['a'], 'call:list.extend')
    """

    def __init__(self, function: Callable[[list[Record]], object], name: str | None = None) -> None:
        check_function("function", function)
        self.function = function
        self.name = name or f"call:{getattr(function, '__qualname__', type(function).__qualname__)}"

    def __repr__(self) -> str:
        return f"CallableSink({self.name!r})"

    def write(self, records: Sequence[Record]) -> None:
        """Call the function with the records, unless there are none.

        Raises:
            Exception: Whatever the function raises.
            TypeError: It returned something to be awaited, so that nothing has been done.
        """
        if not records:
            return
        result = self.function(list(records))
        if inspect.isawaitable(result):
            raise TypeError(f"{self.name}: returned an awaitable; pass a plain function")
