"""The answer in what a judge wrote: without thoughts before it or a fence around it, and one word out of a few."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ragstone.judging.schema import BadReply, parse_json
from ragstone.outcome import Evidence

_FENCE_LINE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n")
_BYTE_ORDER_MARK = "\ufeff"
QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"  # straight, curly and angle quotes
EMPHASIS = "*_"  # of Markdown
STOPS = (".", "!", "\u3002", "\uff01")  # one of these may stand behind a choice; the last two are Chinese
_MARK = re.compile(
    r"(?P<opening><think(?:ing)?>|<reasoning>|\[THINK\]|<\|channel\|>(?:analysis|commentary)<\|message\|>)"
    r"|</think(?:ing)?>|</reasoning>|\[/THINK\]"
    r"|<\|channel\|>final(?: ?<\|constrain\|>\w{1,20})?<\|message\|>"
)
_JSON = re.compile(r"[\s\ufeff]*(?:```\w*\s*)?[\[{]")
_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>", "<|start|>assistant")  # of a message of gpt-oss


def unfence(text: str) -> str:
    r"""Return what stands inside a Markdown code fence that wraps a whole message; other text as it is.

    The flow takes fences off before it parses a reply; the parser itself accepts none.

    Example:
        >>> unfence('```json\n{"a": 1}\n```')
        '{"a": 1}'
        >>> unfence('Here: ```x```')
        'Here: ```x```'
    """
    bare = text.strip()
    opening = _FENCE_LINE.match(bare)
    if opening is None or bare.count("```") != 2 or not bare.endswith("```"):
        return text
    inside = bare[opening.end() : -3].rstrip(" \t")
    return inside[:-1].removesuffix("\r") if inside.endswith("\n") else inside


def bare_answer(text: str, choices: Sequence[str] | None = None) -> tuple[str, bool]:
    r"""Return the answer in what a judge wrote, and whether thoughts stood before it.

    What stands before the last closing mark of thoughts (`</think>`, `[/THINK]`, `</thinking>`, `</reasoning>`, the
    final channel of gpt-oss) is no part of the answer, whether the thoughts were opened or not. A byte-order mark and
    a Markdown fence around all of the answer are removed; a choice is read whatever its case, and with emphasis,
    quotes or one full stop or exclamation mark. A text that is an answer as a whole is never cut, so a mark that the
    answer quotes stays. A text that holds a second answer outside of its thoughts comes back as it is, which no
    parser accepts.

    Args:
        text: What the judge wrote.
        choices: The words of which the answer is one; None for JSON.

    Example:
        >>> bare_answer('Let me see.</think>\n\n{"ids": [1]}')
        ('{"ids": [1]}', True)
        >>> bare_answer("**Yes.**", ("yes", "no"))
        ('yes', False)
    """
    thoughts = None if is_answer(text, choices) else find_thoughts(text)
    if thoughts is None:
        return _unwrapped(text, choices), False
    if any(is_answer(piece, choices) for piece in thoughts.outside):
        return text, False
    return _unwrapped(bare_message(text[thoughts.end :]).strip(), choices), True


def is_answer(text: str, choices: Sequence[str] | None = None) -> bool:
    """Return whether a text is one of the choices, or one JSON value, and nothing else.

    Example:
        >>> is_answer("Yes!", ("yes", "no")), is_answer('{"ids": []} or so')
        (True, False)
    """
    bare = _unwrapped(text, choices)
    if choices is not None:
        return bare in choices
    try:
        parse_json(bare)
    except BadReply:
        return False
    return True


def is_same_answer(one: str, other: str, choices: Sequence[str] | None = None) -> bool:
    """Return whether two texts are answers of the same value, however each is written.

    Example:
        >>> is_same_answer('{"id": 1, "ok": true}', '{"ok":true,"id":1}'), is_same_answer('{"ok": 1}', '{"ok": true}')
        (True, False)
    """
    if not (is_answer(one, choices) and is_answer(other, choices)):
        return False
    values = [_unwrapped(text, choices) for text in (one, other)]
    if choices is None:
        values = [json.dumps(parse_json(value), sort_keys=True) for value in values]
    return values[0] == values[1]


def _unwrapped(text: str, choices: Sequence[str] | None) -> str:
    """Return a text without a byte-order mark and a fence around it; the choice that it is, if it is one."""
    if text[:1] == _BYTE_ORDER_MARK or text.lstrip()[:1] == _BYTE_ORDER_MARK:
        text = text.lstrip().lstrip(_BYTE_ORDER_MARK)
    bare = unfence(text)
    return bare if choices is None else choose(bare, choices)


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
        elif mark := next((mark for mark in _MESSAGE_ENDS if text.endswith(mark, 0, stop)), None):
            stop = end = stop - len(mark)
        else:
            break
    return text[:end]


def choose(text: str, choices: Sequence[str]) -> str:
    """Return the choice that `text` is; `text` itself if it is none.

    Case does not matter, nor quotes and Markdown emphasis around it, nor one full stop or exclamation mark.

    Example:
        >>> choose('**"Yes."**', ("yes", "no")), choose("Yes, but", ("yes", "no"))
        ('yes', 'Yes, but')
    """
    bare = _unquoted(text)
    if bare.endswith(STOPS):
        bare = _unquoted(bare[:-1])
    matches = [choice for choice in choices if choice.casefold() == bare.casefold()]
    return matches[0] if len(matches) == 1 else text


def _unquoted(text: str) -> str:
    """Return `text` without space, and pairs of quotes and emphasis, around it."""
    start, end = 0, len(text)
    while start < end:
        first, last = text[start], text[end - 1]
        if first.isspace():
            start += 1
        elif last.isspace():
            end -= 1
        elif end - start > 2 and ((first in QUOTES and last in QUOTES) or (first in EMPHASIS and first == last)):
            start, end = start + 1, end - 1
        else:
            break
    return text[start:end]


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice of the judge, as `ragstone.Metric.ask_choice` returns it.

    Attributes:
        choice: The word that it chose.
        probabilities: Of each choice; None without log-probabilities.
        evidence: What it pointed to, where it was asked for that.

    Example:
        >>> Answer("no", {"yes": 0.25, "no": 0.75}).probability("yes")
        0.25
    """

    choice: str
    probabilities: Mapping[str, float] | None = None
    evidence: tuple[Evidence, ...] = field(default=(), repr=False)

    def probability(self, choice: str) -> float | None:
        """Return the probability of a choice, None without log-probabilities."""
        return None if self.probabilities is None else self.probabilities[choice]


def parse_choice(text: str, choices: Iterable[str]) -> str:
    """Return the choice that `text` is, bare or as a JSON string.

    Raises:
        BadReply: It is none of the choices, exactly.

    Example:
        >>> parse_choice(" yes ", ("yes", "no")), parse_choice('"no"', ("yes", "no"))
        ('yes', 'no')
    """
    options = tuple(choices)
    for option in options:
        if text.strip() in (option, f'"{option}"'):
            return option
    raise BadReply(f"it is not exactly one of: {', '.join(options)}")
