"""The queue between the app and the workers, counted in bytes, too."""

import threading
from queue import SimpleQueue

from ragstone.monitor.job import Job


class ByteCount:
    """A number of bytes to which any thread may add.

    Example:
        >>> count = ByteCount()
        >>> count.add(5), count.add(-2), count.bytes
        (None, None, 3)
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # re-entrant: a signal handler may submit while we count
        self.bytes = 0

    def add(self, number: int) -> None:
        """Add a number; a negative one takes away."""
        with self._lock:
            self.bytes += number


class JobQueue:
    """Jobs that wait for a worker, first in, first out. Safe to use from any thread and from a signal handler."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._size = ByteCount()

    @property
    def bytes(self) -> int:
        """The sum of the jobs' sizes."""
        return self._size.bytes

    def qsize(self) -> int:
        """Return how many wait."""
        return self._jobs.qsize()

    def put(self, job: Job | None) -> None:
        """Add a job; None ends the thread that takes it."""
        if job is not None:
            self._size.add(job.size)
        self._jobs.put(job)

    def get(self) -> Job | None:
        """Take out the oldest, when there is one."""
        return self._taken(self._jobs.get())

    def get_nowait(self) -> Job | None:
        """Take out the oldest.

        Raises:
            queue.Empty: There is none.
        """
        return self._taken(self._jobs.get_nowait())

    def _taken(self, job: Job | None) -> Job | None:
        if job is not None:
            self._size.add(-job.size)
        return job
