"""Questions that follow a conversation: "And when?" as what it means."""

from collections.abc import Sequence

from ragstone.judging import one_line
from ragstone.sample import Turn

_CHARACTERS, _HEAD, _TAIL = 3_000, 600, 200  # of the turns together, and of the beginning and the end of a long one


def last_turns(turns: Sequence[Turn]) -> str:
    """Return the last turns of a conversation that fit, a line each; a turn that is cut says [...]."""
    lines: list[str] = []
    for turn in reversed(turns):
        text = turn.content
        if len(text) > _HEAD + _TAIL:
            text = f"{text[:_HEAD]} [...] {text[-_TAIL:]}"
        lines.insert(0, f"{turn.role}: {one_line(text)}")
        if sum(map(len, lines)) > _CHARACTERS:
            return "\n".join(lines[1:])
    return "\n".join(lines)
