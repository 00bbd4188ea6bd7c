"""Waiting by looking again and again: nothing that a signal handler may do meanwhile can be in its way."""

import time
from collections.abc import Callable

POLL = 0.01
"""Seconds between two looks."""

_LONGEST = 0.05


def wait_while(busy: Callable[[], object], over: Callable[[], bool]) -> bool:
    """Wait until something is no longer busy; False when the time for it is over before."""
    seconds = POLL
    while busy():
        if over():
            return False
        time.sleep(seconds)
        seconds = min(2 * seconds, _LONGEST)
    return True
