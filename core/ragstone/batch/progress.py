"""A run's progress as a bar: done and total, calls in flight, tokens, what is unscored, and when it will be over."""

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Literal, TextIO

from ragstone.limits.gate import RequestGate

if TYPE_CHECKING:
    from tqdm import tqdm

Shown = bool | Literal["auto"]


class Progress:
    """A bar on standard error or in a notebook; nothing at all where it is not shown.

    Args:
        gate: Knows the calls and tokens.
        total: Samples in all, if that is known.
        shown: Whether to show it; "auto": on a terminal and in a notebook.
    """

    def __init__(self, gate: RequestGate, total: int | None, shown: Shown) -> None:
        self._gate = gate
        self._unscored = 0
        self._bar: tqdm[Any] | None = None
        if (in_notebook() or is_terminal()) if shown == "auto" else shown:
            from tqdm import auto  # also knows notebooks

            form = "{n_fmt} samples [{elapsed}{postfix}]"
            if total is not None:
                form = "{l_bar}{bar}| {n_fmt}/{total_fmt} samples [{elapsed}<{remaining}{postfix}]"
            self._bar = auto.tqdm(total=total, bar_format=form, file=sys.stderr, dynamic_ncols=True)

    def at(self, place: int, unscored: int = 0) -> None:
        """Say that all up to `place`, counted from 1, is done, with so many more outcomes unscored."""
        self._unscored += unscored
        if self._bar is not None:
            self._bar.set_postfix_str(self._facts(), refresh=False)
            self._bar.update(place - self._bar.n)

    def close(self) -> None:
        """Draw it for the last time."""
        if self._bar is not None:
            self._bar.set_postfix_str(self._facts(), refresh=False)
            self._bar.close()

    def _facts(self) -> str:
        gate = self._gate
        known = gate.input_tokens is not None and gate.output_tokens is not None
        tokens = f", {(gate.input_tokens or 0) + (gate.output_tokens or 0):,} tokens" if known else ""
        return f"{gate.in_flight} in flight{tokens}, {self._unscored:,} unscored"


def above_bar(stream: TextIO) -> contextlib.AbstractContextManager[object]:
    """Return a context in which lines can be written to a stream without tearing a bar that is drawn."""
    drawn = sys.modules.get("tqdm")
    return contextlib.nullcontext() if drawn is None else drawn.tqdm.external_write_mode(file=stream)


def is_terminal() -> bool:
    """Whether standard error is one."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def in_notebook() -> bool:
    """Whether this runs in a kernel whose output is a notebook."""
    interactive = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = interactive() if callable(interactive) else None
    return shell is not None and hasattr(shell, "kernel")
