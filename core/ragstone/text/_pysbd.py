"""pysbd, made safe: imported on first use, shared between threads, and without its two costly habits.

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
        raise ValueError(f"no sentence splitter for language {language!r}; there are: {', '.join(languages())}")


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
    where most of its time goes, though only an abbreviation with a period can change anything. Languages
    that replace abbreviations by rules of their own keep them as they are.
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


_INK = re.compile(r"\S")
# How far beyond its expected place a sentence is looked for when characters in front of it were changed.
_REACH = 256


def align(text: str, sentences: list[str]) -> list[int]:
    """Return where in the text the sentences begin, in rising order.

    White space does not count. A sentence that is not in the text (its characters were changed on the way)
    or has no character but white space gives no beginning, so that it joins the one before it.

    Example:
        >>> align("One. Two?  Three!", ["One.", "Tvvo?", "Three!"])
        [0, 11]
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
