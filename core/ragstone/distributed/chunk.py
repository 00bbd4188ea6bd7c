"""The one thing that every engine runs on its workers: a chunk of rows in, outcomes as plain dicts out.

The journal of such a run is one folder, in it one file for each worker's process. Each process appends to its own file
and reads all. Nobody locks anything and no file has two writers, which is what network file systems can be trusted
with; SQLite's locks and its memory shared between processes are not. A line is a record whose id is the outcome's key.
A process that is killed leaves at worst a last line without its end, which readers pass over.
"""

import asyncio
import json
import os
import secrets
import socket
import threading
import weakref
from collections import OrderedDict
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from ragstone.batch.runner import Runner, Scored
from ragstone.distributed.spec import Spec
from ragstone.limits.gate import RequestGate
from ragstone.outcome import Outcome
from ragstone.sample import BadLine, Row
from ragstone.sources import rows_of
from ragstone.store.journal import JournalError
from ragstone.store.private_files import make_private_folder, open_private
from ragstone.store.record import Record, decode, encode, is_final

_MOST_SESSIONS = 4
_lock = threading.Lock()
_sessions: "OrderedDict[tuple[int, str, str], WorkerSession]" = OrderedDict()

_SUFFIX = ".outcomes"
_HEAD = b'{"id":"'
_KEY = slice(len(_HEAD), len(_HEAD) + 32)


class SharedOutcomes:
    """Outcomes by key, of all processes that use the folder. Any thread may use it.

    What is put has left the process when `put_outcome` returns: a `kill -9` loses none of it. What others put is seen
    from the next `refresh`. In memory are only the keys, some 250 bytes each.

    Args:
        folder: Made if need be; on a disk that all workers reach.

    Raises:
        JournalError: The folder cannot be made or read.

    Example:
        >>> import tempfile
        >>> from ragstone import Score
        >>> folder = tempfile.TemporaryDirectory()
        >>> one, other = SharedOutcomes(folder.name), SharedOutcomes(folder.name)
        >>> one.put_outcome("0" * 32, Score(metric="demo", value=0.5, reason="", version="1"))
        >>> other.refresh()
        >>> other.outcome("0" * 32).value
        0.5
        >>> one.close(), other.close()
        (None, None)
        >>> folder.cleanup()
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._lock = threading.RLock()
        self._places: dict[bytes, tuple[Path, int]] = {}  # by key: its file, and where its line begins there
        self._read: dict[Path, int] = {}  # how far each file was read
        self._own: IO[bytes] | None = None
        self._own_path = self.folder
        self._end = 0
        try:
            make_private_folder(self.folder)
        except OSError as error:
            raise JournalError(
                f"{self.folder}: cannot be created ({error}); name a folder that all workers can reach"
            ) from error

    def refresh(self) -> None:
        """Take note of what other processes put since the last time.

        Raises:
            JournalError: The folder or a file of it cannot be read.
        """
        with self._lock:
            try:
                for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
                    if path == self._own_path:
                        continue
                    place = self._read.get(path, 0)
                    with path.open("rb") as file:  # opening asks a network's server anew what is there
                        file.seek(place)
                        for line in file:
                            if line.endswith(b"\n"):  # else it is just being written, or never will be
                                self._note(line, path, place)
                                place += len(line)
                    self._read[path] = place
            except OSError as error:
                raise JournalError(f"{self.folder}: cannot be read ({error})") from error

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome that was put under the key; None where there is none, or where it is damaged.

        Raises:
            JournalError: The file with it cannot be read.
        """
        with self._lock:
            if (known := self._places.get(bytes.fromhex(key))) is None:
                return None
        path, place = known
        try:
            with path.open("rb") as file:
                file.seek(place)
                return decode(file.readline()).outcome
        except OSError as error:
            raise JournalError(f"{path}: can no longer be read ({error})") from error
        except ValueError:
            return None  # asked again, and kept again

    def put_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, unless it is one that a later run should ask for again (`Journal.put_outcome`).

        Raises:
            JournalError: It cannot be written; what was put before is safe.
        """
        if not is_final(outcome):
            return
        line = f"{encode(Record(key, outcome))}\n".encode()
        with self._lock, self._explained():
            if self._own is None:
                name = f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
                self._own_path, self._end = self.folder / name, 0
                self._own = open_private(self._own_path, "xb", buffering=0)
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[self._own.write(rest) :]
            except OSError:
                self.close()  # half a line ends this file; the next outcome begins another
                raise
            self._places[bytes.fromhex(key)] = self._own_path, self._end
            self._end += len(line)

    def left_out(self, _judge: str) -> dict[str, str]:
        """Return nothing: each process finds out for itself what a provider refuses."""
        return {}

    def put_left_out(self, judge: str, names: Mapping[str, str]) -> None:
        """Keep nothing."""

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Return the keys of outcomes that are not there: workers are sent rows of their own."""
        return {key for key in keys if self.outcome(key) is None}

    def release(self, keys: Iterable[str]) -> None:
        """Do nothing: no process waits for a claim."""

    def flush(self) -> None:
        """Bring what was put to the disk: what a machine that loses its power has before this may be missing.

        Raises:
            JournalError: It cannot be written.
        """
        with self._lock, self._explained():
            if self._own is not None:
                os.fsync(self._own.fileno())

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._own is not None:
                self._own.close()
                self._own = None

    def _note(self, line: bytes, path: Path, place: int) -> None:
        with suppress(ValueError):  # damaged: it is judged again
            if line.startswith(_HEAD):
                self._places.setdefault(bytes.fromhex(line[_KEY].decode("ascii")), (path, place))

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            raise JournalError(
                f"{self.folder}: cannot be written to ({error}); earlier results are safe: free space and run again"
            ) from error


