"""Where a report's results and samples are: in memory, in a file, or wherever else somebody keeps them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from ragstone.sample import Sample
from ragstone.store.record import Record


class Kept(Protocol):
    """Results in the order of the input, as often as they are asked for, and the samples that they are of."""

    def results(self) -> Iterator[Record]:
        """Yield all results, those of a row together."""
        ...

    def sample(self, row: int) -> Sample | None:
        """Return the sample of a row, counted from 0; None where it is not kept."""
        ...


class InMemory:
    """Results and samples in memory.

    Args:
        results: The results.
        samples: The samples by row: a mapping, or a sequence that has one for each row.
    """

    def __init__(
        self, results: Iterable[Record], samples: Mapping[int, Sample] | Sequence[Sample | None] | None = None
    ) -> None:
        self._results = tuple(results)
        self._samples = samples if isinstance(samples, Mapping) else dict(enumerate(samples or ()))

    def results(self) -> Iterator[Record]:
        """Yield all results."""
        return iter(self._results)

    def sample(self, row: int) -> Sample | None:
        """Return the sample of a row; None where there is none."""
        return self._samples.get(row)
