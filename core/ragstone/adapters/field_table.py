"""The table of fields that a person looks at: where each came from, or what could be meant, and how it begins."""

from collections.abc import Iterator, Sequence

from ragstone.adapters.guesses import Candidate, guess
from ragstone.plain import is_list, printable

_LONGEST_NAME = 40
_LONGEST_BEGINNING = 160
_SHORTEST_BEGINNING = 16
_MOST_UNREAD = 20

FieldLine = tuple[str, str, str, str]
"""A field, a mark, a name, and the beginning of the value."""


def field_lines(field: str, source: str | None, value: object, found: Sequence[Candidate]) -> Iterator[FieldLine]:
    """Yield the lines of a field: with "<-" where it came from, with "or" and "?" what could be meant.

    Example:
        >>> list(field_lines("response", None, None, [Candidate("told", "Jane Austen."), Candidate("said", "Hm.")]))
        [('response', '?', 'told', 'Jane Austen.'), ('', 'or', 'said', 'Hm.')]
    """
    if source is not None:
        yield field, "<-", source, beginning(value)
        yield from [("", "or", each.name, beginning(each.value)) for each in found]
        return
    if not found:
        yield field, "", "missing", ""
    chosen = guess(found)
    for each in found:
        yield field, "?" if chosen in (None, each) else "or", each.name, beginning(each.value)
        field = ""


def field_table(lines: Sequence[FieldLine], unread: Sequence[str], width: int) -> list[str]:
    r"""The lines of the table, and one of what was not read.

    Example:
        >>> print(*field_table([("response", "<-", "answer", "Jane Austen.")], ["k"], 80), sep="\n")
          response            <-  answer  Jane Austen.
          not read: k
    """
    names = [printable(name, _LONGEST_NAME) for _, _, name, _ in lines]
    wide = max(map(len, names), default=0)
    table: list[str] = []
    for (label, mark, _, begins), name in zip(lines, names, strict=True):
        head = f"  {label:18}  {mark:2}  {name:{wide}}  "
        table.append(f"{head}{printable(begins, max(width - len(head), _SHORTEST_BEGINNING))}".rstrip())
    if unread:
        more = f" and {len(unread) - _MOST_UNREAD} more" if len(unread) > _MOST_UNREAD else ""
        listed = [printable(name, _LONGEST_NAME) for name in unread[:_MOST_UNREAD]]
        table.append(f"  not read: {', '.join(listed)}{more}")
    return table


def beginning(value: object, item: str = "text") -> str:
    """How a text begins, or how many there are and how the first begins.

    Example:
        >>> beginning(["Emma is a novel.", "It rains."])
        '2 texts: Emma is a novel.'
    """
    if not is_list(value):
        return "" if value is None else printable(value, _LONGEST_BEGINNING)
    count = f"{len(value)} {item}{'' if len(value) == 1 else 's'}"
    return f"{count}: {printable(value[0], _LONGEST_BEGINNING)}" if value else count
