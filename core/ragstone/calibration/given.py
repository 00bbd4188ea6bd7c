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
        """Learn a text's sentences; return what is wrong with them, "" if nothing."""
        pieces: list[Piece] = []
        at = 0
        for i, sentence in enumerate(sentences):
            start = text.find(sentence, at)
            if start < 0:
                return f"[{i}]: does not stand in the context, behind the sentence before it"
            at = start + len(sentence)
            pieces.append((sentence, start, at))
        if self._texts.setdefault(text, pieces) != pieces:
            return ": another line has other sentences for the same context"
        return ""

    def __call__(self, text: str, language: str = "en", /) -> Sequence[Piece]:
        """Return the text's sentences."""
        known = self._texts.get(text)
        return self._other(text, language) if known is None else list(known)
