"""HTML as text, with one rule: what is not `Html` already is escaped, here and nowhere else."""

import html
import re
from collections.abc import Iterable

# What a page cannot hold or a terminal or editor would obey: control characters and half characters.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_EMPTY = {"link", "meta"}


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
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value if isinstance(value, str) else f"{value:g}")}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>" if name in _EMPTY else f"<{name}{given}>{together(children)}</{name}>")


def foreign(text: str) -> Html:
    """Return text from outside for a line of ours: its direction and its overrides end where it ends."""
    return tag("bdi", text)


def cut(text: str, length: int) -> str:
    """Return the text, or its beginning with an ellipsis where it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
