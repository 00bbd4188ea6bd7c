"""Where each field of a sample usually stands, and how it is found there."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragstone.sample import SampleField
from ragstone_langchain.documents import are_documents, context_texts, once_each, turn_texts
from ragstone_langchain.messages import Message, answer_in, question_in, read_message, read_messages
from ragstone_langchain.values import Unreadable, entries_of, kind

USUAL_NAMES: Mapping[SampleField, tuple[str, ...]] = {
    "user_input": ("user_input", "question", "query", "input"),
    "response": (
        "response",
        "answer",
        "output",
        "output_text",
        "result",
        "generation",
        "summary",
        "prediction",
    ),
    # Not reference_contexts, which are what should have been retrieved.
    "retrieved_contexts": (
        "retrieved_contexts",
        "contexts",
        "context",
        "documents",
        "docs",
        "source_documents",
        "input_documents",
        "retrieval_context",
    ),
}
"""The keys under which LangChain's chains, tutorials and evaluators keep each field; the first that is there counts."""

ORIGINAL_NAMES = ("text", "document", "source", "article", "original")
"""The keys under which a summariser's input keeps the original."""

# What a mapping may hold beside the fields, and hold alone when something went wrong.
_NOT_ALONE = (
    *("error", "errors", "status", "id", "run_id", "message_id", "thread_id", "session_id", "user_id", "language"),
    *("messages", "reference", "reference_contexts", "reference_outputs", "ground_truth"),
)
_DEPTH = 4  # {"output": {"state": {"messages": ...}}} and one to spare


@dataclass(frozen=True, slots=True)
class TextPlace:
    """How a field that is one text is found.

    Attributes:
        names: Keys, the first that is there counts.
        alone: Keys under which a mapping's only text is another field, and so not this one.
        in_messages: Takes it from a conversation.
        unfinished: Whether a message that only calls tools is not it.
        lone: Whether the only text of a mapping is it, whatever its key.
    """

    names: tuple[str, ...]
    alone: frozenset[str]
    in_messages: Callable[[Sequence[Message]], str | None]
    unfinished: bool = False
    lone: bool = True


def user_input_place(originals: Sequence[str] = ()) -> TextPlace:
    """Return where the question stands; for a summary, its original under the keys `originals` comes first.

    Example:
        >>> user_input_place(("text",)).names
        ('user_input', 'text', 'question', 'query', 'input')
    """
    own, *others = USUAL_NAMES["user_input"]
    return TextPlace((own, *originals, *others), _names_of_others("user_input"), question_in)


def response_place() -> TextPlace:
    """Return where the answer stands."""
    return TextPlace(USUAL_NAMES["response"], _names_of_others("response"), answer_in, unfinished=True)


def _names_of_others(field: SampleField) -> frozenset[str]:
    others = (name for other, names in USUAL_NAMES.items() if other != field for name in names)
    return frozenset((*others, *_NOT_ALONE))


def find_text(place: TextPlace, value: object, where: str, *, own: bool, depth: int = 0) -> str | None:
    """Return a field's text in a value of any form; None where it is not there.

    Args:
        place: Which field.
        value: What was handed over.
        where: Its name, for messages.
        own: Whether the value as a whole is meant to be the field, so that a bare text is it.
        depth: How far inside of what was handed over it stands.

    Raises:
        Unreadable: It stands where the field should and is neither text nor anything that could hold some.

    Example:
        >>> find_text(response_place(), {"output": {"answer": "Jane Austen."}}, "outputs", own=True)
        'Jane Austen.'
        >>> find_text(user_input_place(), "Jane Austen.", "outputs", own=False)
    """
    if value is None or depth > _DEPTH:
        return None
    if isinstance(value, str):
        return value if own else None
    if own and (message := read_message(value)) is not None:
        if place.unfinished and not message.is_answer:
            raise Unreadable(f"{where} is a message that only calls tools, not an answer")
        return message.text
    if messages := read_messages(value):
        return place.in_messages(messages)
    entries = entries_of(value)
    if entries is None:
        if own:
            raise Unreadable(f"{where} is {kind(value)}, not text")
        return None
    for inside in _named_or_alone(place, entries, where, own):
        found = find_text(place, inside.value, inside.where, own=inside.own, depth=depth + 1)
        if found is not None:
            return found
    return place.in_messages(read_messages(entries.get("messages"), named=True))


