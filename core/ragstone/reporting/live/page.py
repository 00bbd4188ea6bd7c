"""The whole page: one file that loads nothing and runs nothing."""

from ragstone._version import __version__
from ragstone.reporting.live.facts import Findings
from ragstone.reporting.live.figures import bucket_start
from ragstone.reporting.live.markup import Html, foreign, tag
from ragstone.reporting.live.operation import cost_section, queue_section
from ragstone.reporting.live.pieces import moment
from ragstone.reporting.live.sections import card, metric_sections, overview
from ragstone.reporting.live.style import STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(findings: Findings, *, made_at: float) -> str:
    """Return the page as HTML.

    Args:
        findings: What it shows.
        made_at: When it is made, in seconds since 1970 (UTC).
    """
    f = findings
    parts = [tag("h1", "ragstone report"), _head(f, made_at)]
    if f.groups:
        first, last = f.first or 0.0, f.last or 0.0
        ends = bucket_start(first, f.width), bucket_start(last, f.width)
        parts += [overview(f.groups), metric_sections(f.groups, f.width, ends)]
    else:
        nothing = (
            "Nothing was scored yet." if f.since is None else f"Nothing was submitted since {moment(f.since)} UTC."
        )
        parts.append(card("Scores", tag("p", nothing)))
    if f.costs:
        parts.append(cost_section(f.costs, f.cost_width))
    if f.queues:
        parts.append(queue_section(f.queues))
    return document("ragstone report", tag("main", *parts))


def document(title: str, body: Html) -> str:
    """Return a whole HTML file around a body, with the style of all our pages."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", STYLE),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _head(f: Findings, made_at: float) -> Html:
    period = f"samples submitted from {moment(f.first)} to {moment(f.last)}" if f.first is not None else "no samples"
    since = "" if f.since is None else f", none before {moment(f.since)}"
    text = (
        f": {f.outcomes:,} outcomes, {period}{since}. Made {moment(made_at)} by ragstone {__version__}. Times are UTC."
    )
    return tag("p", foreign(f.source), text, class_="soft")
