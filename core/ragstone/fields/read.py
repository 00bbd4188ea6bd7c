"""One reading of a mapping: what it holds of a sample, where each field came from, and what could not be told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol, cast

from ragstone.fields.names import (
    ENVELOPES,
    FIELDS,
    ID_FIELDS,
    STRONG,
    STRONGLY,
    UNLESS_BESIDE,
    WEAKLY,
    FieldName,
    bare,
    final_step,
    may_hold,
    strongly,
)
from ragstone.fields.values import alike, ids_in, is_path, text_of_document
from ragstone.plain import as_list, fields_of, is_list, is_mapping

# How names begin that golden sets give ids, and apps what they have graded: texts of one word each are no contexts.
_JUDGED = "relevant"
# {"output": {"state": {"messages": ...}}}, and some more.
_DEPTH = 5


class Forms(Protocol):
    """How the values of one world are read: of plain rows, of LangChain, of LlamaIndex."""

    def entries(self, value: object, /) -> Mapping[str, object] | None:
        """The values under names in a mapping, a model or a state; None for anything else."""
        ...

    def value(self, field: FieldName, value: object, /) -> object | None:
        """A value as a field has it: a text, or a list of texts. None where it cannot be the field."""
        ...

    def said(self, field: FieldName, entries: Mapping[str, object], /) -> tuple[str, object] | None:
        """What was said last in a conversation among the entries, behind its name: by the user, or by the app."""
        ...


class Found(NamedTuple):
    """A field's value, the name that it stood under (dotted where it is deeper), and what stood there."""

    value: object
    name: str
    raw: object = None


@dataclass(frozen=True, slots=True)
class Read:
    """What a mapping holds of a sample.

    Attributes:
        found: What was read, by field.
        unread: Names that hold no field, and what stands there.
        conflicts: Of a field that cannot be told, the names whose texts differ.
        unreadable: Of a field without a value, its names that hold something else.

    Example:
        >>> read({"question": "Why?", "docs": ["So."], "final_answer": "Thus.", "answer": "A draft.", "k": 3})
        Read(user_input <- question, retrieved_contexts <- docs, response <- final_answer; not read: answer, k)
    """

    found: Mapping[FieldName, Found]
    unread: Mapping[str, object] = field(default_factory=dict[str, object])
    conflicts: Mapping[FieldName, Sequence[str]] = field(default_factory=dict[FieldName, Sequence[str]])
    unreadable: Mapping[FieldName, Sequence[str]] = field(default_factory=dict[FieldName, Sequence[str]])

    def __repr__(self) -> str:
        found = ", ".join(f"{name} <- {each.name}" for name, each in self.found.items())
        unread = f"; not read: {', '.join(self.unread)}" if self.unread else ""
        return f"Read({found}{unread})"

    def value(self, name: FieldName) -> object:
        """The value of a field; None where it was not read."""
        found = self.found.get(name)
        return None if found is None else found.value


class Plain:
    """The values of plain rows: texts, numbers, lists, mappings and objects with fields."""

    def entries(self, value: object) -> Mapping[str, object] | None:
        """The values under the names of a mapping or of an object with fields."""
        if not is_mapping(value):
            return fields_of(value)
        if {*map(type, value)} == {str}:
            return cast("Mapping[str, object]", value)
        return {name: each for name, each in value.items() if isinstance(name, str)}

    def value(self, field: FieldName, value: object) -> object | None:
        """A text as it is, the texts of contexts, or ids."""
        if field == "retrieved_contexts" and is_list(value):
            texts = [text_of_document(each) for each in value]
            return None if None in texts else texts
        if field in ID_FIELDS:
            return ids_in(value)
        is_text = isinstance(value, str)
        return value if is_text or field in ("history", "id", "metadata") else None

    def said(self, field: FieldName, entries: Mapping[str, object]) -> tuple[str, object] | None:  # noqa: ARG002
        """Nothing: a row's conversation is its history."""
        return None


PLAIN = Plain()


