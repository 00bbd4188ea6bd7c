"""A lock on an open file that ends with its process, however that ends."""

import os
import sys

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: int) -> bool:
        """Lock an open file; return False if another process has locked it."""
        os.lseek(file, 1 << 30, os.SEEK_SET)  # no other process can read a locked byte: one that is far away
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        os.lseek(file, 0, os.SEEK_SET)
        return True
else:
    import fcntl

    def try_lock(file: int) -> bool:
        """Lock an open file; return False if another process has locked it.

        Raises:
            OSError: The disk has no locks, as some network disks have none.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True
