"""Texts of any origin on a terminal and in Markdown, and tables of text."""

import re
from collections.abc import Sequence

from ragstone.plain import printable


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> list[str]:
    """Return the lines of a table, its columns as wide as they need to be.

    Args:
        head: The columns' names.
        rows: Their cells.
        names: How many of the first columns stand at the left; the others are numbers, and stand at the right.

    Example:
        >>> text_table(("metric", "mean"), [("demo", "0.5")])
        ['metric  mean', 'demo     0.5']
    """
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(
            cell.ljust(w) if i < names else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def markdown_code(text: str, width: int = 100) -> str:
    r"""Return the text as code in Markdown, in which nothing is markup, a link or a mention; also in a table's cell.

    Example:
        >>> markdown_code("@team <b>"), markdown_code("a|b")
        ('`@team <b>`', '<code>a&#124;b</code>')
    """
    shown = printable(text, width)
    if shown and not re.search(r"[`|\\]", shown):
        return f"`{shown}`"
    return f"<code>{''.join(c if c.isalnum() or c in ' -' else f'&#{ord(c)};' for c in shown)}</code>"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> list[str]:
    """Return the lines of a table in Markdown. The arguments are those of `text_table`; cells stand as they are.

    Example:
        >>> markdown_table(("metric", "mean"), [("`demo`", "0.5")])
        ['| metric | mean |', '|---|--:|', '| `demo` | 0.5 |']
    """
    sides = "".join("---|" if i < names else "--:|" for i in range(len(head)))
    first, *rest = (f"| {' | '.join(row)} |" for row in (head, *rows))
    return [first, f"|{sides}", *rest]