def read(value: object, forms: Forms = PLAIN, fields: Sequence[FieldName] = FIELDS) -> Read:
    """Read what a mapping holds of a sample, under the names of the one vocabulary.

    A strong name counts first, then what was said last in a conversation, then a weak name, where only one is there;
    then what stands in a mapping that is the sole entry or has an envelope's name. Of two strong names whose texts
    differ the one that calls itself final counts; without one the field is in conflict.

    Args:
        value: A mapping, or anything that `forms` finds entries in.
        forms: How its values are read.
        fields: The fields that are wanted.
    """
    entries = forms.entries(value)
    if entries is None:
        return Read({})
    reader = _Reader(forms)
    plans = _plans(tuple(entries))
    for name in fields:
        if name != "user_input":
            reader.read(name, plans[name], entries)
    # A name that may hold question or answer is the answer's.
    if "user_input" in fields:
        reader.read("user_input", plans["user_input"], entries)
    found = reader.found
    nothing = found.get("retrieved_contexts")
    if nothing is not None and not nothing.value and _has_lists(entries, forms, nothing.name):
        # What was found may stand under another name.
        reader.unreadable["retrieved_contexts"] = [found.pop("retrieved_contexts").name]
    used = {name if "." not in name else name.partition(".")[0] for _, name, _ in found.values()}
    unread = {name: each for name, each in entries.items() if name not in used}
    return Read({name: found[name] for name in fields if name in found}, unread, reader.conflicts, reader.unreadable)


def _has_lists(entries: Mapping[str, object], forms: Forms, but: str) -> bool:
    """Whether something else in entries may be contexts."""
    others = [name for name in entries if name != but and bare(name) not in _CONVERSATIONS]
    lists = [entries[name] for name in others if is_list(entries[name]) and may_hold("retrieved_contexts", name)]
    return any(forms.value("retrieved_contexts", each) for each in lists)


def likely(reading: Read, field: FieldName, forms: Forms = PLAIN) -> str | None:
    """The one entry that was not read and can be meant by a field; None where there are several, or none.

    Example:
        >>> likely(read({"question": "Why?", "findings": ["So."], "said": "Thus it is."}), "response")
        'said'
    """
    names: list[str] = []
    # The names that differ can be meant, too.
    unread: Mapping[str, object] = {} if field in reading.conflicts else reading.unread
    for name, value in unread.items():
        known = strongly(name) or bare(name) in WEAKLY or bare(name) in _CONVERSATIONS
        if known or value is None or _are_labels(value):
            continue
        if may_hold(field, name, text=isinstance(value, str)) and forms.value(field, value):
            names.append(name)
    if field == "retrieved_contexts":
        names = [name for name in names if not isinstance(unread[name], str)] or names
    return names[0] if len(names) == 1 else None


def _are_labels(value: object) -> bool:
    """Whether texts, or one with commas, are of one word of ASCII each, as ids, labels and key words are."""
    texts = value.strip("[]").split(",") if isinstance(value, str) else value if is_list(value) else []
    return bool(texts) and all(isinstance(text, str) and text.isascii() and len(text.split()) < 2 for text in texts)


_CONVERSATIONS = {"messages", *map(bare, STRONG["history"])}


def under(value: object, name: str, forms: Forms = PLAIN, missing: object = None) -> object:
    """What stands under a name that the user says, with dots where it is deeper; `missing` where nothing does.

    A star leads into each item of a list.

    Example:
        >>> under({"outputs": {"answers": ["Jane Austen."]}}, "outputs.answers.0")
        'Jane Austen.'
        >>> under({"hits": [{"id": "d1", "score": 0.9}, {"id": "d2", "score": 0.7}]}, "hits.*.id")
        ['d1', 'd2']
    """
    entries = forms.entries(value) or {}
    if name in entries:
        return entries[name]
    first, _, rest = name.partition(".")
    if is_list(value) and first == "*":
        items = [under(each, rest, forms, missing) for each in value]
        return missing if missing in items else items
    if is_list(value) and first.isdecimal() and int(first) < len(value):
        inner: object = value[int(first)]
    elif first in entries:
        inner = entries[first]
    else:
        return missing
    return under(inner, rest, forms, missing) if rest else inner


