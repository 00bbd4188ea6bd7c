"""Finds sentences back in the text they came from."""

import re

_INK = re.compile(r"\S")
# How far beyond its expected place a sentence is looked for when characters in front of it were changed.
_REACH = 256


def align(text: str, sentences: list[str]) -> list[int]:
    """Return where in the text the sentences begin, in rising order.

    White space does not count. A sentence that is not in the text (its characters were changed on the way)
    or has no character but white space gives no beginning, so that it joins the one before it.

    Example:
        >>> align("One. Two?  Three!", ["One.", "Tvvo?", "Three!"])
        [0, 11]
    """
    starts: list[int] = []
    position = 0
    for done, raw in enumerate(sentences):
        sentence = raw.strip()
        ink = _INK.search(text, position)
        if ink is None or not text.startswith(sentence, ink.start()):
            return starts + _align_roughly(text, position, sentences[done:])
        if sentence:
            starts.append(ink.start())
            position = ink.start() + len(sentence)
    return starts


def _align_roughly(text: str, position: int, sentences: list[str]) -> list[int]:
    places = [i for i in range(position, len(text)) if not text[i].isspace()]
    ink = "".join([text[i] for i in places])
    starts: list[int] = []
    at = pending = 0
    for raw in sentences:
        sentence = "".join(raw.split())
        size = len(sentence)
        place = ink.find(sentence, at, at + 2 * (size + pending) + _REACH) if sentence else -1
        if place < 0:
            pending += size
        else:
            starts.append(places[place])
            at, pending = place + size, 0
    return starts
