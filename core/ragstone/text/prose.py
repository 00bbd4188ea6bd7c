r"""Sentences of plain English prose as pysbd finds them, for a small part of its time; what is odd is left to pysbd.

pysbd looks for lists in the whole text. Then, in each line, a mark (`.?!`) in quotes or brackets does not count, and a
sentence ends at each mark that is left, unless an abbreviation, an initial or a number has it. So what stands between
two ends that no rule reads in another way can be split alone. Only such a stretch is given to pysbd where a mark in it
is odd; a line, where its quotes or its beginning are; and the text, where it may hold a list.
"""
# ruff: noqa: RUF001 - quotes and dashes as they come

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from ragstone.text import _pysbd

# An item of a list. One alone makes no list.
_ITEM = re.compile(
    r"[.)](?:(?<=\s[a-z]\.)|(?<=[\s(][a-z]\))|(?<=[ivx][ivx]\))|(?:(?<=[\s-][0-9]\.)|(?<=[\s-][0-9][0-9]\.))(?![^\s)]))"
)
_ODD_TEXT = (
    # What is not known here. Of letters, those that look like ASCII to re.IGNORECASE, or like a mark to pysbd.
    re.compile(r"[^A-Za-z0-9 \n\r\t\xa0.,;:?!'\"()\[\]%$#@&/+=*<>|~^_`¡-¬®-ÿĀ-įĲ-žƀ-ƿǄ-ʯͰ-ԯ‐-–—‘’‚“”„•…€-]"),
    # A number that may be an item beside one in a bracket.
    re.compile(r"\)(?:(?<=\s[0-9]\))|(?<=\s[0-9][0-9]\)))\s"),
    # A reference at the end of a line.
    re.compile(r"\.(?<=[^0-9\s]\.)[0-9\[][0-9\[\],\s-]*[\n\r]"),
    # Brackets between quotes, where pysbd breaks the line.
    re.compile(r"[\"”]\s\(.*\)\s[\"“]", re.DOTALL),
)
_LINE = re.compile(r"\S[^\n\r]*")
# One set of characters in front makes the search many times faster than alternatives do.
_ODD_LINE = re.compile(
    r"""(?x)[-.?!'‘°\t\xa0](?:
      (?<=[\t\xa0]) | (?<=-)- | (?<=°)\. | (?<=Co\.)\sKG | (?<=Yahoo!) | (?<=Yum!)
    # "etc. I", where the line's end stands for the space behind "I"
    | (?<=\.)\sI$
    # Single quotes around marks, or without an end
    | (?<=\s‘) | (?<=\s') (?!(?:[^'.?!]|'[A-Za-z])*'(?![A-Za-z])) | (?<=')'
    # Quotes and brackets that end with a mark, or are a sentence
    | (?<=[.?!-])(?:'|["“”]\s[A-Z]) | (?<=[.?!])\s+(?:'|(?:\([^)]+\)|"[^"]+"|“[^”]+”)\s[A-Z])
    # References
    | (?<=[^0-9\s]\.)[0-9\[]
    # Words that pysbd takes for "u.s", "e.g" and so on, whose periods stand for any character to it
    | (?<=\s[Uu][^.][Ss]\.) | (?<=\s[Ee][^.][Gg]\.) | (?<=\s[Ii][^.][Ee]\.) | (?<=[Hh].[Dd]\.)
    | (?i:(?<=phil\.)|(?<=philos\.)))"""
)
_SIGN = re.compile(r"[\"()\[\]“”«»]")
_ENCLOSED = re.compile("|".join([rf"\{pair[0]}[^\"()\[\]“”«»]+\{pair[1]}" for pair in ('""', "()", "[]", "“”", "«»")]))
_HIDDEN = str.maketrans('.?!"()[]“”«»', "············")
# Marks that may end a sentence. Those in "3.5", "e.g", "e.g. so", "J. Smith" and "so! he" cannot.
_MARK = re.compile(
    r"([.?!](?!(?<=[A-Za-z]\.)[A-Za-z](?!\.\w)|(?<=[0-9]\.)[^\s.?!]|(?<=\W[A-Za-z]\.[A-Za-z]\.)(?!\s[A-Z])"
    r"|(?<=\s[A-HJ-Z]\.),?\s|(?<=!)\s[a-z])(?:\s*[.?!])*)\s*(?=\S)"
)


@cache
def _abbreviations() -> dict[str, re.Pattern[str]]:
    """The words whose period ends no sentence where the pattern matches behind it."""
    known = _pysbd.load()["en"].Abbreviation
    kinds = dict.fromkeys(known.ABBREVIATIONS, re.compile(r"[.:?,-]|\s(?:[a-z0-9(]|I\s|I'm|I'll)"))
    kinds |= dict.fromkeys(kinds.keys() & known.NUMBER_ABBREVIATIONS, re.compile(r"\s[0-9]|\s+\("))
    return kinds | dict.fromkeys(kinds.keys() & known.PREPOSITIVE_ABBREVIATIONS, re.compile(r"\s|:[0-9]"))


def prose_starts(text: str, ask: Callable[[int, int], Iterable[int]]) -> Iterable[int]:
    """Where the sentences of an English text begin; `ask` says so of odd stretches, which begin and end there."""
    items = {item.string[item.end() - 4 : item.end()] for item in _ITEM.finditer(f" {text}")}
    if len(items) > 1 or any(odd.search(text) for odd in _ODD_TEXT):
        return ask(0, len(text))
    starts: set[int] = set()
    for line in _LINE.finditer(text):
        starts.update(_line_starts(line[0], line.start(), ask))
    return starts


def _line_starts(line: str, at: int, ask: Callable[[int, int], Iterable[int]]) -> Iterator[int]:
    """The starts in a line that begins there."""
    # Marks in quotes and brackets do not count; signs that are left are not plainly pairs.
    masked = _ENCLOSED.sub(lambda enclosed: enclosed[0].translate(_HIDDEN), line)
    if line[0] in ".?!(\"“'‘0123456789" or _ODD_LINE.search(line) or _SIGN.search(masked):
        yield from ask(at, at + len(line))
        return
    begin, odd = 0, False
    yield at
    for mark in _MARK.finditer(masked):
        ends = _ends_sentence(line, *mark.span(1))
        odd = odd or ends is None
        if ends:
            if odd:
                yield from ask(at + begin, at + mark.end(1))
            begin, odd = mark.end(), False
            yield at + begin
    if odd:
        yield from ask(at + begin, at + len(line))


def _ends_sentence(line: str, at: int, after: int) -> bool | None:
    """Whether a sentence ends with a mark, or None where that is not plain."""
    token = line[line.rfind(" ", 0, at) + 1 : at]
    follows = _abbreviations().get(token.lower()) if line[at:after] == "." else None
    if follows and follows.match(line, after):
        # Behind "U.S." a sentence may begin with "I".
        return None if "." in token and line.startswith(" I ", after) else False
    if after - at > 1 or line[after : after + 1] != " ":
        return None
    return line[at] in "?!" or not token or token[-1].isdecimal() or token[-2:-1] not in ("", ".") or None
