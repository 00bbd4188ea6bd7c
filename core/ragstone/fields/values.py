"""What stands under the names: texts, documents, and whether two of them say one thing."""

import re
from collections.abc import Mapping

from ragstone.fields.names import TEXTS, WRAPPERS
from ragstone.plain import id_of, is_list, is_mapping

_PATH = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?[/\\~.]\S*|[\w/\\.-]+\.[a-z0-9]{2,5}", re.ASCII | re.IGNORECASE)
_NOT_LETTERS = re.compile(r"[\W_]+")
# Letters: what has fewer may stand anywhere by chance.
_FEW = 20


def is_path(value: object) -> bool:
    """Whether a text is the path of a file or an address, and so no question.

    Example:
        >>> is_path("/data/report.pdf"), is_path("Who wrote Emma?")
        (True, False)
    """
    return isinstance(value, str) and _PATH.fullmatch(value.strip()) is not None


def text_of_document(value: object, depth: int = 2) -> str | None:
    """The text of a passage: a text, a document or a search's hit, as a mapping or an object, or a pair with its score.

    None where it has no text under a usual name.

    Example:
        >>> text_of_document({"id": 7, "text": "Emma is a novel."}), text_of_document(({"content": "Emma."}, 0.9))
        ('Emma is a novel.', 'Emma.')
    """
    if isinstance(value, str):
        return value
    if is_list(value):
        with_score = len(value) == 2 and isinstance(value[1], (int, float))
        return text_of_document(value[0], depth) if with_score and not is_list(value[0]) else None
    texts = [text for name in TEXTS if isinstance(text := _entry(value, name), str)]
    if texts or not depth:
        return texts[0] if texts else None
    inner = (_entry(value, name) for name in WRAPPERS)
    texts_inside = (text_of_document(each, depth - 1) for each in inner if each is not None)
    return next((text for text in texts_inside if text is not None), None)


def ids_in(value: object) -> list[str] | None:
    """The ids of sources, in a list or by itself; None where it holds something else.

    Example:
        >>> ids_in(["returns.md", 7]), ids_in("returns.md"), ids_in([{"id": 7}])
        (['returns.md', '7'], ['returns.md'], None)
    """
    items = value if is_list(value) else [value]
    ids = [each for each in map(id_of, items) if isinstance(each, str)]
    return ids if len(ids) == len(items) else None


def queries_in(value: object) -> list[Mapping[str, object]] | None:
    """The rows of LlamaIndex' golden sets by id: queries and the nodes that should be retrieved, by the query's id.

    Example:
        >>> queries_in({"queries": {"q1": "Who wrote Emma?"}, "corpus": {}, "relevant_docs": {"q1": ["n7"]}})
        [{'id': 'q1', 'query': 'Who wrote Emma?', 'reference_ids': ['n7']}]
    """
    queries, relevant = _entry(value, "queries"), _entry(value, "relevant_docs")
    if not (is_mapping(queries) and is_mapping(relevant)):
        return None
    return [{"id": str(name), "query": text, "reference_ids": relevant.get(name)} for name, text in queries.items()]


def _entry(value: object, name: str) -> object:
    return value.get(name) if is_mapping(value) else getattr(value, name, None)


def alike(one: object, other: object) -> bool:
    """Whether two values say one thing: their texts are equal, or one holds the other.

    Example:
        >>> alike("Paris.", "Paris. [1]"), alike(["A novel by Jane Austen.", "It is long."], "A novel by Jane Austen")
        (True, True)
    """
    if is_list(one) and is_list(other) and min(len(one), len(other)) > 1:
        ours, others = set(map(_letters, one)), set(map(_letters, other))
        return ours <= others or others <= ours
    if is_list(one) or is_list(other):
        texts, whole = (one, other) if is_list(one) and len(one) > 1 else (other, one)
        joined = _letters(whole[0] if is_list(whole) and whole else whole)
        items = [*map(_letters, texts)] if is_list(texts) else [_letters(texts)]
        return joined in items or any(len(text) >= _FEW and text in joined for text in items)
    text, whole = sorted((_letters(one), _letters(other)), key=len)
    return text in whole


def _letters(text: object) -> str:
    return _NOT_LETTERS.sub("", str(text)).casefold()
