"""Charts as inline SVG. Pure functions from numbers to markup; colours and fonts are the page's style."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragstone.reporting.live.figures import ticks
from ragstone.reporting.live.markup import Html, tag

_WIDTH, _HEIGHT = 460, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 12, 28
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_MOST_DOTS = 100

Tick = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line, with its band where it has one, and what it says when pointed at."""

    x: float
    y: float
    low: float | None
    high: float | None
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar over [start, end) of the axis, and what it says when pointed at."""

    start: float
    end: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where values are on the drawing."""

    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, x: float) -> float:
        return _LEFT + _PLOT_WIDTH * _share(x, *self.x)

    def down(self, y: float) -> float:
        return _TOP + _PLOT_HEIGHT * (1 - _share(y, *self.y))


def line_chart(
    name: str,
    runs: Sequence[Sequence[Point]],
    *,
    x: tuple[float, float],
    y: tuple[float, float],
    x_ticks: Sequence[Tick],
    title: str,
    description: str,
) -> Html:
    """Return a line with its band.

    Args:
        name: The element's, which no other of the page has.
        runs: The points in order; the line is broken between one run and the next.
        x: The ends of the axis across.
        y: The ends of the axis upwards. What is beyond is cut.
        x_ticks: Where to write what below the axis.
        title: What the chart shows.
        description: What it says, for those who do not see it.
    """
    frame = _Frame(x, y)
    parts = [*_grid(frame, [(value, f"{value:g}") for value in ticks(*y)]), *_below(frame, x_ticks)]
    for run in runs:
        parts += _band(frame, run)
        line = " ".join(f"{frame.across(p.x):.1f},{frame.down(p.y):.1f}" for p in run)
        parts.append(tag("polyline", class_="line", points=line))
    if sum(map(len, runs)) <= _MOST_DOTS:
        parts += [_dot(frame, point) for run in runs for point in run]
    return _chart(name, parts, title, description)


def bar_chart(
    name: str,
    bars: Sequence[Bar],
    *,
    x: tuple[float, float],
    top: float,
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    title: str,
    description: str,
) -> Html:
    """Return bars that stand on 0 and reach up to `top` at most; otherwise as `line_chart`."""
    frame = _Frame(x, (0.0, top))
    parts = [*_grid(frame, y_ticks), *_below(frame, x_ticks)]
    for bar in bars:
        left, right, upper = frame.across(bar.start), frame.across(bar.end), frame.down(bar.height)
        gap = min(1.0, (right - left) / 8)
        height = _TOP + _PLOT_HEIGHT - upper
        if height > 0:
            parts.append(
                tag(
                    "rect",
                    tag("title", bar.label),
                    class_="bar",
                    x=f"{left + gap:.1f}",
                    y=f"{upper:.1f}",
                    width=f"{max(0.5, right - left - 2 * gap):.1f}",
                    height=f"{height:.1f}",
                )
            )
    return _chart(name, parts, title, description)


def _chart(name: str, parts: Sequence[Html], title: str, description: str) -> Html:
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-desc"),
        *parts,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def _grid(frame: _Frame, marks: Sequence[Tick]) -> Iterator[Html]:
    for value, text in marks:
        y = f"{frame.down(value):.1f}"
        yield tag("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y)
        yield tag("text", text, x=_LEFT - 6, y=y, dy="0.32em", text_anchor="end")


def _below(frame: _Frame, marks: Sequence[Tick]) -> Iterator[Html]:
    for value, text in marks:
        x = frame.across(value)
        # A label at an end of the axis may not leave the drawing.
        anchor = "start" if x < _LEFT + 24 else "end" if x > _WIDTH - _RIGHT - 24 else "middle"
        yield tag("text", text, x=f"{x:.1f}", y=_HEIGHT - 8, text_anchor=anchor if len(marks) > 1 else "middle")


def _band(frame: _Frame, run: Sequence[Point]) -> Iterator[Html]:
    """Yield the band of each stretch of points that have one; a point alone gets an upright line."""
    stretch: list[tuple[float, float, float]] = []
    for point in [*run, None]:
        if point is not None and point.low is not None and point.high is not None:
            stretch.append((frame.across(point.x), frame.down(point.low), frame.down(point.high)))
            continue
        if len(stretch) == 1:
            x, low, high = stretch[0]
            yield tag("line", class_="whisker", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=f"{low:.1f}", y2=f"{high:.1f}")
        elif stretch:
            upper = [f"{x:.1f},{high:.1f}" for x, _, high in stretch]
            lower = [f"{x:.1f},{low:.1f}" for x, low, _ in reversed(stretch)]
            yield tag("polygon", class_="band", points=" ".join(upper + lower))
        stretch = []


def _dot(frame: _Frame, point: Point) -> Html:
    x, y = f"{frame.across(point.x):.1f}", f"{frame.down(point.y):.1f}"
    return tag("circle", tag("title", point.label), class_="dot", cx=x, cy=y, r=2.5)


def _share(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5
