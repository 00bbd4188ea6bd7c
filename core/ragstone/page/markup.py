"""HTML as text, with one rule: what is not `Html` already is escaped, here and nowhere else; and the pages' style."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

# Control characters and half characters: a page cannot hold them, or a terminal or editor would obey them.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_EMPTY = {"link", "meta"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


class Html(str):
    """Text that is markup already. Only `tag`, `together` and the page's constants make it."""

    __slots__ = ()


@cache
def asset(name: str, room: str = "ragstone.page") -> Html:
    """Return a style or a script of ours, from a file beside this one or in another package."""
    return Html(files(room).joinpath(name).read_text("utf-8"))


def escape(text: str) -> Html:
    r"""Return the text so that it stands for itself, in an element or in an attribute.

    Example:
        >>> escape("<b title='x'>\x00&")
        '&lt;b title=&#x27;x&#x27;&gt;\ufffd&amp;'
    """
    if isinstance(text, Html):
        return text
    return Html(html.escape(showable(text), quote=True))


def showable(text: str) -> str:
    """Return the text with U+FFFD for each character that a page cannot hold."""
    return _UNSHOWABLE.sub("\ufffd", text)


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


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> Html:
    """Return a table that scrolls where it is too wide. The last `numbers` columns hold numbers."""
    kinds = ["text"] * (len(head) - numbers) + ["number"] * numbers
    top = together(tag("th", name, scope="col", class_=kind) for name, kind in zip(head, kinds, strict=True))
    body = together(
        tag("tr", together(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows
    )
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", top)), tag("tbody", body))
    return tag("div", inner, class_="scroll", tabindex=0, role="group", aria_label=caption)


def document(title: str, *parts: Html, script: str | None = None, data: object = None) -> str:
    """Return a whole HTML file, with the style of all our pages.

    Args:
        title: The page's title.
        *parts: What it shows. Without scripts, that is all it shows.
        script: A script of ours, which finds in `elements.js` what it shares with others. The page's policy names the
            digest of both, so no other script runs, and nothing is loaded.
        data: What the script reads: JSON, or what becomes JSON.
    """
    policy, scripts = _POLICY, Html("")
    if script is not None:
        script = asset("elements.js") + script
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"{_POLICY}; script-src 'sha256-{digest}'"
        # Within a script element nothing is unescaped; "<" alone could end it.
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        written = showable(text).replace("<", "\\u003c")
        scripts = Html(f'<script type="application/json" id="data">{written}</script><script>{script}</script>')
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", asset("page.css")),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('main', *parts), scripts), lang='en')}\n"
