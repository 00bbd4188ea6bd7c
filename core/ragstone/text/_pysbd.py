"""pysbd, made safe and fast: imported on first use, shared between threads, and not asked about easy English.

pysbd's `Segmenter.segment` finds its sentences back in the text with one compiled regular expression per
sentence, each searching from the beginning, and keeps the text on the segmenter. Only the rules in front of
that (its processor, a new object per call) are used here; `align` does the rest.
"""

import importlib
import os
import re
import threading
import warnings
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, Protocol

# Matches what pysbd's NUMBERED_REFERENCE_REGEX matches, with the same groups 2 and 7 (the only ones that are
# used), but every list of numbers can be read in one way only. pysbd's own takes minutes over
# ".[101, 102, 103, 104, 105, 106, 107]" when no upper-case word follows.
_NUMBERS = r"(?:\d+(?:,(?:\s?-\s?|\s{0,2})|\s(?:-\s?|\s?)|-\s?))*\d{1,3}"
_REFERENCE = rf"(?<=[^\d\s])(\.|∯)(((\[{_NUMBERS}\]))+|((\d{{1,3}}\s?)?\d{{1,3}}))(\s)(?=[A-Z])"

# Letters that re.IGNORECASE takes for an ASCII letter although str.lower() does not make them one.
_ODD_CASE = frozenset("ıİſ")
_INK = re.compile(r"\S")
# How far beyond its expected place a sentence is looked for when characters in front of it were changed.
_REACH = 256

_lock = threading.Lock()
_processors: dict[str, Callable[[str], Any]] = {}


def load() -> None:
    """Import pysbd now: a process that forks while another thread imports it has a child that can never do so."""
    _processor("en")


def _language_codes() -> dict[str, Any]:
    with _lock:
        return _imported()


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


@cache
def _imported() -> dict[str, Any]:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_renew_lock)
    with warnings.catch_warnings():
        # pysbd 0.3.4 has "\s" in plain string literals; Python says so when it first compiles them.
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        codes: dict[str, Any] = importlib.import_module("pysbd.languages").LANGUAGE_CODES
    return codes


def languages() -> tuple[str, ...]:
    """Return the two-letter codes of pysbd's languages in alphabetical order."""
    return tuple(sorted(_language_codes()))


def check_language(language: str) -> None:
    """Raise the ValueError that names the languages, unless pysbd has this one."""
    if language not in _language_codes():
        raise ValueError(f"no sentence splitter for {language!r}; the languages are: {', '.join(languages())}")


@cache
def english_abbreviations() -> frozenset[str]:
    """Return the words whose period need not end a sentence, in lower case."""
    return frozenset(a.strip() for a in _language_codes()["en"].Abbreviation.ABBREVIATIONS)


def raw_sentences(text: str, language: str) -> list[str]:
    """Return pysbd's sentences, as it leaves them: stripped, and for odd input with characters changed.

    Raises whatever pysbd raises: it builds regular expressions from the text.
    """
    return [sentence for sentence in _processor(language)(text).process() if sentence]


def _processor(language: str) -> Callable[[str], Any]:
    known = _processors.get(language)
    if known is None:
        with _lock:
            rules = _imported()[language]
            segmenter: Any = importlib.import_module("pysbd").Segmenter(language=language)
            segmenter.language_module = type(
                rules.__name__,
                (rules,),
                {
                    "NUMBERED_REFERENCE_REGEX": _REFERENCE,
                    "AbbreviationReplacer": _narrowed(rules.AbbreviationReplacer),
                },
            )
            known = _processors[language] = segmenter.processor  # reads the segmenter, never writes to it
    return known


class _Replacer(Protocol):
    lang: Any


