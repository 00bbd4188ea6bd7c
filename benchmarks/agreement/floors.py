"""Scorers that understand nothing: what a metric has to beat on the same rows.

A word is a run of letters and digits. Of each row only numbers are kept (`Signals`), so that a table can be made again
without the texts.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from ragstone import Embedder
from ragstone.metrics.fitted import length
from ragstone.text import split_sentences

from .rows import Row

_DIGITS = 4
_LEAD = 3  # sentences with which news begins

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
        unigrams: Share of the response's words that the contexts have, within [0, 1].
        bigrams: The same of its word pairs.
        overlaps: Of each sentence, share of the question's words of four letters or more that it has.
        near: Cosine of the embedder's vectors of the question and the response (or the mean over contexts); None
            without an embedder or a question.
        cosines: Of each sentence, cosine with the question of it, and of it behind the one before; likewise.
        recalled: Share of the reference's words that the response has, within [0, 1]; None without a reference.
        lead: The same of the first three sentences of the contexts; None without contexts.
        length: Of the contexts, as `ragstone.metrics.fitted` takes it; None without contexts.
    """

    words: int
    cosine: float
    refusal: bool
    unigrams: float
    bigrams: float
    overlaps: tuple[tuple[float, ...], ...]
    near: float | None = None
    cosines: tuple[tuple[tuple[float, float], ...], ...] | None = None
    recalled: float | None = None
    lead: float | None = None
    length: float | None = None


def signals(row: Row, embedder: Embedder | None = None) -> Signals:
    """Return the numbers of a row."""
    question, contexts = row.sample.user_input or "", "\n".join(row.sample.retrieved_contexts)
    about_contexts = row.metrics == ("context_relevancy",)
    judged = contexts if about_contexts else row.sample.response or ""
    near: float | None = None
    cosines: tuple[tuple[tuple[float, float], ...], ...] | None = None
    if embedder is not None and question:
        texts = list(row.sample.retrieved_contexts) if about_contexts else [judged]
        for each in row.sentences:
            texts += [*each, *(" ".join(two).strip() for two in pairwise(("", *each)))]
        vectors = embedder.embed([question, *texts])
        found = iter((vectors[1:] @ vectors[0]).astype(float).round(_DIGITS).tolist())
        firsts = list(islice(found, len(texts) - 2 * sum(map(len, row.sentences))))
        near = round(sum(firsts) / len(firsts), _DIGITS)
        cosines = tuple(
            tuple(zip(list(islice(found, len(each))), list(islice(found, len(each))), strict=True))
            for each in row.sentences
        )
    return Signals(
        words=len(words(judged)),
        cosine=round(cosine(question, judged), _DIGITS),
        refusal=refuses(judged),
        unigrams=round(precision(words(judged), words(contexts)), _DIGITS),
        bigrams=round(precision(list(pairwise(words(judged))), list(pairwise(words(contexts)))), _DIGITS),
        overlaps=tuple(tuple(round(overlap(question, s), _DIGITS) for s in each) for each in row.sentences),
        near=near,
        cosines=cosines,
        recalled=_recall(row.sample.reference, judged),
        lead=_recall(" ".join(text for text, *_ in split_sentences(contexts)[:_LEAD]), judged),
        length=round(length(contexts), _DIGITS) if contexts else None,
    )


def _recall(wanted: str | None, text: str) -> float | None:
    found = words(wanted or "")
    return round(precision(found, words(text)), _DIGITS) if found else None


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


def precision(summary: Sequence[object], source: Iterable[object]) -> float:
    """Return the share of the summary's words, or pairs of words, that the source has too; 0 where it has none.

    Example:
        >>> precision(["the", "old", "old", "town"], ["the", "old", "mill"])
        0.75
    """
    known = set(source)
    return sum(each in known for each in summary) / len(summary) if summary else 0.0


def refuses(response: str) -> bool:
    """Return whether a phrase of refusal stands in the response.

    Example:
        >>> refuses("I'm sorry, but I can't help with that."), refuses("Heat the pan first.")
        (True, False)
    """
    return _REFUSAL.search(response) is not None
