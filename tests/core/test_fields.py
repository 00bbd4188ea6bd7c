"""One vocabulary, one reading: which entry of a mapping is which field, and what cannot be told."""

from dataclasses import dataclass

import pytest

from ragstone.fields.names import FIELDS, STRONG, WEAK, meant_by
from ragstone.fields.read import likely, read, under
from ragstone.fields.values import alike, is_path, text_of_document

Q, A, DRAFT = "Who wrote Emma?", "Jane Austen wrote it.", "A first draft."
TEXTS = ["Emma is a novel by Jane Austen.", "It was published in 1815."]
JOINED = "\n\n".join(TEXTS)


@dataclass
class Grade:
    result: str
    why: str = "x"


@pytest.mark.parametrize(
    ("entries", "field", "name"),
    [
        # Strong names, however they are written.
        ({"question": Q, "context": TEXTS}, "user_input", "question"),
        ({"Ground Truth": A}, "reference", "Ground Truth"),
        ({"retrievedChunks": TEXTS}, "retrieved_contexts", "retrievedChunks"),
        # The one that calls itself final; an empty one does not.
        ({"answer": DRAFT, "final_answer": A}, "response", "final_answer"),
        ({"response": DRAFT, "final_answer": A}, "response", "final_answer"),
        ({"answer": A, "final_answer": ""}, "response", "answer"),
        ({"retrieved_docs": TEXTS, "reranked_docs": TEXTS[:1]}, "retrieved_contexts", "reranked_docs"),
        ({"query": "the novelist of Emma", "original_query": Q}, "user_input", "original_query"),
        (
            {"retrieved_docs": TEXTS, "relevant_docs": TEXTS[:1], "final_docs": TEXTS},
            "retrieved_contexts",
            "final_docs",
        ),
        # Two that say one thing.
        ({"response": A, "answer": f"{A} [1]"}, "response", "response"),
        ({"context": JOINED, "documents": TEXTS}, "retrieved_contexts", "documents"),
        # Weak ones count alone, behind strong ones.
        ({"summary": A}, "response", "summary"),
        ({"answer": A, "summary": DRAFT, "result": "3 rows"}, "response", "answer"),
        ({"text": JOINED, "summary": A}, "user_input", "text"),
        ({"text": JOINED, "summary": A}, "response", "summary"),
        ({"generation": {"answer": A, "model": "m"}, "k": 3}, "response", "generation.answer"),
        # Whatever ends as passages do, where it holds hits; an empty list says nothing.
        ({"legal_docs": [{"text": TEXTS[0]}], "web_results": []}, "retrieved_contexts", "legal_docs"),
        ({"retrieved_papers": [{"text": TEXTS[0]}]}, "retrieved_contexts", "retrieved_papers"),
        # One looks into the only entry, and into envelopes.
        ({"generate": {"answer": A}}, "response", "generate.answer"),
        ({"data": {"state": {"question": Q}}, "k": 3}, "user_input", "data.state.question"),
        ({"response": {"text": A, "sources": [1]}}, "response", "response.text"),
        # The company that a name keeps.
        ({"input": Q, "context": TEXTS}, "retrieved_contexts", "context"),
    ],
)
def test_a_field_is_read_from(entries, field, name):
    reading = read(entries)
    assert reading.found[field].name == name
    assert reading.found[field].raw == under(entries, name)


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ({"question": Q, "documents": TEXTS, "grade": {"output": "irrelevant"}}, "response"),
        ({"question": Q, "documents": TEXTS, "grade": Grade("no")}, "response"),
        ({"question": Q, "error": {"code": 503, "response": "Service Unavailable"}}, "response"),
        ({"question": Q, "timing": {"completion": "0.4 s"}}, "response"),
        ({"answer": A, "user": {"context": ["lives in Berlin"]}}, "retrieved_contexts"),
        ({"answer": A, "request": {"documents": ["a.pdf"]}}, "retrieved_contexts"),
        ({"input": Q, "expected_output": A, "context": TEXTS}, "retrieved_contexts"),
        ({"input": "/data/report.pdf"}, "user_input"),
        ({"input": "https://example.org/report"}, "user_input"),
        ({"response": {"text": A}}, "user_input"),
        ({"documents": [TEXTS[0], 7]}, "retrieved_contexts"),
        ({"status": "success", "message": "3 files indexed"}, "response"),
        # The app says itself that there is none.
        ({}, "response"),
    ],
)
def test_what_is_no_field_is_not_read(entries, field):
    reading = read(entries)
    assert field not in reading.found
    assert field not in reading.conflicts


