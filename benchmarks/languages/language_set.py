"""The set: rows of samples.jsonl and the samples they make; and which of its languages a short text is in.

The set was written for this benchmark and is under this repository's licence. The facts are made up or common
knowledge.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ragstone import Sample

SET = Path(__file__).resolve().parent / "samples.jsonl"
LANGUAGES = ("en", "de", "es", "zh", "ja", "hi", "ar")
UNSPACED = ("zh", "ja")  # no space between sentences


@dataclass(frozen=True)
class Row:
    """One row; its texts are given as lists of their sentences. Rows of one id are translations of one another."""

    id: str
    language: str
    user_input: str
    retrieved_contexts: list[list[str]]
    response: list[str]
    summary: list[str]

    def text(self, sentences: list[str]) -> str:
        return ("" if self.language in UNSPACED else " ").join(sentences)

    def texts(self) -> list[list[str]]:
        """Return every text that has sentences to split: contexts, response, summary."""
        return [*self.retrieved_contexts, self.response, self.summary]

    def sample(self, *, summary: bool) -> Sample:
        """Return the sample with the row's response, or with its summary of the contexts in the response's place."""
        return Sample(
            id=f"{self.language}/{self.id}",
            user_input=self.user_input,
            retrieved_contexts=[self.text(context) for context in self.retrieved_contexts],
            response=self.text(self.summary if summary else self.response),
        )


def read_rows() -> list[Row]:
    return [Row(**json.loads(line)) for line in SET.read_text(encoding="utf-8").splitlines()]


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


def detect_language(text: str) -> str:
    """Return the language's code, or "unknown": by common words for Latin letters, else by script.

    A plain check for the seven languages of the set, not a language identifier: it takes Urdu for Arabic, Marathi for
    Hindi, and a Japanese text without kana for Chinese. A text in Latin letters that holds no common word, or as many
    of two languages, is "unknown".
    """
    words = [word.casefold() for word in _WORD.findall(text)]
    counts = Counter({language: sum(word in common for word in words) for language, common in _WORDS.items()})
    (first, most), (_, second) = counts.most_common(2)
    if most == 0:  # a name in another script does not make the language
        return next((language for language, script in _SCRIPTS if script.search(text)), UNKNOWN)
    return first if most > second else UNKNOWN
