"""Small pieces of a page: numbers and times as text, tables, texts with marks."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from ragstone.reporting.live.facts import Item, Low, Passage
from ragstone.reporting.live.figures import DAY, HOUR, MINUTE, Estimate
from ragstone.reporting.live.markup import Html, cut, foreign, tag, together

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONGEST_ID = 200
DASH = "\u2013"  # between the ends of a range


def moment(at: float | None) -> str:
    """Return a time in UTC, to the minute.

    Example:
        >>> moment(0.0), moment(None)
        ('1970-01-01 00:00', 'unknown')
    """
    return "unknown" if at is None else f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M}"


def when(at: float | None) -> Html:
    """Return a time for a table's cell, which never breaks."""
    return tag("time", moment(at))


def short_moment(at: float, width: int) -> str:
    """Return when a stretch of time of a width begins, as short as its axis allows.

    Example:
        >>> short_moment(0.0, 3_600), short_moment(0.0, 86_400), short_moment(0.0, 604_800)
        ('1 Jan 00:00', '1 Jan', '1 Jan 1970')
    """
    time = datetime.fromtimestamp(at, timezone.utc)
    day = f"{time.day} {_MONTHS[time.month - 1]}"
    return f"{day} {time:%H:%M}" if width <= HOUR else day if width == DAY else f"{day} {time.year}"


def stretch(width: int) -> str:
    """Return the name of a width: minute, hour, day or week."""
    return {MINUTE: "minute", HOUR: "hour", DAY: "day"}.get(width, "week")


def interval(estimate: Estimate | None) -> str:
    """Return a confidence interval; a dash where there is none.

    Example:
        >>> interval(Estimate(3, 0.5, 0.25, 0.75))
        '0.250 – 0.750'
    """
    if estimate is None or estimate.low is None or estimate.high is None:
        return DASH
    return f"{estimate.low:.3f} {DASH} {estimate.high:.3f}"


def percent(share: float) -> str:
    """Return a share as percent.

    Example:
        >>> percent(0.125), percent(0.0001)
        ('12.5 %', '0.0 %')
    """
    return f"{100 * share:.1f} %"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> Html:
    """Return a table that scrolls where it is too wide.

    Args:
        caption: What it holds.
        head: The names of its columns.
        rows: Its cells, text or markup.
        numbers: How many of the last columns are numbers.
    """
    kinds = ["text"] * (len(head) - numbers) + ["number"] * numbers
    top = together(tag("th", name, scope="col", class_=kind) for name, kind in zip(head, kinds, strict=True))
    body = together(
        tag("tr", together(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows
    )
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", top)), tag("tbody", body))
    return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)


def figures(pairs: Iterable[tuple[str, str, str]]) -> Html:
    """Return figures under their names: (name, figure, what is said in small print)."""
    return tag(
        "dl",
        together(
            tag("div", tag("dt", name), tag("dd", figure, tag("small", f" {small}" if small else "")))
            for name, figure, small in pairs
        ),
        class_="figures",
    )


def low_score(found: Low) -> Html:
    """Return one of the lowest scores, to be opened: why, what cost it, and its texts."""
    name = tag("span", foreign(cut(found.sample_id, _LONGEST_ID)))
    head = tag("summary", tag("b", f"{found.value:.3f}"), name, tag("span", foreign(why(found)), class_="soft"))
    return tag("details", head, *evidence(found), class_="low")


def why(found: Low) -> str:
    """Return what a score says of itself, in a line."""
    return "; ".join(
        text for text in ("below its threshold" if found.passed is False else "", found.why or _parts(found)) if text
    )


def _parts(found: Low) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in found.parts)


def evidence(found: Low) -> list[Html]:
    """Return what cost a score, and its texts."""
    at = "" if found.at is None else f"Submitted {moment(found.at)} UTC. "
    lines = [
        tag("p", at, foreign(_parts(found) if found.why else ""), class_="soft"),
        tag("ul", together(map(_item, found.items)), class_="items")
        if found.items
        else tag("p", "No single verdict is known to have lowered it.", class_="soft"),
    ]
    if found.more:
        lines.append(tag("p", f"and {found.more:,} more", class_="soft"))
    lines += map(passage, found.passages)
    if found.left_out:
        lines.append(tag("p", f"{found.left_out:,} further contexts are not shown.", class_="soft"))
    return lines


def _item(item: Item) -> Html:
    word = tag("span", foreign(item.word), class_="word" if item.costs else "word plain")
    text = together([": ", foreign(item.text)]) if item.text else ""
    note = tag("span", f" ({item.note})", class_="soft") if item.note else ""
    return tag("li", foreign(item.name), " ", word, text, note)


def passage(found: Passage) -> Html:
    """Return a text of a sample with the places in it that cost the score marked."""
    shown: list[str] = []
    at = 0
    for start, end in found.marks:
        shown += [found.text[at:start], tag("mark", found.text[start:end])]
        at = end
    shown.append(found.text[at:])
    text = tag("div", *shown, class_="text", dir="auto", tabindex=0, role="region", aria_label=found.name)
    lines = [tag("h4", found.name), text]
    if found.length > len(found.text):
        beyond = f"; {found.beyond:,} marked passages are behind that" if found.beyond else ""
        note = f"Cut after {len(found.text):,} of {found.length:,} characters{beyond}."
        lines.append(tag("p", note, class_="soft"))
    return tag("div", *lines, class_="passage")
