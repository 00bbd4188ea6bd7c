"""A page as one file: JSON, and the script of its view. It loads nothing, and runs no script but ours."""

import base64
import gzip
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal

# Control characters and halves of UTF-16 pairs: a page cannot hold them, or a terminal or editor would obey them.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# A level of gzip: 6 takes three times as long for 8 % less.
_LEVEL = 4


@cache
def _asset(name: str) -> str:
    return files("ragstone.page").joinpath(name).read_text("utf-8")


def showable(text: str) -> str:
    """The text with U+FFFD for each character that a page cannot hold."""
    return _UNSHOWABLE.sub("\ufffd", text)


def html_page(view: Literal["report", "labels"], title: str, data: object, rows: str = "") -> str:
    r"""A whole HTML file that shows data.

    Its policy names the digest of the script, which is what all views share and the view's own, joined. So no other
    script runs, and nothing is loaded.

    Args:
        view: What shows the data.
        title: The page's title.
        data: What the view reads: what becomes JSON.
        rows: JSON that the view reads later. It is packed by gzip, which every browser unpacks without a server: the
            texts alone of 10,000 rows may be 20 MB.

    Example:
        >>> html = html_page("report", "<b>", {"title": "a.jsonl"})
        >>> "<title>&lt;b&gt;</title>" in html, '{"title":"a.jsonl"}' in html
        (True, True)
    """
    script = _asset("shared.js") + _asset(f"{view}.js")
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = gzip.compress(rows.encode("utf-8", "replace"), _LEVEL, mtime=0)
    return Template(_asset("page.html")).substitute(
        title=html.escape(showable(title)),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=_asset("page.css"),
        script=script,
        # Within a script element nothing is unescaped; "<" alone could end it.
        data=showable(text).replace("<", "\\u003c"),
        rows=base64.b64encode(packed).decode(),
    )
