"""Who makes which outcome: claims in a journal's file, so that processes that share it do not pay for one twice."""

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.store.journal_writer import JournalError, JournalFile

if TYPE_CHECKING:
    from ragstone.store.owner import Owner

_log = logging.getLogger(__name__)
_STALLED_SECONDS = 600.0
_AT_ONCE = 500  # variables of a query, of which older SQLites take 999
_TRIES = 5
_BEAT = "INSERT INTO owners VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET beat = beat + 1"
_CLAIM = """
INSERT OR IGNORE INTO claims SELECT :key, :me WHERE NOT EXISTS (SELECT 1 FROM outcomes WHERE key = :key)
"""


class Claims:
    """The claims of one journal object on outcomes that are being made. Any thread may use it.

    A claim is a row in the file: the outcome's key, and its owner. The owner's name is that of a file which its
    process holds locked, so that others see when the process has ended, however it did. A claim goes when the outcome
    is written or given up. Others may take it when its owner has ended, and when the owner has written nothing for ten
    minutes, counted by the one who waits: it was stopped, or it hangs.

    Args:
        file: A way into the journal's file of its own.
        path: The journal's path; the owners' files are in a folder beside it while there are any.
        clock: Seconds, from anywhere.
    """

    def __init__(self, file: JournalFile, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._folder = path.with_name(f"{path.name}.owners")
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._taking = threading.Lock()
        self._owner: Owner | None = None
        self._unlocked = False
        self._mine: set[str] = set()  # neither written nor given up
        self._beats: dict[str, tuple[int, float]] = {}  # of other owners, and since when

    @property
    def owner(self) -> str | None:
        """The name under which this process claims; None before its first claim."""
        return self._owner.name if self._owner is not None and self._pid == os.getpid() else None

    def take(self, keys: Sequence[str], most: int) -> set[str]:
        """Claim as many of the outcomes as are neither written nor claimed, `most` at most; return their keys.

        Raises:
            JournalError: The file cannot be read or written.
        """
        if self._pid != os.getpid():
            self._begin()  # a forked child has claims of its own
        with self._taking:
            me = self._named()
            if me is None:
                return set(keys)
            beats = {str(name): beat for name, beat in self._file.read("SELECT name, beat FROM owners")}
            ended = [name for name, beat in beats.items() if name != me and not self._works(name, beat)]
            living = beats.keys() - set(ended)
            claimed = dict(self._rows("SELECT key, owner FROM claims WHERE key IN", keys))
            written = dict(self._rows("SELECT key, 1 FROM outcomes WHERE key IN", keys))
            free = [key for key in keys if claimed.get(key) not in living and key not in written.keys() | self._mine]
            taken = self._take(free[:most], ended, me) if free else set[str]()
            self._mine |= taken
            return taken

    def settled(self, key: str) -> None:
        """Say that an outcome was put, or given up: its row goes when that is written."""
        self._mine.discard(key)

    def close(self) -> None:
        """Give up all claims, and the name."""
        owner = self._owner if self._pid == os.getpid() else None
        if owner is not None:
            with suppress(JournalError), self._file.transaction() as connection:
                connection.execute("DELETE FROM claims WHERE owner = ?", (owner.name,))
                connection.execute("DELETE FROM owners WHERE name = ?", (owner.name,))
            for other in owner.others():
                owner.lives(other)  # which forgets the file of one that was killed
            owner.close()
            self._owner = None
            with suppress(OSError):
                self._folder.rmdir()  # unless others work
        self._file.close()

    def _take(self, keys: Sequence[str], ended: Sequence[str], me: str) -> set[str]:
        with self._file.transaction() as connection:
            if ended:
                connection.executemany("DELETE FROM claims WHERE owner = ?", [(name,) for name in ended])
                connection.executemany("DELETE FROM owners WHERE name = ?", [(name,) for name in ended])
            connection.execute(_BEAT, (me,))
            # Another process may have been faster since we looked.
            return {key for key in keys if connection.execute(_CLAIM, {"key": key, "me": me}).rowcount == 1}

    def _works(self, name: str, beat: object) -> bool:
        """Whether another owner's process lives and has written something in the last ten minutes."""
        if self._owner is None or not self._owner.lives(name):
            self._beats.pop(name, None)
            return False
        number, now = beat if isinstance(beat, int) else 0, self._clock()
        known, since = self._beats.get(name, (number, now))
        if known != number:
            since = now
        self._beats[name] = number, since
        return now - since < _STALLED_SECONDS

    def _rows(self, query: str, keys: Sequence[str]) -> Iterator[tuple[str, object]]:
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            for key, value in self._file.read(f"{query} ({', '.join('?' * len(some))})", some):
                yield str(key), value

    def _named(self) -> str | None:
        if self._owner is None and not self._unlocked:
            from ragstone.store.owner import Owner

            for left in reversed(range(_TRIES)):
                try:
                    self._owner = Owner(self._folder)
                    weakref.finalize(self, self._owner.close)
                    break
                except FileNotFoundError:  # another process has just removed the empty folder
                    if not left:
                        raise
                except OSError as error:
                    self._unlocked = True
                    _log.warning("%s: %s. Processes on this journal do not share the work.", self._folder, error)
                    break
        return self.owner