@dataclass(frozen=True, slots=True)
class _Inside:
    value: object
    where: str
    own: bool


def _named_or_alone(place: TextPlace, entries: Mapping[str, object], where: str, own: bool) -> Iterator[_Inside]:
    for name in place.names:
        if name in entries:
            yield _Inside(entries[name], f"{where}[{name!r}]", own=True)
    if len(entries) == 1:
        ((name, value),) = entries.items()
        # A number, say, under an unknown name is nothing; under a name of the field's own it is a mistake.
        if name not in place.names and _may_hold_text(value):
            yield _Inside(value, f"{where}[{name!r}]", own=own and place.lone and name not in place.alone)


def _may_hold_text(value: object) -> bool:
    return isinstance(value, str) or bool(read_messages(value)) or entries_of(value) is not None


def find_contexts(
    names: Sequence[str], value: object, where: str, *, retriever_tools: Collection[str] = (), depth: int = 0
) -> list[str] | None:
    """Return the texts of the contexts in a value of any form; None where there are none to be found.

    Args:
        names: Keys, the first that is there counts.
        value: What was handed over. By itself it is contexts only if it is documents.
        where: Its name, for messages.
        retriever_tools: See `ragstone_langchain.documents.turn_texts`.
        depth: How far inside of what was handed over it stands.

    Raises:
        Unreadable: Something that is neither text nor a Document stands where the contexts should.

    Example:
        >>> find_contexts(USUAL_NAMES["retrieved_contexts"], {"docs": ["Emma is a novel."]}, "outputs")
        ['Emma is a novel.']
    """
    if value is None or depth > _DEPTH:
        return None
    if are_documents(value):
        return context_texts(value, where)
    if messages := read_messages(value):
        return turn_texts(messages, retriever_tools)
    entries = entries_of(value)
    if entries is None:
        return None
    for name in names:
        if name in entries:
            found = contexts_of(entries[name], f"{where}[{name!r}]", names, depth=depth + 1)
            if found is not None:
                return found
    if len(entries) == 1 and "messages" not in entries:
        ((name, inside),) = entries.items()
        return find_contexts(names, inside, f"{where}[{name!r}]", retriever_tools=retriever_tools, depth=depth + 1)
    return turn_texts(read_messages(entries.get("messages"), named=True), retriever_tools)


def contexts_of(
    value: object, where: str, names: Sequence[str] = USUAL_NAMES["retrieved_contexts"], *, depth: int = 0
) -> list[str] | None:
    """Return the texts of what is meant to be contexts; None for a mapping that holds none.

    Raises:
        Unreadable: It is neither texts, Documents nor a mapping.

    Example:
        >>> contexts_of({"documents": ["Emma is a novel."]}, "context")
        ['Emma is a novel.']
    """
    texts = context_texts(value, where)
    if texts is None and (read_messages(value) or entries_of(value) is not None):
        return find_contexts(names, value, where, depth=depth)
    if texts is None:
        raise Unreadable(f"{where} is {kind(value)}, not texts or Documents")
    return texts


def retrieved_texts(retrieved: Sequence[object]) -> list[str]:
    """Return the texts of what several retriever runs returned, each once: they may have found the same.

    Raises:
        Unreadable: One returned neither texts nor Documents.

    Example:
        >>> retrieved_texts([{"documents": ["Emma is a novel."]}, {"output": ["It is long.", "Emma is a novel."]}])
        ['Emma is a novel.', 'It is long.']
    """
    # LangChain's retrievers name what they return "documents"; LangSmith packs what a traced function does as "output".
    names = ("documents", "output")
    each = (contexts_of(one, f"retriever run {i}", names) for i, one in enumerate(retrieved, 1))
    return once_each(text for texts in each for text in texts or ())
