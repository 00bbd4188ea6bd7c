"""Which of the set's languages a short text is in: by common words for Latin letters, else by script.

A plain check for the seven languages of the set, not a language identifier: it takes Urdu for Arabic, Marathi for
Hindi, and a Japanese text without kana for Chinese. A text in Latin letters that holds no common word, or as many of
two languages, is "unknown".
"""

import re
from collections import Counter

UNKNOWN = "unknown"
_SCRIPTS = (
    ("ja", re.compile(r"[\u3041-\u30ff]")),  # in front of Han characters, which Japanese has too
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
)
_COMMON = {
    "en": """the of and in is are was were be it its at on for to that this does do did what when where who how which
        many much can may should there from with by have has a an about you your i not""",
    "de": """der die das den dem des ein eine einen einem einer und in im ist sind war wird werden wurde es am um auf
        für zu zum zur dass was wann wo wer wie welche viele kann darf soll gibt von vom mit bei man hat haben nicht
        ich sie""",
    "es": """el la los las un una de del y en es son era fue está se su al a por para que qué cuándo dónde quién cómo
        cuál cuáles cuánto cuántos cuánta puede pueden puedo debe hay desde con tiene tienen lo no""",
}
_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_WORD = re.compile(r"[^\W\d_]+")


def language_told(text: str) -> str:
    """Return the language's code, or "unknown"."""
    words = [word.casefold() for word in _WORD.findall(text)]
    found = Counter({language: sum(word in common for word in words) for language, common in _WORDS.items()})
    (first, most), (_, second) = found.most_common(2)
    if most == 0:  # a name in another script does not make the language
        return next((language for language, script in _SCRIPTS if script.search(text)), UNKNOWN)
    return first if most > second else UNKNOWN
