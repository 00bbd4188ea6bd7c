"""Where the thoughts of a reasoning model end in what it wrote."""

import re
from dataclasses import dataclass

_MARK = re.compile(
    r"(?P<opening><think(?:ing)?>|<reasoning>|\[THINK\]|<\|channel\|>(?:analysis|commentary)<\|message\|>)"
    r"|</think(?:ing)?>|</reasoning>|\[/THINK\]"
    r"|<\|channel\|>final(?: ?<\|constrain\|>\w{1,20})?<\|message\|>"
)
_JSON = re.compile(r"[\s\ufeff]*(?:```\w*\s*)?[\[{]")
_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_ENDS = ("<|end|>", "<|return|>", "<|call|>", "<|start|>assistant")  # of a message of gpt-oss


@dataclass(frozen=True, slots=True)
class Thoughts:
    """The thoughts in a text.

    Attributes:
        end: Where the last of them ends, and the answer begins.
        outside: The texts before that place that stand in no thought.
    """

    end: int
    outside: tuple[str, ...]


def find_thoughts(text: str) -> Thoughts | None:
    """Return the thoughts in a text, in linear time; None where there are none, or the last does not end.

    A mark inside a string of a text that begins like JSON is none: the judge quotes it from what it read.

    Example:
        >>> find_thoughts("<think>Hm.</think>Well.</think>yes")
        Thoughts(end=31, outside=('', 'Well.'))
        >>> find_thoughts('{"sentences": ["It ends with </think>.')
    """
    marks = list(_MARK.finditer(text))
    thinking = bool(marks) and not marks[0]["opening"]  # the chat template may have opened them, unseen
    outside: list[str] = []
    start = counted = 0
    begins_as_json, in_string = _JSON.match(text) is not None, False
    for mark in marks:
        quotes = sum(match[0] == '"' for match in _QUOTE.finditer(text, counted, mark.start()))
        counted = mark.end()
        in_string ^= bool(quotes % 2)
        if begins_as_json and in_string:
            continue
        if not thinking:
            outside.append(bare_message(text[start : mark.start()]))
        start, thinking = mark.end(), mark["opening"] is not None
        begins_as_json, in_string = _JSON.match(text, start) is not None, False
    return Thoughts(start, tuple(outside)) if start and not thinking else None


def bare_message(text: str) -> str:
    """Return a message of gpt-oss without the marks at its end; any other text as it is.

    Example:
        >>> bare_message("yes<|return|>")
        'yes'
    """
    stop = end = len(text)
    while stop:
        if text[stop - 1].isspace():
            stop -= 1
        elif mark := next((mark for mark in _ENDS if text.endswith(mark, 0, stop)), None):
            stop = end = stop - len(mark)
        else:
            break
    return text[:end]
