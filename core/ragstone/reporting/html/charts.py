"""Charts as inline SVG: pure functions from numbers to markup. Colours and fonts are the page's style."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from ragstone.reporting.buckets import DAY, HOUR, MINUTE, Bin, Timeline, bucket_start
from ragstone.reporting.html.markup import Html, folded, html_table, tag
from ragstone.reporting.statistics import Estimate, Mean
from ragstone.reporting.tables import DASH, INTERVAL, interval, moment, number, percent

_WIDTH, _HEIGHT = 460, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 12, 28
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_MOST_DOTS = 100
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

Tick = tuple[float, str]
Ends = tuple[float, float]


class Bar(NamedTuple):
    """A bar over [start, end) of the axis, and what it says when pointed at."""

    start: float
    end: float
    height: float
    label: str


class _Point(NamedTuple):
    x: float
    estimate: Estimate
    label: str


class _Frame(NamedTuple):
    """Where values are on the drawing."""

    x: Ends
    y: Ends

    def across(self, x: float) -> float:
        return _LEFT + _PLOT_WIDTH * _share(x, *self.x)

    def down(self, y: float) -> float:
        return _TOP + _PLOT_HEIGHT * (1 - _share(y, *self.y))


def _share(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def distribution(bins: Sequence[Bin], name: str, *, caption: str, what: str, small: str) -> Html:
    """Return a chart of how numbers spread, with its table.

    Args:
        bins: How many are where, all over the axis.
        name: The chart's, which no other of the page has.
        caption: What it shows.
        what: What the numbers are.
        small: What the shares are of.
    """
    ends = bins[0].low, bins[-1].high
    most = max(bins, key=lambda each: each.share)
    top = round_up(most.share)
    chart = bar_chart(
        f"{name}-spread",
        [Bar(b.low, b.high, b.share, f"{_range(b)}: {percent(b.share)}, {b.n:,} {what}s") for b in bins],
        x=ends,
        top=top,
        x_ticks=[(value, f"{value:g}") for value in ticks(*ends)],
        y_ticks=[(value, f"{100 * value:.3g} %") for value in ticks(0.0, top, 2)],
        title=caption,
        description=f"Most, {percent(most.share)}, are within {_range(most)}; the table below has all.",
    )
    rows = [(_range(b), f"{b.n:,}", percent(b.share)) for b in bins if b.n]
    return _figure(caption, small, chart, (what, "how many", "share"), rows)


def _range(each: Bin) -> str:
    return f"{each.low:.4g} {DASH} {each.high:.4g}"


def means_over_time(line: Timeline[Mean], bounds: Ends | None, name: str, period: Ends, y: Ends) -> Html:
    """Return a chart of the mean over time with its band, and its table.

    Args:
        line: The means.
        bounds: What every mean is within.
        name: The chart's, which no other of the page has.
        period: The first and the last time of the axis.
        y: The ends of the axis upwards.
    """
    width, unit = line.width, stretch(line.width)
    series = [(start, e) for start, mean in sorted(line.buckets.items()) if (e := mean.estimate(bounds)) is not None]
    x = float(bucket_start(period[0], width)), float(bucket_start(period[1], width) + width)
    frame = _Frame(x, y)
    runs: list[list[_Point]] = []
    before = -math.inf
    for start, e in series:
        if start - before > width:
            runs.append([])  # nothing was scored in between: no line there
        before = start
        label = f"{short_moment(start, width)}: {e.mean:.3f} of {e.n:,}, {INTERVAL} {interval(e.low, e.high)}"
        runs[-1].append(_Point(start + width / 2, e, label))  # in the middle of its stretch of time
    parts = [*_grid(frame, [(value, f"{value:g}") for value in ticks(*y)]), *_below(frame, time_ticks(x, width))]
    for run in runs:
        parts += _band(frame, run)
        at = " ".join(f"{frame.across(p.x):.1f},{frame.down(p.estimate.mean):.1f}" for p in run)
        parts.append(tag("polyline", class_="line", points=at))
    if len(series) <= _MOST_DOTS:
        parts += [_dot(frame, point) for run in runs for point in run]
    least, greatest = min(e.mean for _, e in series), max(e.mean for _, e in series)
    description = f"{len(series)} points from {least:.3f} to {greatest:.3f}; the table below has them all."
    chart = _chart(f"{name}-time", parts, f"Mean score per {unit}", description)
    rows = [(tag("time", moment(start)), number(e.mean), interval(e.low, e.high), f"{e.n:,}") for start, e in series]
    caption = f"Mean score per {unit} (UTC)"
    return _figure(caption, f"with its {INTERVAL}", chart, ("from", "mean", INTERVAL, "scored"), rows)


def calls_over_time(calls: Sequence[tuple[int, int]], width: int) -> Html:
    """Return a chart of judge calls by when each stretch of time begins."""
    x = float(min(start for start, _ in calls)), float(max(start for start, _ in calls) + width)
    most = max(n for _, n in calls)
    top = round_up(max(2, most))
    return bar_chart(
        "cost",
        [Bar(start, start + width, n, f"{short_moment(start, width)}: {n:,} calls") for start, n in calls],
        x=x,
        top=top,
        x_ticks=time_ticks(x, width),
        y_ticks=[(value, f"{value:,.0f}") for value in ticks(0.0, top, 2)],
        title="Judge calls",
        description=f"At most {most:,}; the table below has them all.",
    )


def _figure(caption: str, small: str, chart: Html, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    table = html_table(caption, head, rows, numbers=len(head) - 1)
    return tag("figure", tag("figcaption", caption, tag("small", f" {small}")), chart, folded("As a table", table))


def bar_chart(
    name: str,
    bars: Sequence[Bar],
    *,
    x: Ends,
    top: float,
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    title: str,
    description: str,
) -> Html:
    """Return bars that stand on 0.

    Args:
        name: The element's, which no other of the page has.
        bars: The bars.
        x: The ends of the axis across.
        top: The end of the axis upwards.
        x_ticks: Where to write what below the axis.
        y_ticks: Where to write what beside it.
        title: What the chart shows.
        description: What it says, for those who do not see it.
    """
    frame = _Frame(x, (0.0, top))
    parts = [*_grid(frame, y_ticks), *_below(frame, x_ticks)]
    for bar in bars:
        left, right, upper = frame.across(bar.start), frame.across(bar.end), frame.down(bar.height)
        gap, height = min(1.0, (right - left) / 8), _TOP + _PLOT_HEIGHT - upper
        if height > 0:
            place = {"x": f"{left + gap:.1f}", "y": f"{upper:.1f}", "height": f"{height:.1f}"}
            width = f"{max(0.5, right - left - 2 * gap):.1f}"
            parts.append(tag("rect", tag("title", bar.label), class_="bar", width=width, **place))
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


def _band(frame: _Frame, run: Sequence[_Point]) -> Iterator[Html]:
    """Yield the band of each stretch of points that have one; a point alone gets an upright line."""
    stretch: list[tuple[float, float, float]] = []
    for point in [*run, None]:
        if point is not None and point.estimate.low is not None and point.estimate.high is not None:
            stretch.append((frame.across(point.x), frame.down(point.estimate.low), frame.down(point.estimate.high)))
            continue
        if len(stretch) == 1:
            x, low, high = stretch[0]
            yield tag("line", class_="whisker", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=f"{low:.1f}", y2=f"{high:.1f}")
        elif stretch:
            upper = [f"{x:.1f},{high:.1f}" for x, _, high in stretch]
            lower = [f"{x:.1f},{low:.1f}" for x, low, _ in reversed(stretch)]
            yield tag("polygon", class_="band", points=" ".join(upper + lower))
        stretch = []


def _dot(frame: _Frame, point: _Point) -> Html:
    x, y = f"{frame.across(point.x):.1f}", f"{frame.down(point.estimate.mean):.1f}"
    return tag("circle", tag("title", point.label), class_="dot", cx=x, cy=y, r=2.5)


def ticks(low: float, high: float, parts: int = 4) -> list[float]:
    """Return the ends of an axis and what divides it evenly.

    Example:
        >>> ticks(0, 1)
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return [low + (high - low) * i / parts for i in range(parts + 1)]


