"""Sentences that are given, not found: what labels were put on."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from ragstone.text import Splitter

Piece = tuple[str, int, int]


class GivenSentences:
    """A splitter that knows the sentences of some texts and leaves the others to another splitter.

    Args:
        other: What splits texts that are not known.

    Attributes:
        texts: The known texts, with their sentences and places.

    Example:
        >>> from ragstone.text import split_sentences
        >>> splitter = GivenSentences(split_sentences)
        >>> splitter.add("a; b", ["a;", "b"])
        ''
        >>> splitter("a; b", "en")
        [('a;', 0, 2), ('b', 3, 4)]
    """

    def __init__(self, other: Splitter) -> None:
        self._other = other
        self._texts: dict[str, list[Piece]] = {}
        self._given: dict[str, tuple[str, ...]] = {}

    @property
    def texts(self) -> Mapping[str, Sequence[Piece]]:
        """The known texts."""
        return self._texts

    @property
    def cache_key(self) -> str:
        """What it counts by in a journal's keys."""
        known = json.dumps(self._texts, sort_keys=True)
        return blake2b(known.encode(), digest_size=16).hexdigest()

    def add(self, text: str, sentences: Sequence[str]) -> str:
        """Learn a text's sentences, but not the blank ones; return what is wrong with them, "" if nothing."""
        pieces: list[Piece] = []
        at = 0
        for i, sentence in enumerate(sentences):
            if not sentence.strip():
                continue
            start = text.find(sentence, at)
            if start < 0:
                return f"[{i}]: does not stand in the context, behind the sentence before it"
            at = start + len(sentence)
            pieces.append((sentence, start, at))
        if self._given.setdefault(text, tuple(sentences)) != tuple(sentences):
            return ": another line has other sentences for the same context"
        self._texts[text] = pieces
        return ""

    def judged(self, text: str) -> list[bool] | None:
        """Return which of a text's sentences, as they were given, are not blank; None where the text is not known."""
        known = self._given.get(text)
        return None if known is None else [bool(sentence.strip()) for sentence in known]

    def __call__(self, text: str, language: str = "en", /) -> Sequence[Piece]:
        """Return the text's sentences."""
        known = self._texts.get(text)
        return self._other(text, language) if known is None else list(known)
