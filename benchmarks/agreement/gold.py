"""The split that people labelled, in place of a splitter's: the metric then judges just those sentences."""

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from ragstone.text.sentences import split_sentences

from .fields import Place, located
from .rows import DataError, Row


class GoldSplitter:
    """Splits the passages of rows as the rows say.

    Args:
        rows: All rows of a file, those that are not scored too, so that a journal knows the splitter again when
            the limit changes.

    Attributes:
        cache_key: Changes with any sentence; the journal's mark of this splitter.

    Raises:
        DataError: A passage stands in two rows that split it differently.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._places: dict[str, list[tuple[str, int, int]]] = {}
        owner: dict[str, str] = {}
        for row in rows:
            for text, sentences in zip(row.sample.retrieved_contexts, row.sentences, strict=True):
                places = located(text, sentences)
                if self._places.setdefault(text, places) != places:
                    raise DataError(f"{row.file}: {row.id} and {owner[text]} split the same passage differently")
                owner.setdefault(text, row.id)
        facts = json.dumps(sorted(self._places.items())).encode()
        self.cache_key = f"gold sentences {blake2b(facts, digest_size=8).hexdigest()}"

    def __call__(self, text: str, language: str, /) -> Sequence[tuple[str, int, int]]:
        """Return the sentences of a passage; of any other text, such as what a judge copied, as ragstone splits it."""
        return self._places[text] if text in self._places else split_sentences(text, language)


def judged_places(row: Row) -> list[Place]:
    """Return the places of the sentences in the order in which the metric judges them; it passes over blank ones."""
    return [
        (passage, number)
        for passage, sentences in enumerate(row.sentences)
        for number, sentence in enumerate(sentences)
        if sentence.strip()
    ]