def score_chunk(rows: Iterable[object], spec: Spec | str, run: str = "") -> list[dict[str, Any]]:
    """Score rows within this worker's limits, blocking, and return a dict for each row, metric and draw, in order.

    The limits of the spec hold for this process, however many chunks it scores at once: give it a share
    (`Spec.divided`). The first chunk makes judge, event loop and journal, and the next chunks use them.

    What fails is data and touches nothing else: an outcome of status "unscored" with its reason, or a row of status
    "bad_row" that holds no sample. Only what concerns every row is raised.

    Args:
        rows: Dicts or `Sample`s; also a pandas or Arrow table. Give each an `id`: one without is called by its place
            in the chunk, from 1.
        spec: The spec, or its JSON.
        run: Any name. Chunks of one spec and one name share what they can: the judge, the limits, and replies to
            requests that are the same. Another name begins anew, but for the journal.

    Returns:
        For each outcome: id, row (the place in the chunk, from 0), draw, judge, status (scored or unscored) and the
        outcome's fields. For a row that is no sample: id, row, status "bad_row" and detail.

    Raises:
        SpecError: The spec is wrong, or the judge cannot be had on this machine.
        JournalError: The journal cannot be read or written; what it holds is safe.

    Example:
        >>> score_chunk([{"response": 5, "id": "a"}], Spec(metrics=["context_relevancy"], judge="m@http://127.0.0.1:9"))
        [{'id': '1', 'row': 0, 'status': 'bad_row', 'detail': 'response: is int, not text (str)'}]
    """
    if isinstance(spec, str):
        spec = Spec.from_json(spec)
    source = list(cast("Iterable[Row | BadLine]", rows_of(rows, spec.fields)))
    dicts: list[dict[str, Any]] = []
    for item in WorkerSession.of(spec, run).score(source):
        if isinstance(item, BadLine):
            dicts.append({"id": str(item.line), "row": item.line - 1, "status": "bad_row", "detail": item.problem})
        else:
            dicts.extend(map(_plain, item.records))
    return dicts


def _plain(result: Record) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(encode(result)))


class WorkerSession:
    """What one worker's process has for a run, once: judge, limits, journal, and an event loop in a thread."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._metrics = spec.build()
        self._outcomes = None if spec.journal is None else SharedOutcomes(spec.journal)
        self._gate = RequestGate(
            spec.max_concurrency,
            requests_per_minute=spec.requests_per_minute,
            tokens_per_minute=spec.tokens_per_minute,
            call_timeout=spec.call_timeout,
            share_replies=spec.share_replies,
            own_loop=True,
        )
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        threading.Thread(target=_run_loop, args=(started,), name="ragstone-chunks", daemon=True).start()
        self._loop, over = started.result()
        weakref.finalize(self, _end, self._loop, over, self._outcomes).atexit = False

    @classmethod
    def of(cls, spec: Spec, run: str) -> "WorkerSession":
        """Return this process's session for a run: made by the first chunk, kept for the next."""
        key = os.getpid(), run, spec.to_json()  # a forked process has none of its parent's threads
        with _lock:
            session = _sessions.get(key)
            if session is None:
                session = _sessions[key] = cls(spec)
            _sessions.move_to_end(key)
            while len(_sessions) > _MOST_SESSIONS:
                _sessions.popitem(last=False)
            return session

    def score(self, rows: Sequence[Row | BadLine]) -> list[Scored | BadLine]:
        """Score rows, blocking."""
        if self._outcomes is not None:
            self._outcomes.refresh()  # another worker may have been killed over these very rows
        return asyncio.run_coroutine_threadsafe(self._scored(rows), self._loop).result()

    async def _scored(self, rows: Sequence[Row | BadLine]) -> list[Scored | BadLine]:
        runner = Runner(
            rows,
            self._metrics,
            self._gate,
            repeat=self._spec.repeat,
            journal=self._outcomes,
            sample_timeout=self._spec.sample_timeout,
            flows=2 * self._spec.max_concurrency,
            window=16 * self._spec.max_concurrency,
        )
        async with aclosing(runner.records()) as items:
            scored = sorted([item async for item in items], key=_line)
        if self._outcomes is not None:
            await asyncio.to_thread(self._outcomes.flush)
        return scored


def _line(item: Scored | BadLine) -> int:
    return item.line if isinstance(item, BadLine) else item.row.line


def _run_loop(started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    async def until_over() -> None:
        over = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), over))
        await over.wait()

    asyncio.run(until_over())


def _end(loop: asyncio.AbstractEventLoop, over: asyncio.Event, outcomes: SharedOutcomes | None) -> None:
    with suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(over.set)
    if outcomes is not None:
        outcomes.close()
