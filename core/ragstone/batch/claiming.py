"""Sharing a journal's work: what this run claims before it asks, and what it waits for while others make it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, runtime_checkable

from ragstone.limits.limiter import GateClosed
from ragstone.limits.timeouts import in_daemon
from ragstone.outcome import Outcome
from ragstone.store.journal import JournalError

_log = logging.getLogger(__name__)
_AHEAD = 16  # evaluations in line that are claimed along with one, so that not each waits for the file
_MOST_AT_ONCE = 32  # of those that had to wait: when a process ends, all that wait for it get some
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_LONG_WAIT = 10.0


class Outcomes(Protocol):
    """Where outcomes are kept beyond a run: a `Journal`, or what the workers of a cluster share."""

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome that was put under a key; None where there is none."""
        ...

    def put_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, if it is final."""
        ...


@runtime_checkable
class ClaimedOutcomes(Outcomes, Protocol):
    """Where outcomes can be claimed before they are made: a `Journal`."""

    def claim(self, keys: Sequence[str], most: int = ...) -> set[str]:
        """Claim outcomes that nobody has made or is making."""
        ...

    def release(self, keys: Sequence[str]) -> None:
        """Give up claims."""
        ...


class Claiming:
    """The claims of one run, on one event loop. The file is used in threads: another process may hold it for a while.

    Args:
        journal: Holds the claims.
        in_line: Returns the keys of the evaluations that come next, so many at most.
        on_wait: Called when an evaluation begins to wait: another may begin meanwhile.
    """

    def __init__(
        self, journal: ClaimedOutcomes, in_line: Callable[[int], list[str]], on_wait: Callable[[], None]
    ) -> None:
        self._journal = journal
        self._in_line = in_line
        self._on_wait = on_wait
        self._ahead: set[str] = set()  # claimed, not begun
        self._begun: set[str] = set()
        self._asked: dict[str, None] = {}
        self._turn = asyncio.Lock()
        self._waiting: dict[str, list[asyncio.Future[bool]]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Future[set[str]]] = set()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Evaluations that wait for what others make."""
        return sum(map(len, self._waiting.values()))

    async def claim(self, key: str) -> bool:
        """Return True when an outcome is this run's to make, until `made`; False when it is in the journal.

        Raises:
            GateClosed: The run was stopped.
            JournalError: The journal cannot be read or written.
        """
        if key not in self._ahead and key not in self._begun:
            self._asked[key] = None
            async with self._turn:
                if key in self._asked:
                    await self._claim_asked()
        if key in self._ahead:
            self._ahead.remove(key)
            self._begun.add(key)
            return True
        if self._closed:
            raise GateClosed
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(turn)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.ensure_future(self._watch())
        self._on_wait()
        return await turn

    def made(self, key: str) -> None:
        """Say that an outcome was put into the journal."""
        self._begun.discard(key)

    def stop(self) -> None:
        """Wait for nothing any more."""
        self._closed = True
        self._settle(list(self._waiting), GateClosed())

    async def close(self) -> None:
        """Give up what was claimed and is not made."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await asyncio.gather(*self._calls, return_exceptions=True)
        for call in self._calls:
            if not call.cancelled() and call.exception() is None:
                self._ahead |= call.result()
        with suppress(JournalError):  # it has been said, or will be when the journal is closed
            self._journal.release([*self._ahead, *self._begun])

    async def _watch(self) -> None:
        """Look, again and again, what has become of the outcomes that evaluations wait for."""
        pause, waited, warned = _FIRST_PAUSE, 0.0, False
        try:
            while self._waiting:
                await asyncio.sleep(pause)
                waited += pause
                keys = list(self._waiting)
                taken = await self._call(keys, _MOST_AT_ONCE)
                self._settle(await in_daemon(partial(self._there, keys)))
                for key in taken & self._waiting.keys():  # one of those that wait for it may make it
                    self._begun.add(key)
                    turns = self._waiting[key]
                    _set(turns.pop(0), True)
                    if not turns:
                        del self._waiting[key]
                self._ahead |= taken - self._begun
                others = sum(key not in self._begun for key in self._waiting)
                if waited >= _LONG_WAIT and others and not warned:
                    warned = True
                    _log.warning("Waiting for %d outcomes that another process claimed.", others)
                moved = taken or len(self._waiting) < len(keys)
                pause = _FIRST_PAUSE if moved else min(2 * pause, _LONGEST_PAUSE)
        except JournalError as error:
            self._settle(list(self._waiting), error)

    def _settle(self, keys: Sequence[str], result: bool | Exception = False) -> None:
        for key in keys:
            for turn in self._waiting.pop(key, []):
                _set(turn, result)

    async def _claim_asked(self) -> None:
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

    def _there(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if self._journal.outcome(key) is not None]


def _set(turn: asyncio.Future[bool], result: bool | Exception) -> None:
    if turn.done():  # called off
        return
    if isinstance(result, Exception):
        turn.set_exception(result)
    else:
        turn.set_result(result)
