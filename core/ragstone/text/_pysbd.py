"""pysbd without what makes it slow: its rules alone, and no regular expression that takes minutes.

pysbd's `Segmenter.segment` finds its sentences back in the text with one compiled regular expression per
sentence, each searching from the beginning, and keeps the text on the segmenter. Only the rules in front of
that (its processor, a new object per call) are used here; `align` does the rest.
"""

import importlib
import threading
import warnings
from functools import cache
from typing import Any

# Matches what pysbd's NUMBERED_REFERENCE_REGEX matches, with the same groups 2 and 7 (the only ones that are
# used), but every list of numbers can be read in one way only. pysbd's own takes minutes over
# ".[101, 102, 103, 104, 105, 106, 107]" when no upper-case word follows.
_NUMBERS = r"(?:\d+(?:,(?:\s?-\s?|\s{0,2})|\s(?:-\s?|\s?)|-\s?))*\d{1,3}"
_REFERENCE = rf"(?<=[^\d\s])(\.|∯)(((\[{_NUMBERS}\]))+|((\d{{1,3}}\s?)?\d{{1,3}}))(\s)(?=[A-Z])"

# Letters that re.IGNORECASE takes for an ASCII letter although str.lower() does not make them one.
_ODD_CASE = frozenset("ıİſ")
_REPLACING = ("search_for_abbreviations_in_string", "scan_for_replacements", "replace_period_of_abbr")
# How far beyond its expected place a sentence is looked for when characters in front of it were changed.
_REACH = 256

_importing = threading.Lock()


@cache
def load() -> dict[str, Any]:
    """The languages of pysbd by their codes; it is imported the first time.

    A process that forks while another thread imports it has a child that can never do so.
    """
    with _importing, warnings.catch_warnings():
        # pysbd 0.3.4 has "\s" in plain string literals; Python says so when it first compiles them.
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        codes: dict[str, Any] = importlib.import_module("pysbd.languages").LANGUAGE_CODES
    return codes


def raw_sentences(text: str, language: str) -> list[str]:
    """The sentences as pysbd leaves them: stripped, and for odd input with characters changed.

    Raises whatever pysbd raises: it builds regular expressions from the text.
    """
    known = _abbreviations(language)
    there = [abbreviation for abbreviation, _ in known]
    if _ODD_CASE.isdisjoint(text):
        words = {word.partition(".")[0] for word in text.lower().split() if "." in word}
        there = [abbreviation for abbreviation, word in known if word is None or word in words]
    rules = load()[language]
    narrowed = _Changed(
        rules, NUMBERED_REFERENCE_REGEX=_REFERENCE, Abbreviation=_Changed(rules.Abbreviation, ABBREVIATIONS=there)
    )
    return [sentence for sentence in _processor(language)(text, narrowed).process() if sentence]


class _Changed:
    """Another object's attributes, some of them changed."""

    def __init__(self, original: object, **changed: object) -> None:
        self.__dict__.update(changed)
        self._original = original

    def __getattr__(self, name: str) -> object:
        return getattr(self._original, name)


@cache
def _processor(language: str) -> Any:  # noqa: ANN401 - pysbd has no types
    return getattr(load()[language], "Processor", None) or importlib.import_module("pysbd.processor").Processor


@cache
def _abbreviations(language: str) -> list[tuple[str, str | None]]:
    """The abbreviations of a language, each with the word without whose period a text cannot hold it.

    pysbd rewrites the text once for each word that begins like an abbreviation ("is", "no", "p"), which is
    where most of its time goes. Languages that replace abbreviations by rules of their own keep all.
    """
    base = importlib.import_module("pysbd.abbreviation_replacer").AbbreviationReplacer
    rules = load()[language]
    own = any(getattr(rules.AbbreviationReplacer, rule) is not getattr(base, rule) for rule in _REPLACING)
    words: list[tuple[str, str | None]] = []
    for abbreviation in rules.Abbreviation.ABBREVIATIONS:
        word = abbreviation.strip()
        # "e.g" and the like are regular expressions to pysbd, whose dot matches anything: not ours to rule out.
        words.append((abbreviation, word if word.isascii() and word.isalnum() and not own else None))
    return words


def align(text: str, sentences: list[str]) -> list[int]:
    """Where in the text the sentences begin, in rising order.

    White space does not count. A sentence that is not in the text (its characters were changed on the way)
    or has no character but white space gives no beginning, so that it joins the one before it.
    """
    places = [i for i, character in enumerate(text) if not character.isspace()]
    ink = "".join(text.split())
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