@pytest.mark.parametrize(
    ("entries", "field", "names"),
    [
        ({"question": Q, "query": "the novelist of Emma"}, "user_input", ["question", "query"]),
        ({"response": A, "answer": DRAFT}, "response", ["response", "answer"]),
        ({"documents": TEXTS[:1], "chunks": TEXTS[1:]}, "retrieved_contexts", ["documents", "chunks"]),
        ({"final_answer": A, "final_report": DRAFT}, "response", ["final_answer", "final_report"]),
        ({"result": {"result": "success", "output": A}}, "response", ["result.result", "result.output"]),
        # The app says itself that there is none.
        ({"answer": None, "summary": A}, "response", ["answer", "summary"]),
        ({"answer": "", "generation": A}, "response", ["answer", "generation"]),
        ({"output": {"answer": A}, "data": {"answer": DRAFT}}, "response", ["output.answer", "data.answer"]),
    ],
)
def test_two_that_differ_cannot_be_told(entries, field, names):
    reading = read(entries)
    assert field not in reading.found
    assert reading.conflicts == {field: names}


def test_what_was_not_read_is_named_and_the_one_that_can_be_meant():
    reading = read({"question": Q, "findings": TEXTS, "reply_to_user": A, "k": 3})
    assert [*reading.unread] == ["findings", "reply_to_user", "k"]
    assert (likely(reading, "retrieved_contexts"), likely(reading, "response")) == ("findings", "reply_to_user")
    several = read({"question": Q, "one": A, "two": DRAFT})
    assert likely(several, "response") is None
    asked = read({"question": Q, "search_query": "novel", "lang": "en", "messages": [], "rag_result": JOINED})
    assert likely(asked, "retrieved_contexts") == "rag_result"
    in_conflict = read({"documents": TEXTS[:1], "web_results": TEXTS[1:], "findings": TEXTS})
    assert in_conflict.conflicts
    assert likely(in_conflict, "retrieved_contexts") is None
    # A label is not offered as the answer, nor key words as passages.
    assert likely(read({"answer": A, "search_keywords": ["novel", "emma"]}), "retrieved_contexts") is None
    assert likely(read({"messages": [], "next": "FINISH"}), "response") is None
    # An empty list says nothing where another one may hold what was found.
    assert "retrieved_contexts" not in read({"web_results": [], "refined": TEXTS}).found
    assert read({"web_results": [], "k": [1]}).value("retrieved_contexts") == []
    # The ideal retrieval of a golden is not what was retrieved.
    assert likely(read({"input": Q, "expected_output": A, "context": TEXTS}), "retrieved_contexts") is None
    assert read({"answer": 42}).unreadable == {"response": ["answer"]}


def test_what_the_user_names_is_followed():
    row = {"a.b": "dotted", "outputs": {"answers": [{"text": A}]}}
    assert under(row, "a.b") == "dotted"
    assert under(row, "outputs.answers.0.text") == A
    assert under(row, "outputs.answers.1.text") is under(row, "outputs.no.text") is under(None, "a") is None


@pytest.mark.parametrize(
    ("hit", "text"),
    [
        ("Emma.", "Emma."),
        ({"page_content": "Emma.", "metadata": {"text": "no"}}, "Emma."),
        (({"content": "Emma.", "source": "a"}, 0.7), "Emma."),
        ({"id": 1, "score": 0.5, "metadata": {"text": "Emma."}}, "Emma."),
        ({"node": {"text": "Emma."}}, "Emma."),
        ({"title": "Emma"}, None),
        (["Emma.", "Austen."], None),
        (7, None),
    ],
)
def test_the_text_of_a_hit(hit, text):
    assert text_of_document(hit) == text


def test_a_hit_that_holds_itself_has_no_text():
    hit: dict[str, object] = {}
    hit["document"] = hit
    assert text_of_document(hit) is None


@pytest.mark.parametrize("text", ["Who wrote Emma?", "Emma", "什么是A/B测试", "and/or", "v1.2", "Why? e.g. a.b"])
def test_a_question_is_no_path(text):
    assert not is_path(text)


def test_alike():
    assert alike(TEXTS, TEXTS[:1])
    assert alike(JOINED, TEXTS)
    assert not alike(TEXTS[:1], TEXTS[1:])
    assert not alike("Emma", "Austen")


def test_a_name_is_strong_for_one_field_alone():
    names = [name for field in FIELDS for name in STRONG[field]]
    assert len(names) == len(set(names))
    assert not {*names} & {name for several in WEAK.values() for name in several}
    assert meant_by("retreived_contexts") == "retrieved_contexts"
