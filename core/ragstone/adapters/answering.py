"""What the answering call read: of what searches returned, the texts that stand in the prompts behind an app's answer.

Texts are compared by their letters and digits alone, because a prompt has them escaped, numbered, marked up or cut. In
doubt a text counts as read, and where nothing is known all do.
"""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from ragstone.plain import fields_of, is_list, is_mapping

# What has fewer letters may stand anywhere by chance. Here and below a letter is a byte of UTF-8: one of Chinese says
# as much as three of Latin.
_FEW = 20
_SHORTEST_WORD = 4
# A part of a text that stands nowhere by chance, and how far apart those are that are compared.
_STRETCH, _STEP, _PERIOD = 40, 5, 25
# Of a text whose words stand there with others between them: how many words of its own, and which part of them.
_OWN_WORDS, _MOST_WORDS = 5, 0.9
_MOST_CALLS = 1_000
_MOST_PIECES = 100
_DEPTH = 8

_NEITHER = bytes(code for code in range(128) if not chr(code).isalnum())
_NEITHER_BEYOND_ASCII = re.compile(r"[^\w\x00-\x7f]+")
_WORDS = re.compile(r"[^\W_]+")
_TAG = re.compile(r"<[^<>]{1,200}>")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_character = lru_cache(1_000)(html.unescape)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[nrtbf])")


@dataclass(frozen=True, slots=True, eq=False)
class ModelCall:
    """A call of a model.

    Attributes:
        prompt: The texts that it was given, such as one a message.
        said: What it said, and what it passed to tools; empty while that is not known.
    """

    prompt: Sequence[str]
    said: Sequence[str] = ()


def texts_in(content: object, depth: int = _DEPTH) -> Iterator[str]:
    """Yield the texts in a message's content: of its blocks, whatever their form.

    Example:
        >>> [*texts_in([{"type": "text", "text": "Emma is a novel."}])]
        ['text', 'Emma is a novel.']
    """
    inner: Iterable[object] = ()
    if isinstance(content, str):
        yield content
    elif is_list(content):
        inner = content
    else:
        inner = (content if is_mapping(content) else fields_of(content) or {}).values()
    for each in inner if depth else ():
        yield from texts_in(each, depth - 1)


def texts_read(
    found: Sequence[str], calls: Sequence[ModelCall], answer: str, question: str = "", passed_on: Sequence[str] = ()
) -> list[str] | None:
    """The texts that the call which said an answer has read; None where that is not known, so that all of them count.

    Args:
        found: What searches returned.
        calls: The calls of models that ended well, in their order.
        answer: What the app answered.
        question: What it was asked, which may have a text in it.
        passed_on: Texts of documents that steps returned: one that stands whole was read, too.

    Example:
        >>> calls = [ModelCall(["Emma is a novel. Who wrote it?"], ["Jane Austen did."])]
        >>> texts_read(["Emma is a novel.", "Ulysses is a novel."], calls, "Jane Austen did.")
        ['Emma is a novel.']
    """
    prompts = _prompts_behind(_calls_that_said(answer, calls), calls)
    left = b"\n".join(form for prompt in prompts for form in _forms(prompt))
    forms = {text: _forms(text) for text in found}
    standing, left = _standing_whole(forms, left)
    asked = _letters(question)
    rest = {text: of_text for text, of_text in forms.items() if text not in standing}
    if rest:
        standing |= _standing_by_parts(rest, left.replace(asked, b"\n") if len(asked) >= _STRETCH else left)
    if standing:
        standing |= _standing_by_words([text for text in rest if text not in standing], prompts, standing)
    known = [forms[text][0] for text in standing]
    others = {text: _forms(text) for text in passed_on if text not in forms}
    others = {text: of_text for text, of_text in others.items() if not _is_one_of(of_text[0], known)}
    more, _ = _standing_whole(others, left)
    missing = [len(of_text[0]) for text, of_text in forms.items() if text not in standing]
    kept = [text for text in (*forms, *others) if text in standing or text in more]
    own = [len(letters) for letters in map(_letters, kept) if letters not in asked]
    # Short ones, or those in the question, may stand there by chance.
    by_chance = not own or (max(own) < _FEW <= max(missing, default=0))
    return None if missing and by_chance else kept


def _is_one_of(text: bytes, known: Iterable[bytes]) -> bool:
    return any(text in each or each in text for each in known)


# --- the calls ------------------------------------------------------------------------------------


def _calls_that_said(answer: str, calls: Sequence[ModelCall]) -> Sequence[ModelCall]:
    """The last call that said an answer; all that did, where it is short; else those of which it is composed."""
    wanted = _letters(answer)
    if len(wanted) < _SHORTEST_WORD or len(calls) > _MOST_CALLS:
        # Whoever grades a text says "yes", too.
        return ()
    if len(wanted) < _FEW:
        words = _words(answer)
        said_by = {call: [_words(said) for said in _said(call)] for call in calls}
        ends = any(said.endswith(words) for each in said_by.values() for said in each)
        return [call for call in calls if ends and any(words in said for said in said_by[call])]
    saying: list[ModelCall] = []
    parts: list[ModelCall] = []
    covered = 0
    for call in calls:
        said = [form for text in _said(call) for form in _forms(text)]
        part = max((len(each) for each in said if each in wanted), default=0)
        if any(wanted in each for each in said):
            saying.append(call)
        elif part >= _FEW:
            parts.append(call)
            covered += part
    return saying[-1:] or (parts if 2 * covered >= len(wanted) else ())


