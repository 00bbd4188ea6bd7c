"""Texts of any origin on a terminal and in Markdown, and tables of text."""

import html
import re
from collections.abc import Iterable, Sequence

from ragstone.plain import printable

# Characters of a name that stay.
_LEAST = 20


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1, width: int | None = None
) -> list[str]:
    """Return the lines of a table, its columns as wide as they need to be.

    Args:
        head: The columns' names.
        rows: Their cells.
        names: How many of the first columns stand at the left; the others are numbers, and stand at the right.
        width: How wide it should be: names in the first column are cut in their middle, to 20 characters at least.

    Example:
        >>> text_table(("metric", "mean"), [("demo", "0.5")])
        ['metric  mean', 'demo     0.5']
        >>> text_table(("metric", "mean"), [("a name that is longer than that", "0.5")], width=30)[1]
        'a name that …r than that   0.5'
    """
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    if width is not None:
        widths[0] = min(widths[0], max(_LEAST, width - sum(widths[1:]) - 2 * len(widths[1:])))
    return [
        "  ".join(
            _without_middle(cell, w).ljust(w) if i < names else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def _without_middle(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-((most - 1) // 2) :]}"


_RED, _GREEN = "rgba(214,64,52,.28)", "rgba(46,150,88,.22)"


def html_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], remarks: Iterable[str], lowers: Sequence[bool] = ()
) -> str:
    """A table as HTML, for a notebook; it names no colour of text or page, so that it can be read on light and dark.

    Args:
        title: What stands above it.
        head: The columns' names.
        rows: Their cells.
        remarks: What stands below the title, or below the table where rows have no marks.
        lowers: Of rows whose text is to be marked, whether each lowers a score: in red, else in green.

    Example:
        >>> html_table("<b>", (), [], ["No score."])
        '<strong>&lt;b&gt;</strong><div>No score.</div>'
    """
    said = "".join(f"<div>{_escaped(remark)}</div>" for remark in remarks)
    lines = ["".join(f'<th style="text-align:left">{_escaped(name)}</th>' for name in head)]
    for i, row in enumerate(rows):
        colour = f";background:{_RED if lowers[i] else _GREEN}" if lowers else ""
        lines.append("".join(f'<td style="text-align:left{colour}">{_escaped(cell)}</td>' for cell in row))
    table = f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if rows else ""
    return f"<strong>{_escaped(title)}</strong>{said if lowers else ''}{table}{'' if lowers else said}"


def _escaped(text: str) -> str:
    return html.escape(printable(text))


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
