"""HTML as text, with one rule: what is not `Html` already is escaped, here and nowhere else; and the pages' style."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence

# Control characters and half characters: a page cannot hold them, or a terminal or editor would obey them.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_EMPTY = {"link", "meta"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


class Html(str):
    """Text that is markup already. Only `tag`, `together` and the page's constants make it."""

    __slots__ = ()


def escape(text: str) -> Html:
    r"""Return the text so that it stands for itself, in an element or in an attribute.

    Example:
        >>> escape("<b title='x'>\x00&")
        '&lt;b title=&#x27;x&#x27;&gt;\ufffd&amp;'
    """
    if isinstance(text, Html):
        return text
    return Html(html.escape(_UNSHOWABLE.sub("\ufffd", text), quote=True))


def together(parts: Iterable[str]) -> Html:
    """Return the parts one behind the other, escaped where they are text."""
    return Html("".join(map(escape, parts)))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Html:
    """Return an element. Attributes that are None are left out; `class_` and `aria_label` lose or change their `_`.

    Example:
        >>> tag("p", "1 < 2", tag("b", "!"), class_="note", hidden=None)
        '<p class="note">1 &lt; 2<b>!</b></p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value if isinstance(value, str) else f"{value:g}")}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>" if name in _EMPTY else f"<{name}{written}>{together(children)}</{name}>")


def foreign(text: str, length: int | None = None) -> Html:
    """Return text from outside for a line of ours: its direction and its overrides end where it ends."""
    return tag("bdi", text if length is None else cut(text, length))


def cut(text: str, length: int) -> str:
    """Return the text, or its beginning with an ellipsis where it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def soft(*children: str) -> Html:
    """Return a paragraph in small print."""
    return tag("p", *children, class_="soft")


def card(title: str, *children: str) -> Html:
    """Return a section with a heading."""
    return tag("section", tag("h2", title), *children, class_="card")


def folded(title: str, content: Html) -> Html:
    """Return content that is shown when it is opened."""
    return tag("details", tag("summary", title, class_="soft"), content)


def figures(triples: Iterable[tuple[str, str, str]]) -> Html:
    """Return figures under their names: (name, figure, small print)."""
    return tag(
        "dl",
        together(
            tag("div", tag("dt", name), tag("dd", figure, tag("small", f" {small}" if small else "")))
            for name, figure, small in triples
        ),
        class_="figures",
    )


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> Html:
    """Return a table that scrolls where it is too wide. The last `numbers` columns hold numbers."""
    kinds = ["text"] * (len(head) - numbers) + ["number"] * numbers
    top = together(tag("th", name, scope="col", class_=kind) for name, kind in zip(head, kinds, strict=True))
    body = together(
        tag("tr", together(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows
    )
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", top)), tag("tbody", body))
    return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)


def document(title: str, *parts: Html, script: str | None = None, data: object = None) -> str:
    """Return a whole HTML file, with the style of all our pages.

    Args:
        title: The page's title.
        *parts: What it shows. Without scripts, that is all it shows.
        script: A script of ours. The page's policy names its digest, so no other script runs, and nothing is loaded.
        data: What the script reads, as JSON: `JSON.parse(document.getElementById("data").textContent)`.
    """
    policy, scripts = _POLICY, Html("")
    if script is not None:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"{_POLICY}; script-src 'sha256-{digest}'"
        # Within a script element nothing is unescaped; "<" alone could end it.
        written = _UNSHOWABLE.sub("\ufffd", json.dumps(data, ensure_ascii=False)).replace("<", "\\u003c")
        scripts = Html(f'<script type="application/json" id="data">{written}</script><script>{script}</script>')
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", _STYLE),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('main', *parts), scripts), lang='en')}\n"


# Light and dark by what the reader's system says, narrow screens, paper.
_STYLE = Html("""
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --text: #1f2428; --soft: #5c656e; --rule: #e2e3df;
  --tone: #22717a; --band: #22717a2b; --bar: #5f9fa6; --mark: #fdeac4; --cost: #9a5300;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --card: #1b1f23; --text: #e3e6e8; --soft: #9ca5ad; --rule: #30363c;
    --tone: #74c3ca; --band: #74c3ca30; --bar: #4a8f96; --mark: #4b3510; --cost: #e7ad63;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 68rem; padding: 2rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; margin: 0; }
h2 { font-size: 1.2rem; margin: 0 0 .25rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
h4 { font-size: .95rem; margin: 0 0 .25rem; color: var(--soft); font-weight: 600; }
p { margin: .25rem 0; }
a { color: var(--tone); }
.soft { color: var(--soft); font-size: .9rem; }
.card {
  margin-top: 1.25rem; padding: 1.25rem; background: var(--card); border: 1px solid var(--rule); border-radius: .6rem;
}
.figures { display: flex; flex-wrap: wrap; gap: .25rem 2rem; margin: .75rem 0; }
.figures > div { min-width: 6rem; }
.figures dt { color: var(--soft); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.figures dd small { font-size: .85rem; color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem 1.5rem; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: .9rem; font-weight: 600; }
figcaption small { color: var(--soft); font-weight: 400; font-size: .85rem; }
svg { display: block; width: 100%; max-width: 34rem; height: auto; }
svg text { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums; }
.grid { stroke: var(--rule); }
.whisker { stroke: var(--band); stroke-width: 2.5; }
.line { fill: none; stroke: var(--tone); stroke-width: 1.75; stroke-linejoin: round; }
.dot { fill: var(--tone); }
.bar { fill: var(--bar); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: start; color: var(--soft); padding-bottom: .25rem; }
th, td { padding: .3rem 1.25rem .3rem 0; text-align: start; vertical-align: top; border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; overflow-wrap: normal; }
tbody th { font-weight: 400; }
td.number, th.number { text-align: end; white-space: nowrap; overflow-wrap: normal; }
time { white-space: nowrap; }
td.text { overflow-wrap: break-word; max-width: 30rem; }
summary { cursor: pointer; padding: .3rem 0; }
details.low { border-top: 1px solid var(--rule); }
details.low[open] { padding-bottom: 1rem; }
details.low > summary .soft { margin-inline-start: .5rem; }
details.low > summary b { font-variant-numeric: tabular-nums; margin-inline-end: .75rem; }
ul.items { margin: .5rem 0; padding-inline-start: 1.2rem; }
ul.items li { margin: .25rem 0; }
.word { color: var(--cost); font-weight: 600; }
.word.plain { color: inherit; }
.text { white-space: pre-wrap; }
.passage { margin: .75rem 0 0; }
.passage > .text {
  max-height: 18rem; overflow-y: auto; padding: .5rem .75rem; border-inline-start: 3px solid var(--rule);
  font-size: .95rem;
}
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: .5rem 1.5rem; }
.sides > div { min-width: 0; }
mark { background: var(--mark); color: inherit; border-bottom: 1.5px solid var(--cost); }
:focus-visible { outline: 2px solid var(--tone); outline-offset: 2px; }
@media (max-width: 30rem) { body { padding: 1rem .5rem 2rem; } .card { padding: .9rem; } svg text { font-size: 13px; } }
@media print {
  :root { --page: #fff; --card: #fff; --text: #000; --soft: #444; --rule: #bbb; }
  body { max-width: none; padding: 0; }
  .card { border: 0; padding: 0; }
  .passage > .text { max-height: none; }
  figure, tr, li { break-inside: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
""")
