"""How far a run is: a bar on a terminal and in a notebook, a line now and then elsewhere."""

import asyncio
import os
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TextIO

from ragstone.limits.gate import RequestGate

if TYPE_CHECKING:
    from tqdm import tqdm

_LINE_SECONDS = 30.0
_SLOW_SECONDS = 20.0
_NARROW = 110


class Progress:
    """A bar on standard error or in a notebook, drawn anew each second; elsewhere a line each 30 seconds.

    It is made on the run's event loop.

    Args:
        gate: Knows the calls and tokens.
        total: Samples in all, if that is known.
        lines: Whether lines are written where there is neither terminal nor notebook.
    """

    def __init__(self, gate: RequestGate, total: int | None, *, lines: bool) -> None:
        self._gate = gate
        self._total = total
        self._done = self._unscored = 0
        self._time = asyncio.get_running_loop().time
        self._ended_at = self._time()
        self._bar = self._drawn() if in_notebook() or is_terminal() else None
        self._beat: asyncio.TimerHandle | None = None
        if self._bar is not None or lines:
            self._later()

    def done(self, unscored: int = 0) -> None:
        """Say that one more row is done, with so many more outcomes unscored."""
        self._done += 1
        self._unscored += unscored
        self._ended_at = self._time()
        if self._bar is not None:
            self._describe(self._bar)
            self._bar.update()

    def close(self) -> None:
        """Draw it for the last time."""
        if self._beat is not None:
            self._beat.cancel()
        if self._bar is not None:
            self._describe(self._bar)
            self._bar.close()

    def _drawn(self) -> "tqdm[Any]":
        # This bar knows notebooks, too.
        from tqdm import auto

        return auto.tqdm(total=self._total, bar_format=self._form(), file=sys.stderr, dynamic_ncols=True)

    def _describe(self, bar: "tqdm[Any]") -> None:
        bar.bar_format = self._form()
        bar.set_postfix_str(self._facts(), refresh=False)

    def _form(self) -> str:
        done = "{n_fmt}" if self._total is None else "{n_fmt}/{total_fmt}"
        if _columns() < _NARROW:
            return done + "{postfix}"
        # Nothing is known of the rest while nothing ends.
        hangs = self._total is None or self._time() - self._ended_at >= _SLOW_SECONDS
        bar = "" if self._total is None else "{l_bar}{bar}| "
        return f"{bar}{done} samples [{{elapsed}}{'' if hangs else '<{remaining}'}{{postfix}}]"

    def _later(self) -> None:
        seconds = _LINE_SECONDS if self._bar is None else 1.0
        self._beat = asyncio.get_running_loop().call_later(seconds, self._say)

    def _say(self) -> None:
        if self._bar is not None:
            self._describe(self._bar)
            self._bar.refresh()
        else:
            of = "" if self._total is None else f"/{self._total:,}"
            write_line(f"{self._done:,}{of} samples, {self._facts()}")
        self._later()

    def _facts(self) -> str:
        gate = self._gate
        facts = [f"{gate.in_flight} in flight"]
        if (oldest := max(gate.waits(), default=0.0)) >= _SLOW_SECONDS:
            facts.append(f"oldest {oldest:.0f} s")
        if self._bar is not None and _columns() < _NARROW:
            return ", ".join(facts)
        facts.append(f"{gate.calls_done:,} judge calls done")
        if gate.input_tokens is not None and gate.output_tokens is not None:
            facts.append(f"{gate.input_tokens + gate.output_tokens:,} tokens")
        return ", ".join([*facts, f"{self._unscored:,} unscored"])


def _columns() -> int:
    """How wide the terminal is; where there is none, wide enough."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, AttributeError, ValueError):
        return _NARROW


def write_line(line: str) -> None:
    """Write a line on standard error, above a bar that is drawn; where there is no such stream, nowhere."""
    with above_bar(sys.stderr), suppress(OSError, AttributeError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def above_bar(stream: TextIO) -> AbstractContextManager[object]:
    """A context in which lines can be written to a stream without tearing a bar that is drawn."""
    drawn = sys.modules.get("tqdm")
    return nullcontext() if drawn is None else drawn.tqdm.external_write_mode(file=stream)


def is_terminal() -> bool:
    """Whether standard error is one."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        # There is none, or it is closed.
        return False


def in_notebook() -> bool:
    """Whether this runs in a kernel whose output is a notebook."""
    interactive = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = interactive() if callable(interactive) else None
    return shell is not None and hasattr(shell, "kernel")
