"""How long a monitor waits for what fails; a test gives its monitor shorter times."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Seconds between tries and looks, and what is held meanwhile. Of a pair, the first doubles up to the second."""

    judge: tuple[float, float] = (30.0, 3_600.0)  # after its failure; eleven tries last about four hours
    sink: tuple[float, float] = (0.1, 30.0)  # after its failure
    outbox: float = 1.0  # after its failure
    locked: float = 5.0  # while another process holds the outbox
    looks: float = 1.0  # into the outbox
    adoptions: float = 15.0  # of what ended processes left in it
    outcomes: int = 10_000  # in memory, for a sink
    hanging: int = 8  # threads for each worker, beyond which judging stands still
