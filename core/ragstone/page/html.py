"""A page as one file: JSON, and the one viewer that shows it. It loads nothing, and runs no script but ours."""

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from string import Template

# Control characters and half characters: a page cannot hold them, or a terminal or editor would obey them.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


@cache
def _asset(name: str) -> str:
    return files("ragstone.page").joinpath(name).read_text("utf-8")


def showable(text: str) -> str:
    """Return the text with U+FFFD for each character that a page cannot hold."""
    return _UNSHOWABLE.sub("\ufffd", text)


def page(title: str, data: object) -> str:
    r"""Return a whole HTML file that shows data.

    Its policy names the digest of the viewer's script, so no other script runs, and nothing is loaded.

    Args:
        title: The page's title.
        data: What the viewer reads: JSON, or what becomes JSON.

    Example:
        >>> shown = page("<b>", {"view": "report"})
        >>> "<title>&lt;b&gt;</title>" in shown, '{"view":"report"}' in shown
        (True, True)
    """
    script = _asset("viewer.js")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Template(_asset("viewer.html")).substitute(
        title=html.escape(showable(title)),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=_asset("viewer.css"),
        script=script,
        # Within a script element nothing is unescaped; "<" alone could end it.
        data=showable(text).replace("<", "\\u003c"),
    )
