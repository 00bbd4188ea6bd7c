"""Charts as inline SVG: pure functions from numbers to markup. Colours and fonts are the page's style."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from ragstone.page.markup import Html, folded, html_table, tag
from ragstone.report.statistics import DAY, HOUR, MINUTE, Bin, Mean, Timeline, bucket_start
from ragstone.report.tables import DASH, INTERVAL, interval, moment, number, percent

_WIDTH, _HEIGHT = 460, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 12, 28
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

Tick = tuple[float, str]
Ends = tuple[float, float]


class _Frame(NamedTuple):
    """Where values are on the drawing."""

    x: Ends
    y: Ends

    def across(self, x: float) -> float:
        return _LEFT + _PLOT_WIDTH * _share(x, *self.x)

    def down(self, y: float) -> float:
        return _TOP + _PLOT_HEIGHT * (1 - _share(y, *self.y))

    def bar(self, start: float, end: float, height: float, label: str) -> Html:
        """Return a bar over [start, end) that says something when pointed at; one without a height is not seen."""
        left, right, upper = self.across(start), self.across(end), self.down(height)
        gap = min(1.0, (right - left) / 8)
        place = {"x": f"{left + gap:.1f}", "y": f"{upper:.1f}", "height": f"{_TOP + _PLOT_HEIGHT - upper:.1f}"}
        width = f"{max(0.5, right - left - 2 * gap):.1f}"
        return tag("rect", tag("title", label), class_="bar", width=width, **place)


def _share(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def distribution(bins: Sequence[Bin], name: str, small: str) -> Html:
    """Return a chart of how scores spread, with its table. `name` is the chart's, which no other of the page has."""
    caption, most = "Distribution of scores", max(bins, key=lambda each: each.share)
    frame = _Frame((bins[0].low, bins[-1].high), (0.0, round_up(most.share)))
    chart = _chart(
        f"{name}-spread",
        frame,
        [frame.bar(b.low, b.high, b.share, f"{_range(b)}: {percent(b.share)}, {b.n:,} scores") for b in bins],
        ticks(frame.x, "{:g}".format),
        ticks(frame.y, lambda share: f"{100 * share:.3g} %", 2),
        caption,
        f"Most, {percent(most.share)}, are within {_range(most)}; the table below has all.",
    )
    rows = [(_range(b), f"{b.n:,}", percent(b.share)) for b in bins if b.n]
    return _figure(caption, small, chart, ("score", "how many", "share"), rows)


def _range(each: Bin) -> str:
    return f"{each.low:.4g} {DASH} {each.high:.4g}"


def means_over_time(line: Timeline[Mean], bounds: Ends | None, name: str, period: Ends, y: Ends) -> Html:
    """Return a chart of the mean over a period with its intervals, and its table; `y`: the ends of the axis upwards."""
    width, unit = line.width, stretch(line.width)
    series = [(start, e) for start, mean in sorted(line.buckets.items()) if (e := mean.estimate(bounds)) is not None]
    frame = _Frame((float(bucket_start(period[0], width)), float(bucket_start(period[1], width) + width)), y)
    parts: list[Html] = []
    runs: list[list[str]] = []
    before = -math.inf
    for start, e in series:
        x, at = f"{frame.across(start + width / 2):.1f}", f"{frame.down(e.mean):.1f}"  # in the middle of its stretch
        if start - before > width:
            runs.append([])  # nothing was scored in between: no line there
        before = start
        runs[-1].append(f"{x},{at}")
        if e.low is not None and e.high is not None:
            ends = f"{frame.down(e.low):.1f}", f"{frame.down(e.high):.1f}"
            parts.append(tag("line", class_="whisker", x1=x, x2=x, y1=ends[0], y2=ends[1]))
        label = f"{short_moment(start, width)}: {e.mean:.3f} of {e.n:,}, {INTERVAL} {interval(e.low, e.high, of=e.n)}"
        parts.append(tag("circle", tag("title", label), class_="dot", cx=x, cy=at, r=2.5))
    parts += [tag("polyline", class_="line", points=" ".join(run)) for run in runs]
    least, greatest = min(e.mean for _, e in series), max(e.mean for _, e in series)
    chart = _chart(
        f"{name}-time",
        frame,
        parts,
        time_ticks(frame.x, width),
        ticks(y, "{:g}".format),
        f"Mean score per {unit}",
        f"{len(series)} points from {least:.3f} to {greatest:.3f}; the table below has them all.",
    )
    rows = [
        (tag("time", moment(start)), number(e.mean), interval(e.low, e.high, of=e.n), f"{e.n:,}") for start, e in series
    ]
    head = ("from", "mean", INTERVAL, "scored")
    return _figure(f"Mean score per {unit} (UTC)", f"with its {INTERVAL}", chart, head, rows)


def calls_over_time(calls: Sequence[tuple[int, int]], width: int) -> Html:
    """Return a chart of judge calls by when each stretch of time begins."""
    most = max(n for _, n in calls)
    x = float(min(start for start, _ in calls)), float(max(start for start, _ in calls) + width)
    frame = _Frame(x, (0.0, round_up(max(2, most))))
    return _chart(
        "cost",
        frame,
        [frame.bar(start, start + width, n, f"{short_moment(start, width)}: {n:,} calls") for start, n in calls],
        time_ticks(x, width),
        ticks(frame.y, "{:,.0f}".format, 2),
        "Judge calls",
        f"At most {most:,}; the table below has them all.",
    )


