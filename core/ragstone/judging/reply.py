"""A judge's reply: its schema, and how it is read.

One schema is sent to the judge, writes the example in the prompt (`json_form`) and checks the reply (`parse`). What
stands around an answer, such as thoughts before it or a fence, is taken off first (`bare_answer`).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from ragstone.outcome import Evidence
from ragstone.plain import is_mapping, is_visible

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}

_TYPES: Mapping[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
_SPOKEN = {"object": "a JSON object", "array": "a list", "string": "text", "integer": "an integer", "boolean": "a flag"}
_MOST_NAMED = 10
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_MAYBE_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")

_FENCE_LINE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n")
_BYTE_ORDER_MARK = "\ufeff"
# Straight, curly and angle quotes.
QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"
# Markdown's.
EMPHASIS = "*_"
# One of these may stand behind a choice; the last two are Chinese.
STOPS = (".", "!", "\u3002", "\uff01")
_MARK = re.compile(
    r"(?P<opening><think(?:ing)?>|<reasoning>|\[THINK\]|<\|channel\|>(?:analysis|commentary)<\|message\|>)"
    r"|</think(?:ing)?>|</reasoning>|\[/THINK\]"
    r"|<\|channel\|>final(?: ?<\|constrain\|>\w{1,20})?<\|message\|>"
)
_JSON = re.compile(r"[\s\ufeff]*(?:```\w*\s*)?(?:\{|\[(?!THINK))")
_CUT_OFF = re.compile("length|max_?(output_?)?tokens|context_?window|error_limit", re.IGNORECASE)
_WITHHELD = re.compile(
    "filter|guardrail|refus|safety|prohibited|recitation|block|spii|toxic|jailbreak|model_armor|sensitive|language",
    re.IGNORECASE,
)
# A message of gpt-oss ends with one of these.
_MESSAGE_ENDS = ("<|start|>assistant", "<|end|>", "<|return|>", "<|call|>")
_MOST_MARKS = 20


class BadReply(ValueError):  # noqa: N818 - named for what it is about, as CannotScore is
    """The judge's reply cannot be used; the message says what was wrong, in words for the judge."""


def was_cut_off(ended: object) -> bool:
    """Whether a provider's word for why a reply ended says that it was cut off.

    Example:
        >>> was_cut_off("length"), was_cut_off("FinishReason.MAX_TOKENS"), was_cut_off("stop")
        (True, True, False)
    """
    return _CUT_OFF.search(str(ended)) is not None


def was_withheld(ended: object) -> bool:
    """Whether a provider's word for why a reply ended says that a filter withheld it or the model refused.

    Example:
        >>> was_withheld("content_filter"), was_withheld("RECITATION"), was_withheld("length")
        (True, True, False)
    """
    return _WITHHELD.search(str(ended)) is not None


def one_of(values: Iterable[str]) -> Schema:
    """Return the schema of one of the given words."""
    return {"type": "string", "enum": list(values)}


def whole(least: int, most: int) -> Schema:
    """Return the schema of an integer within bounds, both included."""
    return {"type": "integer", "minimum": least, "maximum": most}


