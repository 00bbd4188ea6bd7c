"""What every sink is to the monitor."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.limits.budget import Ledger
    from ragstone.store.health import Health
    from ragstone.store.record import Record


class Sink(ABC):
    """Where outcomes go. Subclass it, define `write`, and hand it to a `Monitor`.

    A monitor calls `write`, `health` and `close` from one thread of the sink's own, never from the app's, and calls
    `write` again with the same records after it raised. A sink opens nothing before the first call, and is opened
    anew in a forked process.

    Attributes:
        name: What tells it from the monitor's other sinks, in `stats()` and in the outbox.
    """

    name: str

    @abstractmethod
    def write(self, records: "Sequence[Record]") -> None:
        """Keep the records, all or none. One that is there already, by `Record.key`, is replaced.

        Raises:
            Exception: They could not be kept; they will be handed over again.
        """

    def health(self, health: "Health") -> None:  # noqa: B027 - may be left as it is
        """Keep a process's counters in place of its earlier ones. Most sinks have no use for them."""

    def origin(self) -> Mapping[str, str] | None:
        """Say what the sink must know of where a sample is submitted. Called on the app's thread: be quick."""
        return None

    def ledger(self) -> "Ledger | None":
        """Return the account that all processes on this sink's database share; None where it has none."""
        return None

    def close(self) -> None:  # noqa: B027 - may be left as it is
        """Let go of what is open. A later `write` opens it again."""