def _prompts_behind(answering: Sequence[ModelCall], calls: Sequence[ModelCall]) -> Sequence[str]:
    """The texts of the prompts of some calls, and of those whose output stands in such a text, and so on back."""
    others: dict[ModelCall, Sequence[tuple[bytes, str]]] = {
        call: [(_letters(text), _words(text)) for text in _said(call)] for call in calls if call not in answering
    }
    read: dict[str, None] = {}
    new = [text for call in answering for text in call.prompt]
    while new:
        new = [*dict.fromkeys(new)]
        read.update(dict.fromkeys(new))
        letters = b"\n".join([b"", *map(_letters, new), b""])
        any_short = any(len(each) < _FEW for said in others.values() for each, _ in said)
        words = " ".join(map(_words, new)) if any_short else ""
        quoted = [call for call, said in others.items() if any(_is_quoted(*each, letters, words) for each in said)]
        for call in quoted:
            del others[call]
        new = [text for call in quoted for text in call.prompt if text not in read]
    return [*read]


def _is_quoted(said: bytes, as_words: str, letters: bytes, words: str) -> bool:
    """Whether an output stands in texts: anywhere, a short one as words, the shortest as a text of its own."""
    if len(said) >= _FEW:
        return said in letters
    return (len(said) >= _SHORTEST_WORD and as_words in words) or b"\n%b\n" % said in letters


def _said(call: ModelCall) -> set[str]:
    """What a call said: its outputs, with tags and without, their lines, and the values in those that are JSON."""
    pieces: dict[str, None] = {}
    for text in call.said:
        lines = text.split("\n", _MOST_PIECES)[:_MOST_PIECES]
        pieces |= dict.fromkeys([text, _TAG.sub(" ", text), *lines, *_values_in(text)][: 2 * _MOST_PIECES])
    return {text for text in pieces if _letters(text)}


def _values_in(text: str) -> Iterator[str]:
    start, end = re.search(r"[\[{]", text), max(text.rfind("}"), text.rfind("]"))
    if start is not None:
        # RecursionError: it is nested a thousand levels deep.
        with suppress(ValueError, RecursionError):
            yield from texts_in(json.loads(text[start.start() : end + 1], parse_int=str, parse_float=str))


# --- the texts ------------------------------------------------------------------------------------


def _standing_whole(texts: Mapping[str, Sequence[bytes]], prompts: bytes) -> tuple[set[str], bytes]:
    """The texts that stand in prompts, and the prompts without them: each place counts for the longest text only."""
    standing: set[str] = set()
    for text in sorted(texts, key=lambda text: -len(texts[text][0])):
        forms = [form for form in texts[text] if form]
        if any(form in prompts for form in forms):
            standing.add(text)
            for form in forms:
                # A short one may stand within what is left of others.
                prompts = prompts.replace(form, b"\n") if len(form) >= _FEW else prompts
    return standing, prompts


def _standing_by_parts(texts: Mapping[str, Sequence[bytes]], prompts: bytes) -> set[str]:
    """The texts of which a stretch stands in prompts: always one of 70 letters, often a shorter one."""
    known = {prompts[at : at + _STRETCH] for at in range(0, len(prompts) - _STRETCH + 1, _STEP)}
    return {text for text, forms in texts.items() if any(_has_stretch(form, known) for form in forms)}


def _has_stretch(text: bytes, known: set[bytes]) -> bool:
    last = len(text) - _STRETCH
    starts = (at for start in range(0, last + 1, _PERIOD) for at in range(start, min(start + _STEP, last + 1)))
    return any(text[at : at + _STRETCH] in known for at in starts)


def _standing_by_words(texts: Iterable[str], prompts: Iterable[str], standing: Iterable[str]) -> set[str]:
    """The texts whose own words nearly all stand in prompts, as where their lines are numbered."""
    own = {text: {*_words(text).split()} for text in texts}
    read = {word for prompt in prompts for word in _words(prompt).split()} if own else set[str]()
    others = {word for text in standing for word in _words(text).split()} if own else set[str]()
    found: set[str] = set()
    for text, words in own.items():
        mine = words - others
        if len(mine) >= _OWN_WORDS and len(mine & read) >= _MOST_WORDS * len(mine):
            found.add(text)
    return found


# --- letters --------------------------------------------------------------------------------------


def _without_escapes(text: str) -> str:
    """A text in small letters, the escapes of JSON and HTML undone."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2] or "20", 16)), text)
    if "&" in text:
        text = _ENTITY.sub(_entity, text)
    return text.lower()


def _entity(match: re.Match[str]) -> str:
    return _character(match[0])


def _letters(text: str) -> bytes:
    """A text's letters and digits alone."""
    text = _without_escapes(text)
    if not text.isascii():
        text = _NEITHER_BEYOND_ASCII.sub("", text)
    return text.encode().translate(None, _NEITHER)


def _forms(text: str) -> list[bytes]:
    """A text's letters and digits, with tags and without."""
    return [_letters(text), *([_letters(_TAG.sub(" ", text))] if "<" in text else ())]


def _words(text: str) -> str:
    """A text's words, with a space around each."""
    return f" {' '.join(_WORDS.findall(_without_escapes(text)))} "