def listing(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """Return the schema of a list of `least` to `most` items (no upper bound when None)."""
    bounds: Schema = {"minItems": least} if most is None else {"minItems": least, "maxItems": most}
    return {"type": "array", "items": items, **bounds}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Form:
    """What a reply must be, made once and asked for many times.

    Attributes:
        schema: Of the reply.
        asked: The sentence that asks for it.
        choices: The words one of which is the whole reply; None for JSON.
    """

    schema: Schema
    asked: str
    choices: tuple[str, ...] | None = None


def json_form(schema: Schema, **names: str) -> Form:
    """The form of a JSON value, which is asked for by an example; in it `names` stand for the texts under a key.

    Example:
        >>> json_form(record(questions=listing(TEXT, 3, 3)), questions="QUESTION").asked
        'Reply with bare JSON: {"questions": [QUESTION]}, 3 in the list.'
        >>> json_form(record(answers=record(**{"1": one_of(("yes", "no"))}))).asked
        'Reply with bare JSON: {"answers": {NUMBER: WORD}}.'
    """
    fields: Mapping[str, Schema] = schema["properties"]
    inside = next(iter(fields.values()))
    size = inside.get("maxItems")
    count = f", {size} in the list" if size is not None and size == inside["minItems"] else ""
    return Form(schema, f"Reply with bare JSON: {_example(schema, names, None)}{count}.")


def _example(schema: Schema, names: Mapping[str, str], name: str | None) -> str:
    kind = schema["type"]
    if kind == "object":
        fields: Mapping[str, Schema] = schema["properties"]
        first = next(iter(fields))
        if first.isdigit():
            return f"{{NUMBER: {_example(fields[first], names, name)}}}"
        parts = (f'"{key}": {_example(field, names, names.get(key, name))}' for key, field in fields.items())
        return f"{{{', '.join(parts)}}}"
    if kind == "array":
        return f"[{_example(schema['items'], names, name)}]"
    if kind == "string":
        return name or ("WORD" if "enum" in schema else "TEXT")
    return "true or false" if kind == "boolean" else "NUMBER"


def parse(text: str, schema: Schema) -> Any:  # noqa: ANN401 - a JSON value; the schema says of what type
    """Return the one JSON value that `text` is, which is of the schema in every part.

    Raises:
        BadReply: It is not one JSON value, or not of the schema: exact types, no other keys, and no key missing.

    Example:
        >>> parse('{"ids": [1, 2]}', record(ids=listing(whole(1, 2))))
        {'ids': [1, 2]}
        >>> parse('{"ids": [3]}', record(ids=listing(whole(1, 2))))
        Traceback (most recent call last):
        ragstone.judging.reply.BadReply: ids.0: 3 is not from 1 to 2
    """
    value = parse_json(text)
    if problem := next(_problems(value, schema, ""), None):
        raise BadReply(problem)
    return value


def _problems(value: Any, schema: Schema, path: str) -> Iterator[str]:  # noqa: ANN401 - a JSON value
    """Yield where a value is not of its schema, and why."""
    kind: str = schema["type"]
    where = path.removeprefix(".") or "the whole"
    # The type has to be the very one: True is no integer.
    if type(value) is not _TYPES[kind]:
        yield f"{where}: is not {_SPOKEN[kind]}"
    elif kind == "object":
        fields: Mapping[str, Schema] = schema["properties"]
        for what, keys in (("missing", fields.keys() - value.keys()), ("unknown", value.keys() - fields.keys())):
            if keys:
                # In the order of numbers.
                named = sorted(keys, key=lambda key: (len(key), key))[:_MOST_NAMED]
                yield f"{where}: {what}: {', '.join(key[:20] for key in named)}"
        for key, form in fields.items():
            yield from _problems(value[key], form, f"{path}.{key[:40]}")
    elif kind == "array":
        least: int = schema["minItems"]
        # Other upper bounds only stop constrained judges that do not end a list.
        exact = schema.get("maxItems") == least
        if len(value) < least or (exact and len(value) > least):
            yield f"{where}: {len(value)} in the list where {'' if exact else 'at least '}{least} were asked for"
        for i, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{path}.{i}")
    elif kind == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        yield f"{where}: {str(value)[:20]} is not from {schema['minimum']} to {schema['maximum']}"
    elif value not in schema.get("enum", (value,)):
        yield f"{where}: is not one of {', '.join(schema['enum'])}"


def as_shares(
    probabilities: Mapping[str, float],
    choices: Sequence[str],
    fault: str = "the judge's adapter filled LLMReply.probabilities wrongly: ",
) -> dict[str, float]:
    """Return the probabilities that a judge's adapter gave, brought to a sum of 1.

    Args:
        probabilities: Of each choice.
        choices: Those that were asked about.
        fault: The beginning of what is said of those that cannot be used.

    Raises:
        BadReply: They are not those of the choices, one is no number from 0 up and finite, or all are 0.

    Example:
        >>> as_shares({"yes": 0.2, "no": 0.2}, ("yes", "no"))
        {'yes': 0.5, 'no': 0.5}
    """
    given: object = probabilities
    if not is_mapping(given) or set(probabilities) != set(choices):
        raise BadReply(f"{fault}they are not those of the choices ({', '.join(choices)}), each once")
    numbers: dict[str, float] = {}
    for choice in choices:
        value: object = probabilities[choice]
        if isinstance(value, bool) or not isinstance(value, Real):
            raise BadReply(f"{fault}{choice!r} has {type(value).__name__}, not a number")
        try:
            numbers[choice] = float(value)
        except OverflowError:
            numbers[choice] = math.inf
        if not 0 <= numbers[choice] < math.inf:
            raise BadReply(f"{fault}{choice!r} has {numbers[choice]:g}, not a finite number of at least 0")
    total = sum(numbers.values())
    if not 0 < total < math.inf:
        raise BadReply(f"{fault}all are 0, or their sum is not finite")
    if max(numbers.values()) <= 1 and math.isclose(total, 1):
        # They stay as the judge gave them, to the last digit.
        return numbers
    return {choice: number / total for choice, number in numbers.items()}


def distinct(items: Sequence[str], what: str) -> tuple[str, ...]:
    """Return texts of a reply, each once and without space around it: what is said twice would count twice.

    Raises:
        BadReply: One is blank.

    Example:
        >>> distinct(["A?", "A? "], "question")
        ('A?',)
    """
    bare = [item.strip() for item in items]
    if not all(map(is_visible, bare)):
        raise BadReply(f"a {what} is blank")
    return tuple(dict.fromkeys(bare))


def parse_json(text: str) -> Any:  # noqa: ANN401 - a JSON value has no narrower type before it is checked
    """Return the one JSON value that `text` is.

    Half characters (lone surrogates, which no encoding can carry) in it become U+FFFD.

    Raises:
        BadReply: It is empty, is not JSON, holds more than one value or anything around it, repeats a key in an
            object, or holds NaN or Infinity.
    """
    if not text.strip():
        raise BadReply("it was empty")
    try:
        value = _DECODER.decode(text)
        if _MAYBE_HALF.search(text):
            value = _DECODER.decode(_HALF_CHARACTER.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
        return value
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise BadReply("there is more than one value, or text after the JSON") from None
        raise BadReply(f"it is not bare JSON ({error.msg} at character {error.pos})") from None
    except BadReply:
        raise
    except (ValueError, RecursionError) as error:
        # An integer may have more digits than Python converts.
        raise BadReply(f"it is not usable JSON ({str(error)[:80]})") from None


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON by its pairs, as `json`'s `object_pairs_hook`; BadReply: a key stands twice."""
    value = dict(pairs)
    if len(value) != len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise BadReply(f"the key {twice[:40]!r} stands twice in one object")
    return value


def _no_constant(name: str) -> float:
    raise BadReply(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=_no_constant)


def unfence(text: str) -> str:
    r"""The inside of a Markdown code fence that wraps a whole message; other text as it is.

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

    What stands before a closing mark of thoughts (`</think>`, `[/THINK]`, `</thinking>`, `</reasoning>`, the final
    channel of gpt-oss) is no part of the answer, whether the thoughts were opened or not. A byte-order mark and
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
    # Without one of these no mark closes thoughts.
    closed = any(["</" in text, "[/" in text, "<|" in text])
    thoughts = None if not closed or is_answer(text, choices) else find_thoughts(text, choices)
    if thoughts is None:
        return _unwrapped(text, choices), False
    end, outside = thoughts
    if any(is_answer(piece, choices) for piece in outside):
        return text, False
    return _unwrapped(_bare_message(text[end:]).strip(), choices), True


def is_answer(text: str, choices: Sequence[str] | None = None) -> bool:
    """Whether a text is one of the choices, or one JSON value, and nothing else."""
    bare = _unwrapped(text, choices)
    if choices is not None:
        return bare in choices
    try:
        parse_json(bare)
    except BadReply:
        return False
    return True


def _unwrapped(text: str, choices: Sequence[str] | None) -> str:
    """Return a text without a byte-order mark and a fence around it; the choice that it is, if it is one."""
    bare = text.lstrip()
    bare = bare.lstrip(_BYTE_ORDER_MARK) if bare.startswith(_BYTE_ORDER_MARK) else text
    if "```" in bare:
        bare = unfence(bare)
    return bare if choices is None else choice_in(bare, choices)


def find_thoughts(text: str, choices: Sequence[str] | None = None) -> tuple[int, list[str]] | None:
    """Return where the thoughts in a text end, and the texts before that outside of them; None where they do not end.

    They end at the first mark behind which there is nothing but an answer, which may quote further marks; else at the
    last one. Of more than 20 marks the last one counts, so that the time is linear in the text. A text that begins like
    JSON has none: what looks like a mark is quoted.
    """
    marks = [] if _JSON.match(text) else list(_MARK.finditer(text))
    # The chat template may have opened them, unseen.
    thinking = bool(marks) and not marks[0]["opening"]
    outside: list[str] = []
    start = 0
    for mark in marks:
        if not thinking:
            outside.append(_bare_message(text[start : mark.start()]))
        start, thinking = mark.end(), mark["opening"] is not None
        if not thinking and len(marks) <= _MOST_MARKS and is_answer(_bare_message(text[start:]), choices):
            break
    return (start, outside) if start and not thinking else None


def _bare_message(text: str) -> str:
    """Return a message of gpt-oss without the marks at its end; any other text as it is."""
    bare = text.rstrip()
    for mark in _MESSAGE_ENDS:
        bare = bare.removesuffix(mark)
    return text if len(bare) == len(text.rstrip()) else bare


def choice_in(text: str, choices: Sequence[str]) -> str:
    """Return the choice that `text` is, in any case, with quotes, emphasis or one full stop; `text` if it is none."""
    if text in choices:
        return text
    bare = _unquoted(text)
    if bare.endswith(STOPS):
        bare = _unquoted(bare[:-1])
    matches = [choice for choice in choices if choice.casefold() == bare.casefold()]
    return matches[0] if len(matches) == 1 else text


def _unquoted(text: str) -> str:
    """Return a text without space, and pairs of quotes and emphasis, around it."""
    bare = text.strip()
    while len(bare) > 2 and (
        (bare[0] in QUOTES and bare[-1] in QUOTES) or (bare[0] in EMPHASIS and bare[0] == bare[-1])
    ):
        bare = bare[1:-1].strip()
    return bare


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
