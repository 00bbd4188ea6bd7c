"""Sharing a journal's work: what this run claims before it asks, and what it waits for while others make it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Generic, Protocol, TypeVar, runtime_checkable

from ragstone.batch.scoring import Outcomes
from ragstone.limits.watch import in_daemon
from ragstone.store.journal.file import JournalError

J = TypeVar("J")
_AHEAD = 16  # evaluations in line that are claimed along with one, so that not each waits for the file
_MOST_AT_ONCE = 32  # of those that had to wait: when a process ends, all that wait for it get some
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5


@runtime_checkable
class ClaimedOutcomes(Outcomes, Protocol):
    """Where outcomes can be claimed before they are made: a `Journal`."""

    def claim(self, keys: Sequence[str], most: int = ...) -> set[str]:
        """Claim outcomes that nobody has made or is making."""
        ...

    def release(self, keys: Sequence[str]) -> None:
        """Give up claims."""
        ...


class Claiming(Generic[J]):
    """The claims of one run, on one event loop. The file is used in threads: another process may hold it for a while.

    Args:
        journal: Holds the claims.
        in_line: Returns the keys of the evaluations that come next, so many at most.
        again: Takes back the evaluations that had to wait, when their outcome is there, or theirs to make.
    """

    def __init__(
        self, journal: ClaimedOutcomes, in_line: Callable[[int], list[str]], again: Callable[[list[J]], None]
    ) -> None:
        self._journal = journal
        self._in_line = in_line
        self._again = again
        self._ahead: set[str] = set()
        self._begun: set[str] = set()
        self._asked: dict[str, None] = {}
        self._waiting: dict[str, list[J]] = {}
        self._some_wait = asyncio.Event()
        self._turn = asyncio.Lock()
        self._calls: set[asyncio.Future[set[str]]] = set()

    @property
    def waiting(self) -> bool:
        """Whether evaluations wait for what others make."""
        return bool(self._waiting)

    async def claimed(self, key: str) -> bool:
        """Return whether an outcome is this run's to make, from now on until `made`.

        Raises:
            JournalError: The journal cannot be read or written.
        """
        if key not in self._ahead and key not in self._begun:
            self._asked[key] = None
            async with self._turn:
                if key in self._asked:
                    await self._claim()
        if key not in self._ahead:
            return False
        self._ahead.remove(key)
        self._begun.add(key)
        return True

    def made(self, key: str) -> None:
        """Say that an outcome was put into the journal."""
        self._begun.discard(key)

    def wait(self, key: str, job: J) -> None:
        """Keep an evaluation until its outcome is there, or this run's to make."""
        self._waiting.setdefault(key, []).append(job)
        self._some_wait.set()

    def forget(self) -> None:
        """Wait for nothing any more."""
        self._waiting.clear()

    async def watch(self) -> None:
        """Look, again and again, what has become of the outcomes that evaluations wait for.

        Raises:
            JournalError: The journal cannot be read or written.
        """
        pause = _FIRST_PAUSE
        while True:
            if not self._waiting:
                self._some_wait.clear()
                await self._some_wait.wait()
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            keys = list(self._waiting)
            taken = await self._call(keys, _MOST_AT_ONCE)
            self._ahead |= taken
            ready = taken | await in_daemon(partial(self._there, keys))
            self._again([job for key in ready for job in self._waiting.pop(key, [])])
            pause = _FIRST_PAUSE if ready else min(2 * pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        """Give up what was claimed and is not made."""
        await asyncio.gather(*self._calls, return_exceptions=True)
        for call in self._calls:
            if not call.cancelled() and call.exception() is None:
                self._ahead |= call.result()
        with suppress(JournalError):  # it has been said, or will be when the journal is closed
            self._journal.release([*self._ahead, *self._begun])

    async def _claim(self) -> None:
        keys = dict.fromkeys([*self._asked, *self._in_line(_AHEAD)])
        self._asked.clear()
        wanted = [key for key in keys if not (key in self._ahead or key in self._begun or key in self._waiting)]
        self._ahead |= await self._call(wanted, len(wanted))

    async def _call(self, keys: Sequence[str], most: int) -> set[str]:
        call = asyncio.ensure_future(in_daemon(partial(self._journal.claim, keys, most)))
        self._calls.add(call)
        taken = await asyncio.shield(call)  # a task that is cancelled leaves it behind, for `close`
        self._calls.discard(call)
        return taken

    def _there(self, keys: Sequence[str]) -> set[str]:
        return {key for key in keys if self._journal.outcome(key) is not None}
