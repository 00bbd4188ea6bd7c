"""The one vocabulary: under which names apps, files and traces keep the fields of a sample."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, get_args

FieldName = Literal[
    "user_input",
    "retrieved_contexts",
    "response",
    "reference",
    "reference_ids",
    "retrieved_ids",
    "history",
    "id",
    "metadata",
]
FIELDS: tuple[FieldName, ...] = get_args(FieldName)
ID_FIELDS: tuple[FieldName, ...] = ("reference_ids", "retrieved_ids")
Names = tuple[str, ...]

# What apps call passages, and how they came by them, the last step last.
_PASSAGES = ("docs", "documents", "chunks", "passages", "nodes", "texts", "context", "contexts")
_STEPS = (
    *("retrieved", "raw", "graded", "relevant", "filtered", "selected", "ranked", "reranked", "top"),
    *("merged", "combined", "fused", "compressed", "final"),
)
# What golden sets call the ids of sources.
_IDS = (
    *("ids", "doc_ids", "document_ids", "chunk_ids", "context_ids", "source_ids", "node_ids", "sources"),
    *("doc_id", "document_id", "chunk_id", "source_id", "source"),
)

STRONG: Mapping[FieldName, Names] = {
    "user_input": (
        *("user_input", "question", "query", "user_query", "user_question", "user_msg", "user_message"),
        *("user_request", "user_prompt", "query_str", "original_question", "original_query"),
    ),
    "retrieved_contexts": (
        *("retrieved_contexts", "contexts", "retrieval_context", "context", "documents", "docs", "chunks", "passages"),
        *(
            "snippets",
            "nodes",
            "source_documents",
            "source_nodes",
            "input_documents",
            "context_docs",
            "context_documents",
        ),
        *(
            "ctxs",
            "context_text",
            "context_str",
            "rag_context",
            "formatted_context",
            "evidence",
            "retrieved",
            "retrieved_info",
        ),
        *("search_results", "web_results", "web_search_results", "retrieval_results", "retrieved_results"),
        *("rag_results", "vector_results", "hybrid_results", "reranked_results"),
        *(f"{step}_{noun}" for step in _STEPS for noun in _PASSAGES if f"{step}_{noun}" != "retrieved_contexts"),
    ),
    "response": (
        *("response", "answer", "actual_output", "final_answer", "final_response", "final_output", "final_report"),
        *("generated_answer", "llm_answer", "llm_response", "answer_text", "output_text", "reply"),
    ),
    "reference": (
        *("reference", "reference_answer", "ground_truth", "ground_truths", "expected_output", "expected_answer"),
        *("gt_answer", "gold_answer", "expected_response", "ground_truth_answer"),
    ),
    "reference_ids": (
        *("reference_ids", "reference_context_ids"),
        *(f"{right}_{noun}" for right in ("expected", "relevant", "gold", "ground_truth") for noun in _IDS),
    ),
    "retrieved_ids": tuple(f"retrieved_{noun}" for noun in _IDS[:8]),
    "history": (*("history", "chat_history", "conversation_history", "message_history", "past_messages", "memory"),),
    "id": ("id",),
    "metadata": ("metadata", "additional_metadata"),
}
"""Names that say what they hold. The first of a field is ragstone's own."""

WEAK: Mapping[FieldName, Names] = {
    "user_input": ("input", "prompt", "request", "topic", "task", "message", "text", "content"),
    "response": (
        *("output", "result", "summary", "generation", "prediction", "completion", "report"),
        *("draft_answer", "draft_response", "message", "text", "content"),
    ),
    "reference": ("expected", "target", "targets"),
}
"""Names that may mean something else: they count where nothing else gives the field, and only one of them is there."""

FINAL: Mapping[FieldName, Names] = {
    "user_input": ("original",),
    "retrieved_contexts": _STEPS[2:],
    "response": ("final",),
    "reference": ("final",),
}
"""The beginnings of names that are the final one of several; of several such names the last one counts."""

PASSAGES: Names = ("docs", "documents", "chunks", "passages")
"""How further names of contexts end, unless they begin with "retrieved"; they count where they hold documents or hits:
texts may be names of files."""

NOT_RETRIEVED: Names = (
    *("expected", "gold", "reference", "ground_truth", "ideal", "relevance"),
    *("irrelevant", "rejected", "discarded"),
)
"""How names begin that do not hold what was retrieved, or what was answered, whatever their end."""

