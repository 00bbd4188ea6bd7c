"""A monitor that judges nothing and notes what handlers hand over."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ragstone import Sample

from .waiting import soon


class Noting:
    """Has the methods of a monitor that handlers use."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.skipped: Counter[str] = Counter()
        self.names: list[tuple[str, ...]] = []
        self.likely: list[Mapping[str, str]] = []
        self.read_from: list[Mapping[str, str]] = []
        self.unread: list[tuple[str, ...]] = []
        self.errors: list[BaseException] = []
        self.advice: Mapping[str, str] = {}
        self._lock = threading.Lock()

    def submit(self, sample: Sample) -> None:
        with self._lock:
            self.samples.append(sample)

    def advise(self, advice: Mapping[str, str]) -> None:
        self.advice = advice

    def count_fields(
        self, read_from: Mapping[str, str], names: Sequence[str] = (), likely: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        with self._lock:
            self.read_from.append(read_from)
            self.unread.append(tuple(names))
            self.likely += [likely] if likely else []

    def skip(self, reason: str, runs: int = 1, names: Sequence[str] = (), likely: str = "") -> None:
        with self._lock:
            self.likely += [{reason: likely}] if likely else []
            self.names += [tuple(names)] if names else []
            self.skipped[reason] += runs
            self.skipped = +self.skipped

    def failed(self, place: str, error: BaseException) -> None:
        assert place in ("langchain", "llama_index")
        with self._lock:
            self.errors.append(error)

    @property
    def told(self) -> list[tuple[str | None, tuple[str, ...], str | None]]:
        """(question, contexts, answer) of each sample."""
        return [(one.user_input, tuple(one.retrieved_contexts), one.response) for one in self.samples]

    @property
    def only(self) -> Sample:
        """The one sample there is, where nothing else was noted."""
        assert (self.errors, self.skipped) == ([], {})
        (sample,) = self.samples
        return sample

    def wait(self, count: int) -> None:
        """Wait for so many samples and skips: what streams into a chat's memory does so in a thread."""
        soon(lambda: len(self.samples) + self.skipped.total() >= count)