def _narrowed(replacer: type) -> type:
    """Return the abbreviation replacer that looks only at abbreviations whose period is in the text.

    pysbd rewrites the text once for each word that begins like an abbreviation ("is", "no", "p"), which is
    where most of its time goes. Languages that replace abbreviations by rules of their own keep them as they are.
    """
    base: Any = importlib.import_module("pysbd.abbreviation_replacer").AbbreviationReplacer
    own_rules = ("search_for_abbreviations_in_string", "scan_for_replacements", "replace_period_of_abbr")
    if any(getattr(replacer, rule) is not getattr(base, rule) for rule in own_rules):
        return replacer

    def search(self: _Replacer, line: str) -> str:
        if "." not in line:
            return line
        everything = self.lang
        known = everything.Abbreviation
        self.lang = SimpleNamespace(
            Abbreviation=SimpleNamespace(
                ABBREVIATIONS=_possible(known.ABBREVIATIONS, line),
                PREPOSITIVE_ABBREVIATIONS=known.PREPOSITIVE_ABBREVIATIONS,
                NUMBER_ABBREVIATIONS=known.NUMBER_ABBREVIATIONS,
            )
        )
        try:
            replaced: str = base.search_for_abbreviations_in_string(self, line)
        finally:
            self.lang = everything
        return replaced

    return type("AbbreviationReplacer", (replacer,), {"search_for_abbreviations_in_string": search})


def _possible(abbreviations: list[str], line: str) -> list[str]:
    if not _ODD_CASE.isdisjoint(line):
        return abbreviations
    words = {word.partition(".")[0] for word in line.lower().split() if "." in word}
    # "e.g" and the like are regular expressions to pysbd, whose dot matches anything: not ours to rule out.
    return [a for a in abbreviations if a.strip() in words or not (a.isascii() and a.strip().isalnum())]


def align(text: str, sentences: list[str]) -> list[int]:
    """Return where in the text the sentences begin, in rising order.

    White space does not count. A sentence that is not in the text (its characters were changed on the way)
    or has no character but white space gives no beginning, so that it joins the one before it.
    """
    starts: list[int] = []
    position = 0
    for done, raw in enumerate(sentences):
        sentence = raw.strip()
        ink = _INK.search(text, position)
        if ink is None or not text.startswith(sentence, ink.start()):
            return starts + _align_roughly(text, position, sentences[done:])
        if sentence:
            starts.append(ink.start())
            position = ink.start() + len(sentence)
    return starts


def _align_roughly(text: str, position: int, sentences: list[str]) -> list[int]:
    places = [i for i in range(position, len(text)) if not text[i].isspace()]
    ink = "".join([text[i] for i in places])
    starts: list[int] = []
    at = pending = 0
    for raw in sentences:
        sentence = "".join(raw.split())
        size = len(sentence)
        place = ink.find(sentence, at, at + 2 * (size + pending) + _REACH) if sentence else -1
        if place < 0:
            pending += size
        else:
            starts.append(places[place])
            at, pending = place + size, 0
    return starts


# English that needs no rules, or few. Most prose is like that, and pysbd spends a millisecond per paragraph to say so.
# It works in two steps, and so do the conditions here. First, on the whole text: lists, numbers, references and
# abbreviations. Then, in each line: a mark between quotes or brackets does not count, and a sentence ends at a mark
# that is left, behind the quote or bracket it began with, and behind a quote that ends with a mark. Where one of
# pysbd's rules might do anything else, the text is not easy. The tests hold this against pysbd itself.

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


def easy_starts(text: str) -> list[int] | None:
    """Return where the sentences of an easy English text begin behind the first, or None when pysbd must be asked.

    The text begins with a character that is not white space.
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
            mark = _ends_sentence(text, at)
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


def _ends_sentence(text: str, at: int) -> bool | None:
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
    known = word in english_abbreviations()
    if not known and (len(token) == 1 or token[-2] == "."):
        return None
    if not known and not _LOOK_ALIKE.fullmatch(token):
        return plain
    rule = _NAME if _BEFORE_NAME.fullmatch(word) else _NUMBER if _BEFORE_NUMBER.fullmatch(word) else _MORE
    if rule.match(text, after):
        return False if known else None
    return plain
