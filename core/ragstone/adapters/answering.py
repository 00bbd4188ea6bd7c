"""What the answering call read: of what searches returned, the texts that stand in the prompts behind an app's answer.

Texts are compared by their letters and digits alone, because a prompt has them escaped, numbered, marked up or cut. In
doubt a text counts as read, and where nothing is known all do.
"""

import html
import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar
from unicodedata import normalize

from ragstone.plain import fields_of, is_list, is_mapping

# What has fewer letters may stand anywhere by chance. Here and below a letter is a byte of UTF-8: one of Chinese says
# as much as three of Latin.
_FEW = 20
_SHORTEST_WORD = 4
# A part of a text that stands nowhere by chance, and how far apart those are that are compared.
_STRETCH, _STEP, _PERIOD = 40, 5, 25
_MOST_CALLS = 1_000
_MOST_PIECES = 100
_DEPTH = 8

# What ends a sentence, a line or a field is a line's end; ASCII else without letters and digits is left out.
_BETWEEN = b'.:;!?,|"()[]{}<>\t'
_ENDS = bytes.maketrans(_BETWEEN, b"\n" * len(_BETWEEN))
_NEITHER = bytes(code for code in range(128) if not chr(code).isalnum() and code not in _BETWEEN + b"\n")
_NEITHER_BEYOND_ASCII = re.compile(r"[^\w\x00-\x7f]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_WORDS = re.compile(r"[^\W_]+")
_TAG = re.compile(r"<[^<>]{1,200}>")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[nrtbf])")
_character = lru_cache(1_000)(html.unescape)


