"""Remembering ids for a while, in bounded memory."""

import threading
from hashlib import blake2b

_LONG = 64


class Recent:
    """The ids of the last samples: at least `most / 2` of them, at most `most`. Safe to use from many threads.

    Long ids are remembered by their hash, so that ids of a megabyte do not pile up.

    Example:
        >>> recent = Recent(10)
        >>> recent.has("a"), recent.has("a")
        (False, True)
    """

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._lock = threading.RLock()  # re-entrant: a signal handler may ask while we look
        self._older: set[str | bytes] = set()
        self._newer: set[str | bytes] = set()

    def has(self, name: str) -> bool:
        """Return whether an id was here lately, and remember it."""
        key = name if len(name) <= _LONG else blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if key in self._older or key in self._newer:
                return True
            self._newer.add(key)
            if len(self._newer) >= self._half:
                self._older, self._newer = self._newer, set()
            return False
