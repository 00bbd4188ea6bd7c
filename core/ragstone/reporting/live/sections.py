"""The sections of a page about scores: one group's figures, charts, lowest scores and failures."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.reporting.live.facts import Bin, Bucket, Group
from ragstone.reporting.live.figures import DAY, HOUR, bucket_start, round_up, ticks
from ragstone.reporting.live.markup import Html, cut, foreign, tag, together
from ragstone.reporting.live.pieces import (
    DASH,
    figures,
    interval,
    low_score,
    moment,
    percent,
    short_moment,
    stretch,
    table,
    when,
)
from ragstone.reporting.live.svg import Bar, Point, Tick, bar_chart, line_chart

_INTERVAL = "95 % interval"
_BANDS = (
    "Intervals, and the bands in the charts, are 95 % confidence intervals of the mean by Student's t. One score has "
    "none; scores that are all the same have one of no width."
)
_WEIGHTS = (
    "Samples had different chances to be chosen (rules choose all of theirs), so each weighs 1 / its chance where it "
    "says “weighted”: such means, and all shares, are those of the whole traffic, not of the chosen samples."
)


@dataclass(frozen=True, slots=True)
class Words:
    """What a group's section says of its samples, by where they come from.

    Attributes:
        share: What shares are of.
        unscored: What is counted as unscored.
        example: Which sample stands for all that are unscored for one reason.
        lowest: The heading of the samples that are shown with what cost their score.
        no_texts: What is said where their texts are not at hand.
    """

    share: str = "by share of the traffic"
    unscored: str = "samples"
    example: str = "latest sample"
    lowest: str = "Lowest scores"
    no_texts: str = (
        "The texts are not stored: Monitor(..., store_text=True) keeps those of later samples, to be shown here."
    )


LIVE = Words()


def overview(groups: Sequence[Group]) -> Html:
    """Return all groups in one table, each with a link to its section."""
    rows = [
        (
            tag("a", foreign(group.metric), href=f"#group-{i}"),
            foreign(group.version),
            foreign(cut(group.judge, 80)),
            DASH if group.estimate is None else f"{group.estimate.mean:.3f}",
            interval(group.estimate),
            f"{group.scored:,}",
            f"{group.unscored:,}",
        )
        for i, group in enumerate(groups)
    ]
    head = ("metric", "version", "judge", "mean", _INTERVAL, "scored", "unscored")
    notes = [
        tag("p", said, class_="soft") for said in (_BANDS, _WEIGHTS if any(g.weighted for g in groups) else "") if said
    ]
    return card("Scores", table("Mean score by metric, version and judge", head, rows, numbers=4), *notes)


def metric_sections(groups: Sequence[Group], width: int, ends: tuple[float, float]) -> Html:
    """Return a section for each metric, with what must not be averaged together apart.

    Args:
        groups: Those of one metric stand together.
        width: How many seconds a bucket of their series spans.
        ends: The ends of the axis of time, the same for all.
    """
    parts: list[Html] = []
    start = 0
    while start < len(groups):
        metric = groups[start].metric
        end = next((i for i in range(start, len(groups)) if groups[i].metric != metric), len(groups))
        inner = [group_section(groups[i], f"group-{i}", width, ends) for i in range(start, end)]
        several = (
            f"{end - start} different versions or judges scored these samples. Their scores are not comparable and "
            "are never averaged together; the newest stands first."
        )
        note = tag("p", several, class_="soft") if end - start > 1 else ""
        parts.append(card(foreign(metric), note, *inner))
        start = end
    return together(parts)


def group_section(
    group: Group, name: str, width: int = HOUR, ends: tuple[float, float] = (0.0, 0.0), words: Words = LIVE
) -> Html:
    """Return the section of what may be averaged together."""
    when = f", {moment(group.first)} to {moment(group.last)} UTC" if group.first is not None else ""
    parts = [
        tag("p", "Version ", foreign(group.version), ", judge ", foreign(cut(group.judge, 200)), when, class_="soft"),
        _figures(group),
    ]
    reasons = _reasons(group, words)
    if group.scored:
        charts = [_over_time(group, name, width, ends)] if group.series else []
        charts.append(distribution(group.distribution, group.axis, name, small=words.share))
        if not group.series:  # there is room for it beside the only chart
            charts, reasons = [*charts, *(tag("div", reason) for reason in reasons)], []
        parts += [tag("div", *charts, class_="charts"), *_lowest(group, words)]
    return tag("div", *parts, *reasons, id=name, class_="group")


def _reasons(group: Group, words: Words) -> list[Html]:
    if not group.reasons:
        return []
    rows = [
        (foreign(r.reason), foreign(cut(r.sample_id, 80)), foreign(r.detail), f"{r.count:,}") for r in group.reasons
    ]
    head = ("reason", words.example, "what it says", words.unscored)
    found = table("Samples without a score, by reason", head, rows, numbers=1)
    return [together([tag("h3", "Unscored"), found])]


def card(title: str, *children: str) -> Html:
    """Return a section with a heading."""
    return tag("section", tag("h2", title), *children, class_="card")


def _figures(group: Group) -> Html:
    if group.estimate is None:
        found = [("mean", DASH, "nothing was scored")]
    else:
        range_ = interval(group.estimate)
        found = [("weighted mean" if group.weighted else "mean", f"{group.estimate.mean:.3f}", "")]
        found.append((_INTERVAL, range_, "" if range_ != DASH else "needs two scores"))
    found += [("scored", f"{group.scored:,}", ""), ("unscored", f"{group.unscored:,}", "")]
    if group.passed is not None:
        found.append(("reached the threshold", percent(group.passed), ""))
    return figures([*found, *group.more])


def _over_time(group: Group, name: str, width: int, ends: tuple[float, float]) -> Html:
    unit = stretch(width)
    # A point stands in the middle of its stretch of time.
    span = ends[0], ends[1] + width
    runs: list[list[Point]] = []
    for before, bucket in zip((None, *group.series), group.series, strict=False):
        if before is None or bucket.starts_at - before.starts_at > width:
            runs.append([])  # nothing was scored in between: no line there
        runs[-1].append(_point(bucket, width))
    least, greatest = (pick(b.estimate.mean for b in group.series) for pick in (min, max))
    chart = line_chart(
        f"{name}-time",
        runs,
        x=span,
        y=group.axis,
        x_ticks=time_ticks(span, width),
        title=f"Mean score per {unit}",
        description=f"{len(group.series)} points from {least:.3f} to {greatest:.3f}; the table below has them all.",
    )
    rows = [
        (when(b.starts_at), f"{b.estimate.mean:.3f}", interval(b.estimate), f"{b.estimate.n:,}") for b in group.series
    ]
    caption = f"Mean score per {unit} (UTC)"
    return tag(
        "figure",
        tag("figcaption", caption, tag("small", f" with its {_INTERVAL}")),
        chart,
        folded("As a table", table(caption, ("from", "mean", _INTERVAL, "scored"), rows, numbers=3)),
    )


def _point(bucket: Bucket, width: int) -> Point:
    e = bucket.estimate
    label = f"{short_moment(bucket.starts_at, width)}: {e.mean:.3f} of {e.n:,}, {_INTERVAL} {interval(e)}"
    return Point(bucket.starts_at + width / 2, e.mean, e.low, e.high, label)


def distribution(
    bins: Sequence[Bin],
    ends: tuple[float, float],
    name: str,
    *,
    caption: str = "Distribution of scores",
    what: str = "score",
    small: str,
) -> Html:
    """Return a chart of how numbers spread, with its table.

    Args:
        bins: How many are where, all over the axis.
        ends: The ends of the axis.
        name: The chart's, which no other of the page has.
        caption: What it shows.
        what: What the numbers are.
        small: What the shares are of.
    """
    most = max(bins, key=lambda b: b.share)
    top = round_up(most.share)
    chart = bar_chart(
        f"{name}-spread",
        [Bar(b.low, b.high, b.share, f"{_range(b)}: {percent(b.share)}, {b.count:,} {what}s") for b in bins],
        x=ends,
        top=top,
        x_ticks=[(value, f"{value:g}") for value in ticks(*ends)],
        y_ticks=[(value, f"{100 * value:.3g} %") for value in ticks(0.0, top, 2)],
        title=caption,
        description=f"Most, {percent(most.share)}, are within {_range(most)}; the table below has all.",
    )
    rows = [(_range(b), f"{b.count:,}", percent(b.share)) for b in bins if b.count]
    return tag(
        "figure",
        tag("figcaption", caption, tag("small", f" {small}")),
        chart,
        folded("As a table", table(caption, (what, "how many", "share"), rows, numbers=2)),
    )


def _range(found: Bin) -> str:
    return f"{found.low:.4g} {DASH} {found.high:.4g}"


def _lowest(group: Group, words: Words) -> list[Html]:
    if not group.lowest:
        return []
    stored = any(low.passages for low in group.lowest)
    marked = "What cost the score is marked in the texts where the verdicts say where it is."
    said = marked if stored else words.no_texts
    return [tag("h3", words.lowest), tag("p", said, class_="soft"), *map(low_score, group.lowest)]


def folded(title: str, content: Html) -> Html:
    """Return what is shown when it is opened."""
    return tag("details", tag("summary", title, class_="soft"), content)


def time_ticks(ends: tuple[float, float], width: int) -> list[Tick]:
    """Return where on an axis of time to write which time: few enough that they do not touch.

    Args:
        ends: The ends of the axis, where stretches of time begin.
        width: How many seconds each of them spans. Hours of more than two days are written as days.
    """
    start, end = ends
    if width == HOUR and end - start > 2 * DAY:
        width, start = DAY, bucket_start(start - 1, DAY) + DAY
    every = -(-max(1, round((end - start) / width)) // (3 if width <= HOUR else 4)) * width
    starts = [start + i * every for i in range(5) if start + i * every < end]
    return [(at, short_moment(at, width)) for at in starts]
