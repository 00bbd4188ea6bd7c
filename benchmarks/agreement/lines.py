"""What a system said of a row, as a line of JSON: numbers and ids, no text. Peers write the same form."""

import contextlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

from .fields import Place
from .labels import replace_file
from .rows import METRICS, DataError

Key = tuple[str, str, str]
"""File, row and metric."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One metric's outcome on one row, in one draw.

    Attributes:
        file: The row's file, without ".jsonl".
        id: The row.
        metric: The ragstone metric that it stands beside.
        value: The score; None where there is none.
        unscored: Why there is none.
        parts: The score's breakdown.
        sentences: Of each sentence passage, number, whether it was chosen, and its probability if there is one.
        calls: To the judge; None where nobody counted, likewise the tokens.
        input_tokens: Of the prompts.
        output_tokens: Of the replies.
        seconds: Wall time.
        draw: Which of several scorings it is.
        version: The metric's version.
    """

    file: str
    id: str
    metric: str
    value: float | None = None
    unscored: str | None = None
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    sentences: tuple[tuple[int, int, bool, float | None], ...] | None = None
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    draw: int = 0
    version: str = ""

    @property
    def key(self) -> Key:
        """File, row and metric."""
        return self.file, self.id, self.metric

    @property
    def drawn(self) -> tuple[str, str, str, int]:
        """File, row, metric and draw."""
        return self.file, self.id, self.metric, self.draw

    @property
    def chosen(self) -> frozenset[Place]:
        """The places of the sentences that were chosen."""
        return frozenset((passage, number) for passage, number, chosen, _ in self.sentences or () if chosen)


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file of scores; a last one that a killed run left unfinished is passed over.

    Raises:
        DataError: A line is of another form.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    *whole, last = content.split("\n")
    lines = [_read(text, f"{path}, line {number}") for number, text in enumerate(whole, 1)]
    if last.strip():
        with contextlib.suppress(DataError):
            lines.append(_read(last, ""))
    return lines


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    """Write lines, sorted, in one step."""
    ordered = sorted(lines, key=lambda line: line.drawn)
    replace_file(path, (json.dumps(asdict(line), allow_nan=False) for line in ordered))


def together(draws: Iterable[Line]) -> Line:
    """Return what several draws of one row come to: means; sentences that more than half of the draws chose.

    Draws that were not scored are left out; where none was, the first stands for all. Costs are the sum.

    Example:
        >>> both = [Line(file="f", id="1", metric="m", value=value, calls=1, draw=i) for i, value in enumerate((0, 1))]
        >>> together(both).value, together(both).calls
        (0.5, 2)
    """
    lines = list(draws)
    scored = [line for line in lines if line.value is not None]
    if len(lines) == 1:
        return lines[0]
    first = scored[0] if scored else lines[0]
    names = [name for name in first.parts if all(name in line.parts for line in scored)]
    return Line(
        file=first.file,
        id=first.id,
        metric=first.metric,
        value=_mean([line.value for line in scored]),
        unscored=None if scored else first.unscored,
        parts={name: math.fsum(line.parts[name] for line in scored) / len(scored) for name in names},
        sentences=_voted([line.sentences or () for line in scored]) if first.sentences is not None else None,
        calls=_sum([line.calls for line in lines]),
        input_tokens=_sum([line.input_tokens for line in lines]),
        output_tokens=_sum([line.output_tokens for line in lines]),
        seconds=_sum([line.seconds for line in lines]),
        version=first.version,
    )


def draw_sd(lines: Iterable[Line]) -> float | None:
    """Return the standard deviation of the value between draws of one row, pooled; None where no row has two.

    Example:
        >>> lines = [Line(file="f", id="1", metric="m", value=value, draw=i) for i, value in enumerate((0.4, 0.6))]
        >>> round(draw_sd(lines), 3)
        0.141
    """
    values: dict[Key, list[float]] = {}
    for line in lines:
        if line.value is not None:
            values.setdefault(line.key, []).append(line.value)
    several = [each for each in values.values() if len(each) > 1]
    squares = math.fsum((value - math.fsum(each) / len(each)) ** 2 for each in several for value in each)
    return math.sqrt(squares / sum(len(each) - 1 for each in several)) if several else None


def _read(text: str, where: str) -> Line:
    try:
        return _line(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{where}: is no line of scores: {error!r}") from None


def _line(given: Any) -> Line:  # noqa: ANN401 - it is JSON
    if not isinstance(given, dict):
        raise TypeError("is no object")
    values = cast("dict[str, Any]", given)
    metric = values["metric"]
    sentences = values.get("sentences")
    line = Line(
        file=PurePosixPath(values["file"]).name.removesuffix(".jsonl"),
        id=values["id"],
        metric=METRICS[metric].name if metric in METRICS else metric,
        value=values["value"],
        unscored=values.get("unscored"),
        parts=values.get("parts") or {},
        sentences=None if sentences is None else tuple((p, s, bool(chosen), q) for p, s, chosen, q in sentences),
        **{name: values.get(name) for name in ("calls", "input_tokens", "output_tokens", "seconds")},
        draw=values.get("draw", 0),
        version=values.get("version", ""),
    )
    numbers = [line.value, *line.parts.values()]
    if any(number is not None and not math.isfinite(number) for number in numbers):
        raise ValueError("a number is not finite")
    if (line.value is None) == (line.unscored is None):
        raise ValueError("has either a value, or a reason why there is none")
    return line


def _voted(
    draws: list[tuple[tuple[int, int, bool, float | None], ...]],
) -> tuple[tuple[int, int, bool, float | None], ...]:
    return tuple(
        (
            marks[0][0],
            marks[0][1],
            2 * sum(chosen for _, _, chosen, _ in marks) > len(marks),
            _mean([probability for _, _, _, probability in marks]),
        )
        for marks in zip(*draws, strict=True)
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def _sum(values: list[Any]) -> Any:  # noqa: ANN401 - of whole numbers it is one
    return None if any(value is None for value in values) else sum(values)