@dataclass(frozen=True, slots=True)
class _Plan:
    """Of some names: those that say they hold a field, the only one, those that may, and what is looked into."""

    strong: Sequence[str]
    weak: Sequence[Sequence[str]]
    inner: Sequence[str]
    alone: str
    empty: bool


@lru_cache(maxsize=10_000)
def _plans(names: tuple[str, ...]) -> Mapping[FieldName, _Plan]:
    """What names may hold, by field; remembered, because rows and states have the same names again and again."""
    there = {bare(name) for name in names}
    order = [*STRONGLY]
    # Without those that hold no field in the company of the others.
    counting = [name for name in names if there.isdisjoint(map(bare, UNLESS_BESIDE.get(bare(name), ())))]
    plans: dict[FieldName, _Plan] = {}
    for each in FIELDS:
        strong = [name for name in counting if each in strongly(name)]
        weak = [name for name in counting if each in WEAKLY.get(bare(name), ())]
        # Those first that may hold no other one.
        own = [name for name in weak if len(WEAKLY[bare(name)]) == 1]
        shared = [name for name in weak if name not in own]
        inner = [name for name in names if _is_looked_into(name, each, alone=len(names) == 1)]
        strong.sort(key=lambda name: order.index(bare(name)) if bare(name) in order else len(order))
        known = [name for name in strong if bare(name) in STRONGLY and not bare(name).startswith(_JUDGED)]
        alone = known[0] if len(strong) == len(known) == 1 else ""
        plans[each] = _Plan(strong, (own, shared), inner, alone, empty=not (strong or weak or inner))
    return plans


def looked_into(field: FieldName, entries: Mapping[str, object]) -> Sequence[str]:
    """The names of inner mappings to read for a field: the only one, and those of envelopes."""
    return _plans(tuple(entries))[field].inner


def _is_looked_into(name: str, field: FieldName, *, alone: bool) -> bool:
    is_other = field not in (strongly(name) or (field,))
    return bare(name) in map(bare, ENVELOPES.get(field, ())) or (alone and not is_other)