T = TypeVar("T", bound=Hashable)


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
    """The texts that the answering call has read; None if unknown: then all count.

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
    texts, asked = {text: _plain(text) for text in found}, _plain(question)
    standing, left = _standing(texts, prompts, asked)
    known = [_letters_of(texts[text]) for text in standing]
    others = {text: _plain(text) for text in passed_on if text not in texts}
    for text, letters in [(text, _letters_of(plain)) for text, plain in others.items()]:
        if any(letters in each or each in letters for each in known):
            del others[text]
    standing |= _standing_whole(others, left)[0]
    texts |= others
    missing = [len(_letters_of(texts[text])) for text in found if text not in standing]
    kept = {text: _letters_of(plain) for text, plain in texts.items() if text in standing}
    own = [len(letters) for letters in kept.values() if letters not in _letters_of(asked)]
    # Short ones, or those in the question, may stand there by chance.
    by_chance = not own or (max(own) < _FEW <= max(missing, default=0))
    return None if missing and by_chance else [*kept]


# --- the calls ------------------------------------------------------------------------------------


def _calls_that_said(answer: str, calls: Sequence[ModelCall]) -> Sequence[ModelCall]:
    """The last call that said an answer; all that did, where it is short; one that is given it where it is composed."""
    answer = _plain(answer)
    wanted = _letters_of(answer)
    if len(wanted) < _SHORTEST_WORD or len(calls) > _MOST_CALLS:
        # Whoever grades a text says "yes", too.
        return ()
    if len(wanted) < _FEW:
        words = _spaced_words(answer)
        said_by = {call: [_spaced_words(said) for said in _said(call)] for call in calls}
        ends = any(said.endswith(words) for each in said_by.values() for said in each)
        return [call for call in calls if ends and any(words in said for said in said_by[call])]
    covered = 0
    for call in reversed(calls):
        said = [_letters_of(text) for text in _said(call)]
        if any(wanted in each for each in said):
            return [call]
        covered += max((len(each) for each in said if len(each) >= _FEW and each in wanted), default=0)
    # It is composed, so it is as a prompt, in which the outputs stand.
    return [ModelCall([answer])] if 2 * covered >= len(wanted) else ()


def _prompts_behind(answering: Sequence[ModelCall], calls: Sequence[ModelCall]) -> Sequence[str]:
    """The plain texts of the prompts of some calls, and of those whose output stands in such a text, and so on back."""
    others = {call: _outputs(call) for call in calls}
    any_short = any(short for _, short in others.values())
    read: dict[str, str] = {}
    new = {text: _plain(text) for call in answering for text in call.prompt}
    while new:
        read |= new
        letters = b"\n".join(map(_letters_of, new.values()))
        words = "\n".join(["", *map(_spaced_words, new.values()), ""]) if any_short else ""
        quoted = [call for call, said in others.items() if _is_quoted(*said, letters, words)]
        # Of a step that is done with many texts one output may be "no", or "14".
        frames = {frame for call in quoted for frame in _frame(call)}
        alike = [call for call in others.keys() - quoted if frames and not frames.isdisjoint(_frame(call))]
        quoted += [call for call in alike if any(each in words for each in others[call][1])]
        for call in quoted:
            del others[call]
        new = {text: _plain(text) for call in quoted for text in call.prompt if text not in read}
    return [*read.values()]


def _outputs(call: ModelCall) -> tuple[Collection[bytes], Collection[str]]:
    """What a call said: what has 20 letters and more, sentences of it too; and shorter ones as words."""
    said = _said(call)
    long = {part for text in said for part in (_letters_of(text), *_sentences(text)) if len(part) >= _FEW}
    return long, {_spaced_words(text) for text in said if len(_letters_of(text)) < _FEW}


def _is_quoted(long: Iterable[bytes], short: Iterable[str], letters: bytes, words: str) -> bool:
    """Whether an output stands in texts: anywhere, a short one as words, the shortest as a text of its own."""
    if any(each in letters for each in long):
        return True
    return any(f"\n{each}\n" in words or (len(each.encode()) > _SHORTEST_WORD + 1 and each in words) for each in short)


def _frame(call: ModelCall) -> Iterator[tuple[str, bytes]]:
    """How a prompt begins and ends, which calls of one step have in common."""
    if call.prompt:
        yield "first", _letters_of(_plain(call.prompt[0][:200]))[:_FEW]
        yield "last", _letters_of(_plain(call.prompt[-1][-200:]))[-_FEW:]


def _said(call: ModelCall) -> list[str]:
    """What a call said, as plain texts: its outputs, with tags and without, their lines, and the values of JSON."""
    pieces: dict[str, None] = {}
    for text in call.said:
        lines = text.split("\n", _MOST_PIECES)[:_MOST_PIECES]
        pieces |= dict.fromkeys([text, _TAG.sub(" ", text), *lines, *_values_in(text)][: 2 * _MOST_PIECES])
    return [text for text in map(_plain, pieces) if _letters_of(text)]


def _values_in(text: str) -> Iterator[str]:
    start, end = re.search(r"[\[{]", text), max(text.rfind("}"), text.rfind("]"))
    if start is not None:
        # RecursionError: it is nested a thousand levels deep.
        with suppress(ValueError, RecursionError):
            yield from texts_in(json.loads(text[start.start() : end + 1], parse_int=str, parse_float=str))


# --- the texts ------------------------------------------------------------------------------------


def _standing(texts: Mapping[str, str], prompts: Sequence[str], asked: str) -> tuple[set[str], bytes]:
    """The texts that stand in prompts, and what is left of those without the ones that stand there whole."""
    standing, left = _standing_whole(texts, b"\n".join(form for prompt in prompts for form in _letter_forms(prompt)))
    if rest := {text: plain for text, plain in texts.items() if text not in standing}:
        known = [asked, *(texts[text] for text in standing)]
        standing |= _having_a_stretch(rest, left, _letters_of(asked))
        standing |= _sharing(_sentences, rest, prompts, known, least=1, share=0)
        if standing:
            # As where lines are numbered, or words left out. By themselves, words may stand there by chance.
            known = [asked, *(texts[text] for text in standing)]
            standing |= _sharing(_words_of, rest, prompts, known, least=5, share=0.5)
    return standing, left


def _standing_whole(texts: Mapping[str, str], prompts: bytes) -> tuple[set[str], bytes]:
    """The texts that stand in prompts, what is part of another by itself; and what is left without them."""
    standing: dict[bytes, str] = {}
    left = prompts
    forms = [(form, text) for text, plain in texts.items() for form in _letter_forms(plain) if form]
    for form, text in sorted(forms, key=lambda each: -len(each[0])):
        if form in left or (form in prompts and not any(form in other for other in standing)):
            standing[form] = text
            # A short one may stand within what is left of others.
            left = left.replace(form, b"\n") if len(form) >= _FEW else left
    return {*standing.values()}, left


def _having_a_stretch(texts: Mapping[str, str], prompts: bytes, asked: bytes) -> set[str]:
    """The texts of which a stretch stands in prompts: always one of 70 letters, often a shorter one."""
    prompts = prompts.replace(asked, b"\n") if len(asked) >= _STRETCH else prompts
    known = {prompts[at : at + _STRETCH] for at in range(0, len(prompts) - _STRETCH + 1, _STEP)}
    return {text for text, plain in texts.items() if any(_has_stretch(form, known) for form in _letter_forms(plain))}


def _has_stretch(text: bytes, known: set[bytes]) -> bool:
    last = len(text) - _STRETCH
    starts = (at for start in range(0, last + 1, _PERIOD) for at in range(start, min(start + _STEP, last + 1)))
    return any(text[at : at + _STRETCH] in known for at in starts)


def _sharing(
    pieces: Callable[[str], set[T]],
    texts: Mapping[str, str],
    prompts: Iterable[str],
    known: Iterable[str],
    *,
    least: int,
    share: float,
) -> set[str]:
    """The texts of which more than a share of the pieces that no known text has stand in prompts."""
    read, others = set[T]().union(*map(pieces, prompts)), set[T]().union(*map(pieces, known))
    found: set[str] = set()
    for text, plain in texts.items():
        own = pieces(plain) - others
        if len(own) >= least and len(own & read) > share * len(own):
            found.add(text)
    return found


# --- letters --------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """A text in small letters, without accents and signs beyond ASCII, the escapes of JSON and HTML undone."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2] or "0a", 16)), text)
    if "&" in text:
        text = _ENTITY.sub(lambda match: _character(match[0]), text)
    if text.isascii():
        return text.lower()
    return _NEITHER_BEYOND_ASCII.sub("\n", _ACCENTS.sub("", normalize("NFKD", text).lower()))


def _lines_of_letters(plain: str) -> bytes:
    """A text's letters and digits, with a line for each sentence, line and field."""
    return plain.encode().translate(_ENDS, _NEITHER)


def _letters_of(plain: str) -> bytes:
    """A text's letters and digits alone."""
    return _lines_of_letters(plain).replace(b"\n", b"")


def _letter_forms(plain: str) -> list[bytes]:
    """A text's letters and digits, with tags and without."""
    return [_letters_of(plain), *([_letters_of(_TAG.sub(" ", plain))] if "<" in plain else ())]


def _sentences(plain: str) -> set[bytes]:
    return {line for line in _lines_of_letters(plain).split(b"\n") if len(line) >= _FEW}


def _spaced_words(plain: str) -> str:
    """A text's words, with a space around each."""
    return f" {' '.join(_WORDS.findall(plain))} "


def _words_of(plain: str) -> set[str]:
    return {*_WORDS.findall(plain)}