def intervals(rows: Sequence[tuple[str, float, float | None, float | None]], x: Ends, name: str, caption: str) -> Html:
    """Return a picture of estimates below each other, each a name, a mean and its interval, with their table."""
    top, step = 16, 34
    height = top + step * len(rows) + 18
    frame = _Frame(x, (0.0, 1.0))
    parts: list[Html] = []
    for value, text in ticks(x, "{:g}".format):
        at = f"{frame.across(value):.1f}"
        parts.append(tag("line", class_="grid", x1=at, x2=at, y1=4, y2=height - 18))
        parts.append(tag("text", text, x=at, y=height - 4, text_anchor="middle"))
    for i, (label, mean, low, high) in enumerate(rows):
        y, middle = top + step * i, f"{frame.across(mean):.1f}"
        kind = " first" if i == 0 else ""
        parts.append(tag("text", f"{label} {number(mean)}", class_=f"name{kind}", x=_LEFT, y=y))
        if low is not None and high is not None:
            ends = {"x1": f"{frame.across(low):.1f}", "x2": f"{frame.across(high):.1f}"}
            parts.append(tag("line", class_=f"reach{kind}", y1=y + 10, y2=y + 10, **ends))
        parts.append(tag("circle", class_=f"dot{kind}", cx=middle, cy=y + 10, r=4))
    words = "; ".join(f"{label}: {number(mean)}, {INTERVAL} {interval(low, high)}" for label, mean, low, high in rows)
    head = (tag("title", caption, id=f"{name}-title"), tag("desc", words, id=f"{name}-desc"))
    box = {"viewBox": f"0 0 {_WIDTH} {height}", "aria_labelledby": f"{name}-title {name}-desc"}
    chart = tag("svg", *head, *parts, role="img", class_="intervals", **box)
    cells = [(label, number(mean), interval(low, high)) for label, mean, low, high in rows]
    return _figure(caption, f"with {INTERVAL}", chart, ("by", "mean", INTERVAL), cells)


def _figure(caption: str, small: str, chart: Html, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    table = html_table(caption, head, rows, numbers=len(head) - 1)
    return tag("figure", tag("figcaption", caption, tag("small", f" {small}")), chart, folded("As a table", table))


def _chart(
    name: str,
    frame: _Frame,
    parts: Sequence[Html],
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    title: str,
    description: str,
) -> Html:
    """Return what is drawn with its axes, and with words for those who do not see it."""
    axes: list[Html] = []
    for value, text in y_ticks:
        y = f"{frame.down(value):.1f}"
        axes.append(tag("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y))
        axes.append(tag("text", text, x=_LEFT - 6, y=y, dy="0.32em", text_anchor="end"))
    for value, text in x_ticks:
        x = frame.across(value)
        # A label at an end of the axis may not leave the drawing.
        anchor = "start" if x < _LEFT + 24 else "end" if x > _WIDTH - _RIGHT - 24 else "middle"
        anchor = anchor if len(x_ticks) > 1 else "middle"
        axes.append(tag("text", text, x=f"{x:.1f}", y=_HEIGHT - 8, text_anchor=anchor))
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-desc"),
        *axes,
        *parts,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def ticks(ends: Ends, form: Callable[[float], str], parts: int = 4) -> list[Tick]:
    """Return the ends of an axis and what divides it evenly."""
    low, high = ends
    return [(value, form(value)) for value in (low + (high - low) * i / parts for i in range(parts + 1))]


def round_up(value: float) -> float:
    """Return the least round number, with one digit that halves well, that is not below a positive value."""
    step = 10.0 ** math.floor(math.log10(value))
    return next(digit * step for digit in (1, 2, 4, 6, 8, 10) if digit * step >= value * (1 - 1e-9))


def stretch(width: int) -> str:
    """Return the name of a width: minute, hour, day or week."""
    return {MINUTE: "minute", HOUR: "hour", DAY: "day"}.get(width, "week")


def short_moment(at: float, width: int) -> str:
    """Return when a stretch of time of a width begins, as short as its axis allows."""
    time = datetime.fromtimestamp(at, timezone.utc)
    day = f"{time.day} {_MONTHS[time.month - 1]}"
    return f"{day} {time:%H:%M}" if width <= HOUR else day if width == DAY else f"{day} {time.year}"


def time_ticks(ends: Ends, width: int) -> list[Tick]:
    """Return where on an axis of time to write which time: few enough that they do not touch."""
    start, end = ends
    if width == HOUR and end - start > 2 * DAY:  # written as days
        width, start = DAY, float(bucket_start(start - 1, DAY) + DAY)
    every = -(-max(1, round((end - start) / width)) // (3 if width <= HOUR else 4)) * width
    return [(at, short_moment(at, width)) for i in range(5) if (at := start + i * every) < end]
