"""English that needs no rules: where every sentence ends is plain from its characters.

Most prose is like that, and pysbd spends a millisecond per paragraph to say so. A text is easy when none of
pysbd's rules can apply to it: known characters only, every period after a word that is no abbreviation or
inside a number, brackets and quotes in pairs with no period in them and not in front of a sentence. Whatever
is not certain is not easy. The tests hold this against pysbd itself.
"""

import re
from collections.abc import Set as AbstractSet

_LETTERS = "A-Za-zÀ-ÖØ-öø-ÿ"

# Every alternative begins with a character, not an assertion: that makes the search several times faster.
_HARD = re.compile(
    rf"[^{_LETTERS}0-9 \n,;:.?!'\u2019()\"“”\u2013\u2014%$€£&/+=*#@<>|-]"  # a character not thought about
    rf"|'(?:(?<![{_LETTERS}]')|(?![{_LETTERS}]))"  # a quote rather than an apostrophe
    r"|-[-\"”]|\"\""
    r"|![ \n]+[a-z]|!(?:(?<=Yahoo!)|(?<=Yum!))"  # not the end of a sentence to pysbd
    # A mark that neither ends a word or long number in front of white space, nor is a decimal point. Short
    # numbers may be those of a list.
    rf"|[.?!](?!(?:(?<=[{_LETTERS})\"”].)|(?<=\d\d\d.))(?:[ \n]|\Z)|(?<=\d\.)\d)"
    r"|[\n.?!][ \n]*[(\"“]"  # a sentence that begins with a bracket or a quote
    r"|\)(?:(?<=[^A-Za-z][a-z]\))|(?<=[ivx][ivx]\)))"  # a list: a) b) ii)
)
_PAIRS = re.compile(r"\([^()\n.?!]*\)|“[^“”\n.?!]+”|\"[^\"\n.?!]+\"")
_NUMBER_IN_BRACKET = re.compile(r"\d\)")
_WORD = re.compile(r"(?<![A-Za-z])([A-Za-z]+)\.")
_BREAK = re.compile(r"(?:[.?!](?=[ \n])|\n)[ \n]*")


def easy_starts(text: str, abbreviations: AbstractSet[str]) -> list[int] | None:
    """Return where the sentences of an easy English text begin, or None when pysbd must be asked.

    The first sentence, which begins with the text, is not among them.

    Args:
        text: The text; it begins with a character that is not white space.
        abbreviations: pysbd's abbreviations in lower case.
    """
    if text[0] in '("“' or _HARD.search(text) or not _pairs_are_easy(text):
        return None
    if any(len(word) == 1 or word.lower() in abbreviations for word in _WORD.findall(text)):
        return None
    size = len(text)
    return [end for found in _BREAK.finditer(text) if (end := found.end()) < size]


def _pairs_are_easy(text: str) -> bool:
    brackets = "(" in text or ")" in text
    quotes = '"' in text or "“" in text or "”" in text
    if not brackets and not quotes:
        return True
    if brackets and (quotes or len(_NUMBER_IN_BRACKET.findall(text)) > 1):
        return False  # numbers in front of brackets may be those of a list
    rest = _PAIRS.sub("", text)
    return not any(mark in rest for mark in '()"“”')
