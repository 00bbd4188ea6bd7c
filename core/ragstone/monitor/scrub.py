"""What is kept of an outcome: without keys, and without the app's texts where those are not to be stored."""

from collections.abc import Iterable
from itertools import groupby

from ragstone.errors import without_keys
from ragstone.outcome import Outcome, Unscored
from ragstone.sample import Sample
from ragstone.store.record import without_texts

_QUOTED, _SHORTEST = 24, 8


def kept(outcome: Outcome, sample: Sample, *, store_text: bool) -> Outcome:
    """Return the outcome as it may be stored: without keys, and without the app's texts unless they are stored.

    What stays without them: value, breakdown, each verdict's id, kind, word and probability, and the places of its
    evidence. A reply that could not be read is not quoted, nor what an error quotes of the sample.
    """
    if isinstance(outcome, Unscored):
        hide = outcome.reason == "judge_unparseable" and not store_text
        detail = "the judge's reply could not be read" if hide else without_keys(outcome.detail)
        if not store_text:
            texts = (sample.user_input or "", *sample.retrieved_contexts, sample.response or "")
            detail = without(detail, texts)
        return outcome.model_copy(update={"detail": detail})
    return outcome if store_text else without_texts(outcome)


def without(detail: str, texts: Iterable[str]) -> str:
    """Return a message with "[text]" for what it quotes of the texts: 24 characters in a row, or all of a shorter one.

    Texts of less than 8 characters are not looked for.

    Example:
        >>> without("400: content filtered: 'Who is the man next door?'", ["Who is the man next door?"])
        "400: content filtered: '[text]'"
    """
    quoted: set[int] = set()
    for text in texts:
        length = min(_QUOTED, len(text))
        if length >= _SHORTEST:
            for start in _worth_a_look(detail, text, length):
                if detail[start : start + length] in text:
                    quoted.update(range(start, start + length))
    runs = groupby(range(len(detail)), key=quoted.__contains__)
    return "".join("[text]" if hidden else "".join(detail[place] for place in places) for hidden, places in runs)


def _worth_a_look(detail: str, text: str, length: int) -> list[int]:
    """Return where a quotation may begin: each one holds a whole block of half its length, so few blocks tell."""
    half = (length + 1) // 2
    blocks = [at for at in range(0, len(detail) - half + 1, half) if detail[at : at + half] in text]
    last = len(detail) - length
    return sorted({start for at in blocks for start in range(max(0, at + half - length), min(at, last) + 1)})
