"""What a field may stand under that has no usual name. A guess, for a person who looks at it and says whether it is so.

By its name first: words such as "passage" or "antwort". Else by what it is: a list of documents or texts may be
contexts, a text that asks the question, the longest text that does not the answer.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

from ragstone.fields.names import TEXTS
from ragstone.fields.read import Forms
from ragstone.fields.values import alike, is_path
from ragstone.plain import is_list, is_mapping, is_visible
from ragstone.sample import SampleField

_BEGINNINGS: Mapping[SampleField, str] = {
    "user_input": "question query queries frage pregunta domanda pergunta demande request requete prompt asked",
    "retrieved_contexts": (
        "context kontext contesto contexto chunk passage paragraph doc dok source quelle fuente fonte retriev hit "
        "snippet excerpt evidence finding fund treffer results resultat resultad risultat knowledge node match search"
    ),
    "response": (
        "answer antwort response reponse respuesta risposta resposta reply replied generat complet output report "
        "result final conclusion said"
    ),
    "reference": "reference expected gold truth target",
}
_FIELDS_BY_BEGINNING: Mapping[str, SampleField] = {
    word: field for field, words in _BEGINNINGS.items() for word in words.split()
}
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_LETTER = re.compile(r"[\W\d_]+")
_DEEPEST = 4
_MOST_ENTRIES = 300
# Letters of a word that may be misspelt.
_LONG = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that may be meant by a field.

    Attributes:
        name: Its name, dotted where it is deeper.
        value: The text, or the texts, that it would give.
        within: Of texts that lie in things that nothing is known of, what gives the text of one: "each.words".
        of_texts: Whether it is a list of mere texts.
    """

    name: str
    value: str | Sequence[str]
    within: str = ""
    of_texts: bool = False


@lru_cache(maxsize=1_000)
def meant_by_words(name: str) -> SampleField | None:
    """The field that the last of a name's words that is known is about; None where none is.

    Example:
        >>> meant_by_words("reponse_finale"), meant_by_words("retrievedPassages"), meant_by_words("route")
        ('response', 'retrieved_contexts', None)
    """
    plain = unicodedata.normalize("NFKD", _HUMP.sub(" ", name))
    words = _NO_LETTER.split("".join([c for c in plain if not unicodedata.combining(c)]).casefold())
    for word in reversed(words):
        for beginning, field in _FIELDS_BY_BEGINNING.items():
            if word.startswith(beginning):
                return field
        if len(word) >= _LONG and (near := get_close_matches(word, _FIELDS_BY_BEGINNING, n=1, cutoff=0.8)):
            return _FIELDS_BY_BEGINNING[near[0]]
    return None


def entries_in(value: object, forms: Forms) -> Mapping[str, object]:
    """The entries of a value and of the mappings in it, by their names, dotted where they are deeper."""
    return dict(islice(_walk(value, forms, "", _DEEPEST), _MOST_ENTRIES))


def _walk(value: object, forms: Forms, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    for name, each in (forms.entries(value) or {}).items():
        yield prefix + name, each
        if depth and forms.value("response", each) is None:
            yield from _walk(each, forms, f"{prefix}{name}.", depth - 1)


def candidates(
    field: SampleField,
    entries: Mapping[str, object],
    forms: Forms,
    known: Collection[object] = (),
    read: object = None,
) -> list[Candidate]:
    """The entries that may be meant by a field: by their names if any is, else by what they are.

    Where the field was read, only those whose names say so and that say something else.

    Args:
        field: The field.
        entries: The entries that were not read as any field.
        forms: How values are read.
        known: Texts that are something else.
        read: What was read as the field.
    """
    found: list[Candidate] = []
    for name, value in entries.items():
        candidate = (
            _contexts_candidate(name, value, forms)
            if field == "retrieved_contexts"
            else _text_candidate(field, name, value, forms)
        )
        if candidate is not None and candidate.value not in known and not (read and alike(candidate.value, read)):
            found.append(candidate)
    # "final" of "report.final" says more than "report".
    last = [each for each in found if meant_by_words(each.name.rpartition(".")[2]) == field]
    named = last or [each for each in found if meant_by_words(each.name) == field]
    if named or read:
        return named
    unnamed = [each for each in found if meant_by_words(each.name) is None]
    if field != "retrieved_contexts":
        asks = [each for each in unnamed if str(each.value).rstrip().endswith(("?", "\uff1f"))]
        return [each for each in unnamed if each not in asks] if field == "response" else asks or unnamed
    lists = [each for each in unnamed if not isinstance(entries[each.name], str)]
    return [each for each in lists if not each.of_texts] or lists


def guess(found: Sequence[Candidate]) -> Candidate | None:
    """The one candidate that is meant if any is: the only one, or a text that is twice as long as the next."""
    if len(found) < 2:
        return found[0] if found else None
    by_words = meant_by_words(found[0].name) is not None
    longest, second = sorted(found, key=lambda each: len(each.value), reverse=True)[:2]
    are_texts = isinstance(longest.value, str) and isinstance(second.value, str)
    return longest if are_texts and not by_words and len(longest.value) >= 2 * len(second.value) else None


def _text_candidate(field: SampleField, name: str, value: object, forms: Forms) -> Candidate | None:
    text = None if value is None else forms.value(field, value)
    if not isinstance(text, str) or not is_visible(text) or is_path(text):
        return None
    return Candidate(name, text)


def _contexts_candidate(name: str, value: object, forms: Forms) -> Candidate | None:
    if value is None or (is_list(value) and (not value or _is_conversation(value, forms))):
        return None
    read = forms.value("retrieved_contexts", value)
    if isinstance(read, str):
        return Candidate(name, [read])
    if is_list(read):
        texts = [text for text in read if isinstance(text, str) and is_visible(text)]
        # Names of files are none.
        texts = [] if all(map(is_path, texts)) else texts
        of_texts = is_list(value) and all(isinstance(each, str) for each in value)
        return Candidate(name, texts, of_texts=of_texts) if texts else None
    return _own_documents(name, value) if is_list(value) else None


def _is_conversation(value: object, forms: Forms) -> bool:
    """Whether a list holds messages, which have texts too."""
    return any(forms.said(field, {"messages": value}) is not None for field in ("user_input", "response"))


def _own_documents(name: str, values: Sequence[object]) -> Candidate | None:
    """The longest texts of mappings or objects of the app's own."""
    first = values[0]
    fields = first if is_mapping(first) else getattr(first, "__dict__", {})
    texts = {str(key): each for key, each in fields.items() if isinstance(each, str) and is_visible(each)}
    if not texts:
        return None
    usual = next((key for key in TEXTS if key in texts), None)
    key = usual or max(texts, key=lambda key: len(texts[key]))
    held = [each.get(key) if is_mapping(each) else getattr(each, key, None) for each in values]
    within = f'each["{key}"]' if is_mapping(first) else f"each.{key}"
    return Candidate(name, [text for text in held if isinstance(text, str)], within)
