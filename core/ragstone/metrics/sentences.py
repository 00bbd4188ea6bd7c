"""The sentences of a sample's texts, each with its place: what judges point to by number."""

from collections.abc import Sequence

from ragstone.judging.prompt import numbered
from ragstone.outcome import Evidence
from ragstone.sample import Sample, SampleField
from ragstone.text import Splitter, language_of


def sentences_of(sample: Sample, field: SampleField, splitter: Splitter, language: str | None) -> list[Evidence]:
    """Return the sentences of a field in order, without the white space around them.

    Offsets count from the start of the text, or of the chunk for `retrieved_contexts`. A language of None is each
    text's own, by its script.
    """
    found: list[Evidence] = []
    for i, text in enumerate(sample.texts(field)):
        chunk = i if field == "retrieved_contexts" else None
        for _, start, end in splitter(text, language or language_of(text)):
            piece = text[start:end]
            bare = piece.strip()
            if bare:
                left = start + len(piece) - len(piece.lstrip())
                found.append(Evidence(field=field, chunk=chunk, start=left, end=left + len(bare), text=bare))
    return found


def listed(sentences: Sequence[Evidence], first: int = 1) -> str:
    """Return the sentences as numbered lines, with a blank line between chunks."""
    blocks: list[list[str]] = []
    last: object = blocks  # equal to no chunk
    for sentence in sentences:
        if sentence.chunk != last:
            blocks.append([])
            last = sentence.chunk
        blocks[-1].append(sentence.text)
    lines: list[str] = []
    for block in blocks:
        lines.append(numbered(block, first))
        first += len(block)
    return "\n\n".join(lines)