class _Reader:
    """Reads the fields of one mapping, each after the others."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self.found: dict[FieldName, Found] = {}
        self.conflicts: dict[FieldName, Sequence[str]] = {}
        self.unreadable: dict[FieldName, Sequence[str]] = {}

    def read(self, field: FieldName, plan: _Plan, entries: Mapping[str, object]) -> None:
        """Read one field, or note why it cannot be told."""
        # As rows have it: quick, because there may be a million of them.
        if plan.empty and field in _NEVER_SAID:
            return
        if plan.alone and (raw := entries[plan.alone]) is not None:
            value = self._forms.value(field, raw)
            if value if type(value) in _VISIBLE_IF_LONG else value is not None:
                self.found[field] = Found(value, plan.alone, raw)
                return
        found = self._in(field, plan, entries, 0)
        if len(found) == 1:
            self.found[field] = found[0]
            self.unreadable.pop(field, None)
        elif found:
            self.conflicts[field] = [each.name for each in found]

    def _in(self, field: FieldName, plan: _Plan, entries: Mapping[str, object], depth: int) -> Sequence[Found]:
        """What entries hold: one, none, or several that differ."""
        held = [each for name in plan.strong for each in self._under(field, name, entries[name], depth)]
        if any(map(_is_visible, held)):
            return _told(field, held)
        nothing = [name for name in plan.strong if entries[name] is None]
        if field == "response" or len(nothing) < len(plan.strong):
            self.unreadable[field] = plan.strong
        others = [] if plan.empty and not depth and held else [*self._otherwise(field, plan, entries, depth)]
        if field != "response" or not (held or nothing):
            return others or held[:1]
        # Its own name says that there is no answer.
        silent = [Found(None, name) for name in nothing] or held[:1]
        return [*silent, *others] if any(map(_is_visible, others)) else held[:1]

    def _otherwise(self, field: FieldName, plan: _Plan, entries: Mapping[str, object], depth: int) -> Sequence[Found]:
        """What entries hold under no strong name: in a conversation, under a weak name, or inside."""
        if field not in _NEVER_SAID and (said := self._forms.said(field, entries)) is not None:
            return [Found(said[1], said[0], entries[said[0]])]
        if plan.empty:
            return ()
        for weak in plan.weak:
            held = [each for name in weak for each in self._weakly(field, name, entries[name], depth)]
            if held:
                return _told(field, held)
        inner = [*self._inside(field, plan.inner, entries, depth)] if depth < _DEPTH else []
        return _told(field, inner) if inner else ()

    def _under(self, field: FieldName, name: str, raw: object, depth: int, behind: str = "") -> Sequence[Found]:
        """What stands under a name that says it holds the field: its value, or an inner one."""
        may_be_ids = field == "retrieved_contexts" and bare(name).startswith(_JUDGED) and _are_labels(raw)
        if raw is None or may_be_ids or (bare(name) not in STRONGLY and _are_texts(raw)):
            return ()
        if (value := self._forms.value(field, raw)) is not None:
            return [Found(value, f"{behind}{name}", raw)]
        inner = None if depth >= _DEPTH else self._forms.entries(raw)
        if not inner:
            return ()
        return self._behind(f"{behind}{name}", field, inner, depth + 1)

    def _weakly(self, field: FieldName, name: str, raw: object, depth: int) -> Sequence[Found]:
        if raw is None or (field == "user_input" and is_path(raw)):
            return ()
        value = self._forms.value(field, raw)
        if value is None:
            # An answer with facts about it: {"generation": {"answer": ..., "model": ...}}.
            envelope = _is_looked_into(name, field, alone=False)
            inner = {} if envelope else self._forms.entries(raw) or {}
            strong = _plans(tuple(inner))[field].strong
            return [each for one in strong for each in self._under(field, one, inner[one], depth + 1, f"{name}.")]
        # What is the answer is not the question, too.
        is_taken = not depth and any(name == each.name for each in self.found.values())
        return () if is_taken else [Found(value, name, raw)]

    def _inside(
        self, field: FieldName, names: Sequence[str], entries: Mapping[str, object], depth: int
    ) -> Iterator[Found]:
        """What stands in inner mappings that one looks into."""
        for name in names:
            inner = self._forms.entries(entries[name])
            yield from self._behind(name, field, inner, depth + 1) if inner else ()

    def _behind(self, name: str, field: FieldName, inner: Mapping[str, object], depth: int) -> Sequence[Found]:
        """What an inner mapping holds, behind its name."""
        found = self._in(field, _plans(tuple(inner))[field], inner, depth)
        return [Found(each.value, f"{name}.{each.name}", each.raw) for each in found]


def _told(field: FieldName, held: Sequence[Found]) -> Sequence[Found]:
    """The one of several values that counts; all of them where they differ and none calls itself final."""
    visible = [each for each in held if _is_visible(each)]
    if len(visible) < 2:
        return visible or held[:1]
    steps = [final_step(field, each.name.rpartition(".")[2]) for each in visible]
    several = [each for each, step in zip(visible, steps, strict=True) if step == max(steps)]
    first = several[0] if field != "retrieved_contexts" else _passages(several, visible, steps)
    same = all(alike(first.value, each.value) for each in several)
    return [first] if same else several


def _passages(last: Sequence[Found], held: Sequence[Found], steps: Sequence[int]) -> Found:
    """Passages by themselves, which say more than the text that they are joined to, be it by a later step."""
    lists = [each for each in last if not isinstance(each.raw, str)]
    if lists:
        return lists[0]
    for _, each in sorted(zip(steps, held, strict=True), key=lambda pair: -pair[0]):
        texts = as_list(None if isinstance(each.raw, str) else each.value)
        if texts and all(alike(text, last[0].raw) for text in texts):
            return each
    return last[0]


_NEVER_SAID = (*ID_FIELDS, "history", "id", "metadata")
_VISIBLE_IF_LONG = (str, list, tuple)


def _is_visible(found: Found) -> bool:
    value = found.value
    return bool(value) if isinstance(value, str) or is_list(value) else value is not None


def _are_texts(value: object) -> bool:
    return isinstance(value, str) or (is_list(value) and all(isinstance(each, str) for each in value))
