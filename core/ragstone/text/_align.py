"""Finds sentences back in the text they came from."""

import re

_INK = re.compile(r"\S")
# How far beyond its expected place a sentence is looked for when characters in front of it were changed.
_REACH = 256
_MOST_PENDING = 2048


def align(text: str, sentences: list[str]) -> list[int]:
    """Return where in the text the sentences begin, in rising order.

    White space does not count. A sentence that is not in the text (its characters were changed on the way)
    or has no character but white space gives no beginning, so that it joins the one before it.

    Example:
        >>> align("One. Two?  Three!", ["One.", "Tvvo?", "Three!"])
        [0, 11]
    """
    starts: list[int] = []
    position = pending = 0
    for raw in sentences:
        sentence = raw.strip()
        ink = _INK.search(text, position)
        if ink is None:
            break
        if not sentence:
            continue
        if not pending and text.startswith(sentence, ink.start()):
            start, position = ink.start(), ink.start() + len(sentence)
        else:
            place = _find(text, sentence, ink.start(), min(pending, _MOST_PENDING))
            if place is None:
                pending += len(sentence)
                continue
            start, position = place
        starts.append(start)
        pending = 0
    return starts


def _find(text: str, sentence: str, position: int, pending: int) -> tuple[int, int] | None:
    wanted = "".join(sentence.split())
    end = min(len(text), position + 2 * (len(sentence) + pending) + _REACH)
    ink = [i for i in range(position, end) if not text[i].isspace()]
    at = "".join([text[i] for i in ink]).find(wanted)
    return None if at < 0 else (ink[at], ink[at + len(wanted) - 1] + 1)