ENVELOPES: Mapping[FieldName, Names] = {
    "user_input": (
        "data",
        "state",
        "value",
        "values",
        "body",
        "payload",
        "input",
        "inputs",
        "request",
        "kwargs",
        "vars",
    ),
    "reference": ("expectations", "reference_outputs"),
    **dict.fromkeys(
        ("retrieved_contexts", "response"),
        (
            *("data", "state", "value", "values", "body", "payload", "output", "outputs", "result", "response"),
            *("return_value", "final_state", "vars"),
        ),
    ),
}
"""Names of mappings that one looks into."""

UNLESS_BESIDE: Mapping[str, Names] = {
    "context": ("expected_output", "retrieval_context", "actual_output"),
    "message": ("status", "success"),
}
"""Names that do not hold their field in the company of others. In DeepEval's goldens and test cases, `context` is what
should have been retrieved; beside a status, `message` says how it went."""

TEXTS: Names = (
    "page_content",
    "text",
    "content",
    "chunk_text",
    "passage",
    "snippet",
    "chunk",
    "body",
    "evidence_text",
    "page_snippet",
)
"""Names of the text of a document, a passage or a search's hit."""

WRAPPERS: Names = ("document", "doc", "node", "chunk", "payload", "metadata", "entity", "_source", "fields", "kwargs")
"""Names of what holds that text in a search's hit."""

ORIGINALS: Names = ("text", "document", "source", "article", "original")
"""Names of a text that is to be summed up."""

_KEY = re.compile(
    r"(?:^|[\W_])(?:ids?|uuids?|keys?|urls?|paths?|files?|scores?|types?)$|(?<=[a-z])(?:Id|Key|Url|Path|File|Score)s?$"
)
_NOT_WORDS = re.compile(r"[\W_]+")


@lru_cache(maxsize=10_000)
def bare(name: str) -> str:
    """A name without what its writing adds: case and separators.

    Example:
        >>> bare("Retrieved Contexts") == bare("retrievedContexts")
        True
    """
    return _NOT_WORDS.sub("", name).lower()


def _by_bare_name(table: Mapping[FieldName, Names]) -> Mapping[str, tuple[FieldName, ...]]:
    meanings: dict[str, tuple[FieldName, ...]] = {}
    for field, names in table.items():
        for name in names:
            meanings[bare(name)] = (*meanings.get(bare(name), ()), field)
    return meanings


_EXPECTED = tuple(map(bare, NOT_RETRIEVED))
STRONGLY = _by_bare_name(STRONG)
WEAKLY = _by_bare_name(WEAK)
"""The fields that a bare name may hold."""


@lru_cache(maxsize=10_000)
def strongly(name: str) -> tuple[FieldName, ...]:
    """The field that a name says it holds."""
    known = STRONGLY.get(bare(name))
    passages = bare(name).endswith(PASSAGES) or bare(name).startswith(_STEPS[0])
    return known or (("retrieved_contexts",) if passages and not bare(name).startswith(_EXPECTED) else ())


# Words in names of a text that may be contexts, and in names of a question.
_SEARCHED = ("context", "doc", "chunk", "passage", "knowledge", "result", "evidence", "search", "retriev", "source")
_ASKED = ("query", "queries", "question")


def may_hold(field: FieldName, name: str, *, text: bool = False) -> bool:
    """Whether a name that says nothing of a field does not speak against it, as that of an id or of a reference does.

    A text is contexts only by its name, and what was asked is neither contexts nor answer.

    Example:
        >>> [may_hold("retrieved_contexts", name) for name in ("findings", "expected_sources", "chunk_ids")]
        [True, False, False]
        >>> may_hold("retrieved_contexts", "mood", text=True), may_hold("response", "search_query", text=True)
        (False, False)
    """
    of_contexts = field == "retrieved_contexts"
    if _KEY.search(name) or (bare(name).startswith(_EXPECTED) and field in ("retrieved_contexts", "response")):
        return False
    asked = any(word in bare(name) for word in _ASKED) and field != "user_input"
    searched = not of_contexts or any(word in bare(name) for word in _SEARCHED)
    return not text or (searched and not asked)


def final_step(field: FieldName, name: str) -> int:
    """How late a name calls itself in the way to a field; 0 where it does not call itself final."""
    begins = (number for number, step in enumerate(FINAL.get(field, ()), 1) if bare(name).startswith(step))
    return max(begins, default=0)


def meant_by(name: str) -> FieldName | None:
    """The field that a name means, or the one that an unknown name is near to.

    Example:
        >>> meant_by("ground truth"), meant_by("retreived_contexts"), meant_by("colour")
        ('reference', 'retrieved_contexts', None)
    """
    import difflib

    known = {**WEAKLY, **STRONGLY}
    near = difflib.get_close_matches(bare(name), known, n=1, cutoff=0.8)
    return known[near[0]][0] if near else None
