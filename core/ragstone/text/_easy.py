"""English that needs no rules, or few: where its sentences end is plain from what is around each mark.

Most prose is like that, and pysbd spends a millisecond per paragraph to say so. pysbd works in two steps, and so
do the conditions here. First, on the whole text: lists, numbers, references and abbreviations. Then, in each line:
a mark between quotes or brackets does not count, and a sentence ends at a mark that is left, behind the quote or
bracket it began with, and behind a quote that ends with a mark. Where one of pysbd's rules might do anything else,
the text is not easy. The tests hold this against pysbd itself.
"""

import re
from collections.abc import Set as AbstractSet

# Without letters that are more than that to pysbd: some are ASCII ones to re.IGNORECASE, some an exclamation mark.
_UNKNOWN = re.compile(
    r"[^A-Za-z0-9 \n\r\t\xa0.,;:?!'\"()\[\]%$#@&/+=*<>|~^_`¡-¬®-ÿĀ-įĲ-žƀ-ƿǄ-ԯ\u2018\u2019“”\u2013—…€-]"
)
# One set of characters in front makes the search many times faster than alternatives do.
_HARD = re.compile(
    r"[.?!\n\r\"()-](?:(?<=[.?!])\s*[.?!]"  # an ellipsis, or several marks
    r"|(?<=[\n\r])[ \t\xa0]*(?:[.?!']|[0-9]{1,2}\.)"  # a line that begins with a mark, or like a list
    r"|(?<=\.)(?:(?<![A-Za-z0-9_]\.)[A-Za-z_]|(?<![0-9]\.)[0-9]|\[)"  # the name of a file, or a reference
    r"|(?<=\.)(?:[A-Za-z0-9_]\.[A-Za-z0-9_]|[Pp]hil|(?<=°\.)|(?<=Co\.)\sKG)"
    r"|(?<=!)(?:[A-Za-z,]|(?<=Yahoo!)|(?<=Yum!))"
    r"|(?<=[.?!-])'\s[A-Z]|(?<=\")\""
    r"|(?<=[^A-Za-z][a-z]\))|(?<=[ivx][ivx]\))|(?<=\()[ivxlcdm]+\))"  # a list: a) b) ii)
)
_HARD_BEGIN = re.compile(r"[.?!']|[0-9]{1,2}\.|[a-z][.)]|[A-Z]\.,")

# What may be an item of a list: a number or a letter with a period or a bracket. One alone makes no list.
_ITEM = re.compile(r"[.)](?:(?<=(?<![0-9])[0-9][0-9][.)])|(?<=(?<![0-9])[0-9][.)])|(?<=\s[a-z]\.))[\s)]")
# Slanted quotes of single marks, and dashes between which pysbd hides marks: seldom, so pysbd is asked.
_QUOTED = re.compile(r"[ \t\xa0]\u2018|--")
# To pysbd a quote begins within a line, and ends at the first single quote that is not in front of a letter, or
# else at the last one.
_SINGLE = re.compile(r"(?<=[ \t\xa0])'(?:[^'\n\r]|'[A-Za-z])*'")
_SINGLE_END = re.compile(r"'[ \t\xa0]")

_PAIRS = (
    ('"', '"', re.compile(r'"[^"\n\r]+"')),
    ("(", ")", re.compile(r"\([^()\n\r]+\)")),
    ("[", "]", re.compile(r"\[[^\[\]\n\r]+\]")),
    ("“", "”", re.compile(r"“[^“”\n\r]+”")),
)
_HIDDEN = str.maketrans(".?!", "···")
_QUOTE_BRACKET = re.compile(r"[\"”]\s\(")
_BRACKET_QUOTE = re.compile(r"\)\s[\"“]")

_BREAK = re.compile(r"[.?!\n\r]\s*")
_OPENED = re.compile(r"(?:\([^)\n\r]{2,}\)|\"[^\"\n\r]*[^,\"\n\r]\"|“[^”\n\r]*[^,”\n\r]”)[ \t\xa0](?=[A-Z])")
_CLOSED = re.compile(r"[.?!-][\"“”][ \t\xa0](?=[A-Z])")

