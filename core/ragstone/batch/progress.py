"""A run's progress as a bar: done and total, calls in flight, tokens, what is unscored, and when it will be over."""

import asyncio
import contextlib
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TextIO

from ragstone.limits.gate import RequestGate

if TYPE_CHECKING:
    from tqdm import tqdm

Shown = bool | Literal["auto"]
_EVERY = 0.5
_ROUNDS_TO_A_THOUSAND = 999.5


class Progress:
    """A bar on standard error or in a notebook, drawn every half second; nothing at all where it is not shown.

    Use it as a context manager, on the event loop of the run.

    Args:
        gate: Knows the calls and tokens.
        total: Samples in all, if that is known.
        shown: Whether to show it; "auto": on a terminal and in a notebook.
    """

    def __init__(self, gate: RequestGate, total: int | None, *, shown: Shown = "auto") -> None:
        self._gate = gate
        self._total = total
        self._shown = (in_notebook() or is_terminal()) if shown == "auto" else shown
        self._bar: tqdm[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unscored = 0

    def __enter__(self) -> "Progress":
        if self._shown:
            self._bar = _bar_class()(total=self._total, unit=" samples", file=sys.stderr, dynamic_ncols=True)
            self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._bar is not None:
            self._bar.set_postfix_str(self._facts(), refresh=False)
            self._bar.close()

    def at(self, place: int, unscored: int = 0) -> None:
        """Say that all up to `place`, counted from 1, is done, with so many more outcomes unscored."""
        self._unscored += unscored
        if self._bar is not None:
            self._bar.update(place - self._bar.n)

    def _draw(self) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(self._facts())
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self._draw)

    def _facts(self) -> str:
        gate = self._gate
        known = gate.input_tokens is not None and gate.output_tokens is not None
        tokens = f", {_short((gate.input_tokens or 0) + (gate.output_tokens or 0))} tokens" if known else ""
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


def _bar_class() -> "type[tqdm[Any]]":
    if in_notebook():
        from tqdm.auto import tqdm as of_notebook

        return of_notebook
    from tqdm import tqdm

    return tqdm


def _short(count: float) -> str:
    for unit in ("", "k", "M"):
        if count < _ROUNDS_TO_A_THOUSAND:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g}G"