def round_up(value: float) -> float:
    """Return the least round number, with one digit that halves well, that is not below a positive value.

    Example:
        >>> round_up(0.35), round_up(1.0), round_up(1234)
        (0.4, 1.0, 2000.0)
    """
    step = 10.0 ** math.floor(math.log10(value))
    return next(digit * step for digit in (1, 2, 4, 6, 8, 10) if digit * step >= value * (1 - 1e-9))


def stretch(width: int) -> str:
    """Return the name of a width: minute, hour, day or week."""
    return {MINUTE: "minute", HOUR: "hour", DAY: "day"}.get(width, "week")


def short_moment(at: float, width: int) -> str:
    """Return when a stretch of time of a width begins, as short as its axis allows.

    Example:
        >>> short_moment(0.0, 3_600), short_moment(0.0, 86_400), short_moment(0.0, 604_800)
        ('1 Jan 00:00', '1 Jan', '1 Jan 1970')
    """
    time = datetime.fromtimestamp(at, timezone.utc)
    day = f"{time.day} {_MONTHS[time.month - 1]}"
    return f"{day} {time:%H:%M}" if width <= HOUR else day if width == DAY else f"{day} {time.year}"


def time_ticks(ends: Ends, width: int) -> list[Tick]:
    """Return where on an axis of time to write which time: few enough that they do not touch.

    Args:
        ends: The ends of the axis, where stretches of time begin.
        width: How many seconds each of them spans. Hours of more than two days are written as days.
    """
    start, end = ends
    if width == HOUR and end - start > 2 * DAY:
        width, start = DAY, float(bucket_start(start - 1, DAY) + DAY)
    every = -(-max(1, round((end - start) / width)) // (3 if width <= HOUR else 4)) * width
    return [(at, short_moment(at, width)) for i in range(5) if (at := start + i * every) < end]