# pysbd's abbreviations in front of a name, and in front of a number.
_BEFORE_NAME = re.compile(
    "adm|attys|brig|capt|cmdr|col|cpl|det|dr|gen|gov|ing|lt|maj|mr|mrs|ms|mt|messrs|mssrs|prof|ph|rep|reps|rev|sen|"
    "sens|sgt|st|supt|v|vs|fig"
)
_BEFORE_NUMBER = re.compile("art|ext|no|nos|p|pp")
_NAME = re.compile(r"\s|:[0-9]")
_NUMBER = re.compile(r"\s[0-9]|\s+\(")
_MORE = re.compile(r"[.:?,-]|\s(?:[a-z0-9(]|I\s|I'm|I'll)")
_INITIALS = re.compile(r"[(\[\"“'\u2018]?[A-Za-z]\.[A-Za-z]")
_COMMA = re.compile(r",?\s|\Z")
_MAY_END = ("A.M", "P.M", "U.S", "U.K", "E.U", "I.V", "I")
_CAPITAL = re.compile(r"\s[A-Z]")
# What pysbd takes for "u.s", "e.g" and so on: their periods stand for any character to it.
_LOOK_ALIKE = re.compile(r"u.s|e.g|i.e|ph.d|d.phil|dr.phil(?:os)?", re.IGNORECASE)


def easy_starts(text: str, abbreviations: AbstractSet[str]) -> list[int] | None:
    """Return where the sentences of an easy English text begin, or None when pysbd must be asked.

    The first sentence, which begins with the text, is not among them.

    Args:
        text: The text; it begins with a character that is not white space.
        abbreviations: pysbd's abbreviations in lower case.
    """
    if _HARD_BEGIN.match(text) or any(rare.search(text) for rare in (_UNKNOWN, _HARD, _QUOTED)):
        return None
    masked = None if len(_ITEM.findall(text)) > 1 else _masked(text)
    if masked is None:
        return None
    size = len(text)
    starts: list[int] = []
    begin = 0
    for mark_match in _BREAK.finditer(masked):
        at, end = mark_match.span()
        mark: bool | None = masked[at] in ".?!"
        if mark:
            mark = _ends_sentence(text, at, abbreviations)
            if mark is None:
                return None
        if not mark and masked.find("\n", at, end) < 0 and masked.find("\r", at, end) < 0:
            continue
        if opened := _OPENED.match(text, begin):
            if not mark:
                return None  # pysbd looks at this only in lines with a mark
            starts.append(opened.end())
        if end < size:
            if text[end] == "'":
                return None
            starts.append(end)
        begin = end
    if begin < size and _OPENED.match(text, begin):
        return None
    closed = [quote.end() for quote in _CLOSED.finditer(text)]
    return sorted({*starts, *closed}) if closed else starts


def _masked(text: str) -> str | None:
    """Return the text without the marks in quotes and brackets, or None if any is not plainly one of a pair."""
    masked = _SINGLE.sub(_hidden, text) if "'" in text else text
    # Lines that have no such end may or may not be left alone.
    if masked != text and not all(_SINGLE_END.search(line) for line in re.split("[\n\r]", text) if "'" in line):
        return None
    for left, right, pair in _PAIRS:
        count = text.count(left) + (0 if left == right else text.count(right))
        if count:
            masked, pairs = pair.subn(_hidden, masked)
            if 2 * pairs != count:
                return None
    return None if _QUOTE_BRACKET.search(text) and _BRACKET_QUOTE.search(text) else masked


def _hidden(quoted: re.Match[str]) -> str:
    return quoted.group().translate(_HIDDEN)


def _ends_sentence(text: str, at: int, abbreviations: AbstractSet[str]) -> bool | None:
    """Return whether a sentence ends with the mark that is there, or None if that is not plain."""
    after = at + 1
    plain = True if after == len(text) or text[after].isspace() else None
    before = text[at - 1]
    if text[at] != ".":
        return False if plain and text[at] == "!" and "a" <= text[after + 1 : after + 2] <= "z" else plain
    if "0" <= before <= "9":
        return plain or False  # not in "3.5" and "1984.)"
    if not ("a" <= before <= "z" or "A" <= before <= "Z"):
        return plain
    if not plain and text[after].isascii() and text[after].isalpha():
        return False
    token = text[max(0, at - 12) : at].split()[-1]  # longer than any abbreviation
    word = token.lower()
    if _INITIALS.fullmatch(token) or ("A" <= token <= "Z" and len(token) == 1 and _COMMA.match(text, after)):
        return None if word.upper().endswith(_MAY_END) and _CAPITAL.match(text, after) else False
    known = word in abbreviations
    if not known and (len(token) == 1 or token[-2] == "."):
        return None
    if not known and not _LOOK_ALIKE.fullmatch(token):
        return plain
    rule = _NAME if _BEFORE_NAME.fullmatch(word) else _NUMBER if _BEFORE_NUMBER.fullmatch(word) else _MORE
    if rule.match(text, after):
        return False if known else None
    return plain
