"""What waits to be written to the outbox: one thread writes it, a batch in a transaction."""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ragstone.live.settings import Waits

if TYPE_CHECKING:
    from ragstone.live.outbox import Outbox

_BATCH = 500
_SECONDS_FOR_LAST_BATCH = 5.0

T = TypeVar("T")


class Write(NamedTuple):
    """What is to be written.

    Attributes:
        to_file: Writes it; returns what to do once the whole batch is written.
        from_memory: Goes on where the file cannot be used; returns whether it is still to be written later.
        alone: Whether it has a transaction of its own: what is written with it would not be gone on with yet.
    """

    to_file: "Callable[[Outbox], Callable[[], object] | None]"
    from_memory: Callable[[], object]
    alone: bool = False


class Writes:
    """What waits to be written, in order.

    Without a file each is done from memory at once.

    Args:
        path: The outbox; None: there is none.
        waits: How long to wait for it.
        added: Called when there is something to write.
        opened: Called when the file was opened.
        failed: Called with the error when the file cannot be used. It is tried again later: a file that is
            locked or full now need not be so for long.
    """

    def __init__(
        self,
        path: Path | None,
        waits: Waits,
        added: Callable[[], object],
        opened: Callable[[], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self.path = path
        self.use_at = -1.0
        self._waits = waits
        self._added = added
        self._opened = opened
        self._failed = failed
        self._lock = threading.Lock()
        self._waiting: deque[Write] = deque()
        self._batch: list[Write] = []
        self._outbox: Outbox | None = None
        self._open: Callable[[], Outbox] | None = None
        if path is not None:  # imported late, in a thread of ours, a fork meanwhile would leave it half-imported
            from ragstone.live import outbox  # loads sqlite3

            self._open = partial(outbox.Outbox, path, waits.locked)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._batch)

    @contextmanager
    def held(self) -> Generator[bool, None, None]:
        """Keep other threads from writing; False where one did not end within some seconds."""
        mine = self._lock.acquire(timeout=_SECONDS_FOR_LAST_BATCH)
        try:
            yield mine
        finally:
            if mine:
                self._lock.release()

    def add(self, write: Write) -> None:
        """Have something written, or do it from memory where there is no file."""
        if self.path is None:
            write.from_memory()
        else:
            self._waiting.append(write)
            self._added()

    def drain(self) -> Iterator[Write]:
        """Take out what waits."""
        while self._waiting:
            with suppress(IndexError):  # another thread was first
                yield self._waiting.popleft()

    def busy(self) -> bool:
        """Whether anything waits that can be written."""
        return len(self) > 0 and time.monotonic() >= self.use_at

    def transact(self, work: "Callable[[Outbox], T]") -> T | None:
        """Do some work in one transaction; None where the file cannot be used."""
        if self._open is None or time.monotonic() < self.use_at:
            return None
        try:
            if self._outbox is None:
                self._outbox = self._open()
                self._opened()
            with self._outbox.transaction():
                return work(self._outbox)
        except Exception as error:
            self.use_at = time.monotonic() + self._waits.outbox
            self._failed(error)
            return None

    def write(self) -> bool:
        """Write a batch, all or nothing, then go on with it; False where it could not be written."""
        with suppress(IndexError):  # nothing more waits
            while len(self._batch) < _BATCH and not (self._batch and (self._batch[-1].alone or self._waiting[0].alone)):
                self._batch.append(self._waiting.popleft())
        if not self._batch and self._outbox is not None:
            return True
        done = self.transact(lambda outbox: [each.to_file(outbox) for each in self._batch])
        if done is None:
            return False
        for go_on in filter(None, done):
            go_on()
        self._batch = []  # not before: what is on its way still waits
        return True

    def from_memory(self) -> None:
        """Go on with what cannot be written. The next start may do some of it again."""
        self._batch.extend(self.drain())
        self._waiting.extend([each for each in self._batch if each.from_memory()])
        self._batch = []

    def forget(self, before: float) -> None:
        """Remove what is from before a time from the file."""
        if self._outbox is not None:
            self._outbox.forget(before=before)

    def close(self) -> None:
        """Close the file."""
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None
