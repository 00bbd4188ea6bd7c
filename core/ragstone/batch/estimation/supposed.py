"""What a judge might reply, made from the schema that it is asked to keep to: for estimates, with no judge asked."""

import itertools
import json
import re
from typing import TYPE_CHECKING, cast

from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.values import as_dict, as_list

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEXT_CHARACTERS = 80
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f\u0964\u06d4]|[^\s.!?>](?=\s*\n)")  # ">" ends a fence
_MOST_NUMBERS = 5
_LONGEST_LIST = 1_000
_DEEPEST = 32


def supposed_reply(request: LLMRequest) -> LLMReply:
    """Return a reply of the asked form and of plausible size; nothing in it means anything.

    - One of a few words: the first; each is as probable as the others.
    - A list of so many items: so many, as the schema says. A list without bounds: one item for every two sentences
      of the data, within the schema's bounds; of numbers (of sentences, say) one for every ten in the range, 1 to 5.
    - A text: 80 characters, which differ from those of the other texts. A flag: false. A number: the least.
    - Without a schema: such a text.

    Example:
        >>> from ragstone.judging.schema import TEXT, listing, record
        >>> reply = supposed_reply(LLMRequest("demo.claims", "", "One. Two. Three.", record(claims=listing(TEXT))))
        >>> len(json.loads(reply.text)["claims"])
        2
    """
    if request.choices is not None:
        share = 1.0 / len(request.choices)
        return LLMReply(request.choices[0], probabilities=dict.fromkeys(request.choices, share))
    maker = _Maker(request)
    if not request.schema:
        return LLMReply(maker.text({}))
    return LLMReply(json.dumps(maker.value(request.schema, 0), ensure_ascii=False))


def sentence_count(text: str) -> int:
    """Return about how many sentences or lines a text has, at least 1; in microseconds, so only about.

    Example:
        >>> sentence_count("One. Two? 3.5 is three."), sentence_count("")
        (3, 1)
    """
    return 1 + sum(1 for _ in _SENTENCE_END.finditer(text.strip()))


class _Maker:
    def __init__(self, request: LLMRequest) -> None:
        self._schema = request.schema
        self._user = request.user
        self._numbers: Iterator[int] = itertools.count(1)

    def value(self, schema: object, depth: int) -> object:
        node = self._resolved(as_dict(schema))
        if depth > _DEEPEST:  # a schema that holds itself: what is optional ends it
            return None
        if "const" in node:
            return node["const"]
        if options := as_list(node.get("enum")):
            return options[0]
        for several in ("anyOf", "oneOf"):
            if alternatives := as_list(node.get(several)):
                return self.value(alternatives[0], depth + 1)
        kind = node.get("type")
        if isinstance(kind, list):
            kind = next(iter(cast("list[object]", kind)), None)
        if kind == "object" or "properties" in node:
            required = as_list(node.get("required"))
            properties = as_dict(node.get("properties"))
            return {name: self.value(properties.get(cast("str", name)), depth + 1) for name in required or properties}
        if kind == "array":
            return self._list(node, depth)
        if kind in ("integer", "number"):
            return _number(node)
        return {"boolean": False, "null": None}[kind] if kind in ("boolean", "null") else self.text(node)

    def text(self, node: dict[str, object]) -> str:
        text = (f"Supposed text {next(self._numbers)}. " * 6)[:_TEXT_CHARACTERS]
        most = node.get("maxLength")
        return text[:most] if isinstance(most, int) else text

    def _list(self, node: dict[str, object], depth: int) -> list[object]:
        items = self._resolved(as_dict(node.get("items")))
        least = _whole(node, "minItems", 0)
        if items.get("type") == "integer" and "minimum" in items and "maximum" in items:
            first, last = _whole(items, "minimum", 0), _whole(items, "maximum", 0)
            count = max(least, min(max(1, (last - first + 1) // 10), _whole(node, "maxItems", _MOST_NUMBERS)))
            return list(range(first, min(first + count, last + 1)))
        data = self._user.rpartition("\n\n")[0] or self._user  # without the instructions that are repeated behind it
        count = min(max(least, -(-sentence_count(data) // 2)), _whole(node, "maxItems", _LONGEST_LIST))
        return [self.value(items, depth + 1) for _ in range(count)]

    def _resolved(self, node: dict[str, object]) -> dict[str, object]:
        for _ in range(_DEEPEST):
            where = node.get("$ref")
            if not isinstance(where, str):
                return node
            found: object = self._schema
            for part in where.removeprefix("#").strip("/").split("/"):
                found = as_dict(found).get(part.replace("~1", "/").replace("~0", "~"))
            node = as_dict(found)
        return {}


def _number(node: dict[str, object]) -> object:
    least = node.get("minimum", 1 if node.get("type") == "integer" else 0.5)
    most = node.get("maximum", least)
    return min(cast("float", least), cast("float", most)) if isinstance(least, (int, float)) else 1


def _whole(node: dict[str, object], name: str, default: int) -> int:
    value = node.get(name)
    return value if isinstance(value, int) else default
