"""Scorers that understand nothing: what a metric has to beat on the same rows.

A word is a run of letters and digits. Of each row only numbers are kept (`Signals`), so that a table can be made again
without the texts.
"""

import math
import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from .rows import Row

_WORD = re.compile(r"[^\W_]+")
_CONTENT_LETTERS = 4  # shorter words are mostly those that every sentence has
_REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e|unable to|not able to|(?:can|could|will) ?not|(?:can|won|couldn)['\u2019]t|"
    r"not (?:appropriate|ethical)|inappropriate|as an ai|do(?:n['\u2019]t| not) (?:know|have))\b",
    re.IGNORECASE,
)


class Signals(NamedTuple):
    """Cheap numbers of a row.

    Attributes:
        words: Length in words of the response; of the contexts where there is none.
        cosine: Between the counts of words of the question and of the response (or contexts), within [0, 1].
        refusal: Whether a phrase of refusal stands in the response.
        bigrams: Share of the response's word pairs that the contexts have, within [0, 1].
        overlaps: Of each sentence, share of the question's words of four letters or more that it has.
    """

    words: int
    cosine: float
    refusal: bool
    bigrams: float
    overlaps: tuple[tuple[float, ...], ...]


def signals(row: Row) -> Signals:
    """Return the numbers of a row."""
    question, contexts = row.sample.user_input or "", "\n".join(row.sample.retrieved_contexts)
    about_contexts = row.metrics == ("context_relevancy",)
    judged = contexts if about_contexts else row.sample.response or ""
    return Signals(
        words=len(words(judged)),
        cosine=round(cosine(question, judged), 6),
        refusal=refuses(judged),
        bigrams=round(bigram_precision(judged, contexts), 6),
        overlaps=tuple(tuple(round(overlap(question, s), 6) for s in each) for each in row.sentences),
    )


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    Example:
        >>> words("Who wrote 'Emma'?")
        ['who', 'wrote', 'emma']
    """
    return _WORD.findall(text.lower())


def overlap(question: str, sentence: str) -> float:
    """Return the share of the question's content words that the sentence has; 0 where it has none.

    Example:
        >>> overlap("Who wrote the novel Emma?", "Emma is a novel.")
        0.6666666666666666
    """
    asked = {word for word in words(question) if len(word) >= _CONTENT_LETTERS}
    return len(asked & set(words(sentence))) / len(asked) if asked else 0.0


def cosine(one: str, other: str) -> float:
    """Return the cosine between two texts' word counts; 0 where one has no word.

    Example:
        >>> round(cosine("a b", "b b"), 3)
        0.707
    """
    a, b = Counter(words(one)), Counter(words(other))
    size = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(n * b[word] for word, n in a.items()) / size if size else 0.0


def bigram_precision(summary: str, source: str) -> float:
    """Return the share of the summary's pairs of neighbouring words that the source has too; 0 where it has none.

    Example:
        >>> bigram_precision("the old town", "The old mill")
        0.5
    """
    pairs, of_source = list(pairwise(words(summary))), set(pairwise(words(source)))
    return sum(pair in of_source for pair in pairs) / len(pairs) if pairs else 0.0


def refuses(response: str) -> bool:
    """Return whether a phrase of refusal stands in the response.

    Example:
        >>> refuses("I'm sorry, but I can't help with that."), refuses("Heat the pan first.")
        (True, False)
    """
    return _REFUSAL.search(response) is not None
