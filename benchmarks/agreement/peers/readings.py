"""What can be read out of what a peer returned or its judge said. Standard library only."""

import re
from collections.abc import Sequence

SHORTEST = 15  # letters of a quoted piece; less may stand anywhere
_END = re.compile(r'[.!?]"?,?\s+|",\s*"|\n')


def chosen(text: str, sentences: Sequence[Sequence[str]]) -> list[tuple[int, int, bool, None]]:
    """Mark each sentence that stands in `text`, or that a piece of `text` stands in: judges quote parts.

    Only letters and digits are compared, as judges mend the spaces of tokenised text. A sentence that stands in two
    passages is marked in both.
    """
    said = letters(text)
    pieces = [piece for piece in map(letters, _END.split(text)) if len(piece) >= SHORTEST]

    def quoted(sentence: str) -> bool:
        return bool(sentence) and (sentence in said or any(piece in sentence for piece in pieces))

    return [
        (passage, number, quoted(letters(sentence)), None)
        for passage, each in enumerate(sentences)
        for number, sentence in enumerate(each)
    ]


def letters(text: str) -> str:
    """Return the letters and digits of a text, without case."""
    return "".join(filter(str.isalnum, text.casefold()))


def unquoted(text: str) -> str:
    """Return what was said without JSON's escapes: the judge may answer with a list of strings."""
    return text.replace('\\"', '"').replace("\\n", "\n").replace("\\/", "/")


def copied(statements: Sequence[str], sentences: Sequence[Sequence[str]]) -> dict[str, float]:
    """Count the statements, and those that are a sentence of the passages: what could be matched to a label."""
    known = {letters(sentence) for each in sentences for sentence in each}
    verbatim = sum(letters(statement) in known for statement in statements)
    return {"statements": len(statements), "verbatim": verbatim}


def qa_and_conciseness(value: float, source: str, summary: str) -> dict[str, float]:
    """Take ragas' summary score apart: it is (qa + conciseness) / 2, and conciseness is a matter of lengths."""
    conciseness = 1 - min(len(summary), len(source)) / len(source)
    return {"qa": round(2 * value - conciseness, 9), "conciseness": conciseness}
