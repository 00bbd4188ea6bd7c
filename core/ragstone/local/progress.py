"""What `pull` shows on stderr: a bar on a terminal, plain lines elsewhere."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tqdm import tqdm


class Progress:
    """Progress of one file, in bytes.

    Example:
        >>> with Progress("model.bin", 3, terminal=False) as progress:
        ...     progress.part(1, 1, 3)  # to stderr: model.bin: part 1 of 1 (0.0 of 0.0 MB)
    """

    def __init__(self, name: str, size: int, *, terminal: bool | None = None) -> None:
        self._name = name
        self._size = size
        self._done = 0
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._bar: tqdm[NoReturn] | None = None

    def note(self, line: str) -> None:
        """Say one line."""
        self._hide()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def part(self, number: int, of: int, size: int) -> None:
        """Say that part `number` of `of`, `size` bytes long, is there."""
        self._done += size
        if not self._terminal:
            megabytes = f"{self._done / 1e6:.1f} of {self._size / 1e6:.1f} MB"
            self.note(f"{self._name}: part {number} of {of} ({megabytes})")
            return
        self._bar = self._bar or self._new_bar()
        self._bar.update(size)

    def _new_bar(self) -> "tqdm[NoReturn]":
        from tqdm import tqdm

        return tqdm(total=self._size, desc=self._name, unit="B", unit_scale=True, file=sys.stderr)

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hide()
