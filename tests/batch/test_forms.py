"""Forms of files that do not have one name for each field: what becomes of each."""

import csv
import io
import json

import pytest

from ragstone import RetrievalRank, evaluate
from ragstone.sample import BadLine, Row
from ragstone.sources import SourceError, rows_of

openpyxl = pytest.importorskip("openpyxl")

Q, A, C, D = "Who wrote Emma?", "Jane Austen.", "Emma is by Jane Austen.", "It rains."
TURNS = [
    {"speaker": "user", "text": "Do you know Emma?"},
    {"speaker": "agent", "text": "Yes."},
    {"speaker": "user", "text": Q},
]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": Q}]},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "tool", "content": C},
    {"role": "assistant", "content": A},
]
WHOLE = {"user_input": Q, "retrieved_contexts": (C, D), "response": A}


def said(row):
    """What a row has, of the fields that it has."""
    assert isinstance(row, Row), row
    dumped = row.sample.model_dump(exclude={"id", "metadata"})
    return {name: value for name, value in dumped.items() if value}


@pytest.fixture
def file(tmp_path):
    """Writes an object as JSON, one a line where it is a list; records of text as CSV; a workbook by its sheets."""

    def written(content):
        if isinstance(content, tuple):
            text = io.StringIO()
            csv.writer(text).writerows(content)
            path = tmp_path / "a.csv"
            path.write_text(text.getvalue(), encoding="utf-8")
        elif isinstance(content, openpyxl.Workbook):
            path = tmp_path / "a.xlsx"
            content.save(path)
        else:
            path = tmp_path / "a.json"
            path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return written


def workbook(**sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, lines in sheets.items():
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
    return book


FORMS = {
    "numbered columns": ((("q_id", "question", "doc_10", "doc_2", "doc_1", "answer"), ("1", Q, D, "", C, A)), WHOLE),
    "numbered columns, the lists of which are JSON": ({"question": Q, "contexts0": [C], "contexts1": [{"text": D}], "answer": A}, WHOLE),
    "a number that is a version": ({"question": Q, "docs": [C, D], "docs_v2": 3, "answer_2": "", "answer": A}, WHOLE),
    "index of pandas": ((("", "question", "contexts", "answer"), ("0", Q, repr([C, D]), A)), WHOLE),
    "commas at the end": ((("question", "answer", "", ""), (Q, A, "", "")), {"user_input": Q, "response": A}),
    "JSON in cells": (
        (("request", "response", "trace_id"), (json.dumps({"query": Q}), json.dumps(A), "tr-1")),
        {"user_input": Q, "response": A},
    ),
    "JSON of a conversation in cells": (
        (("inputs", "outputs", "expectations"),
         (json.dumps({"messages": TURNS[2:]}), json.dumps({"answer": A, "documents": [C, D]}), json.dumps({"expected_response": A}))),
        WHOLE | {"reference": A},
    ),
    "JSON that was asked for stays": (
        (("question", "answer"), ("Emma as JSON?", '{"author": "Jane Austen"}')),
        {"user_input": "Emma as JSON?", "response": '{"author": "Jane Austen"}'},
    ),
    "a conversation in a cell, as Python writes it": ((("conversation", "contexts"), (repr([*TURNS[2:], {"speaker": "agent", "text": A}]), repr([C, D]))), WHOLE),
    "a transcript, of which nothing says who speaks": ((("messages", "contexts"), (f"User: {Q}", C)), {"retrieved_contexts": (C,)}),
    "texts for nothing": ((("question", "contexts", "answer", "retrieved_ids"), (Q, "None", A, "nan")), {"user_input": Q, "response": A}),
    "ids as JSON and as Python write them": (
        (("question", "expected_ids", "retrieved_ids"), (Q, '["a", "b, c"]', "['a', 'd']")),
        {"user_input": Q, "reference_ids": ("a", "b, c"), "retrieved_ids": ("a", "d")},
    ),
    "an id of which nothing says that it is the right one": (
        (("question", "retrieved_ids", "doc_id"), (Q, "a", "a")), {"user_input": Q, "retrieved_ids": ("a",)},
    ),
    "a golden set of cases, with the documents that it is about": (
        {"documents": {"emma": "emma.pdf"}, "version": "1", "test_cases": [{"query": Q, "expected_chunk_ids": ["c1"], "expected_answer": A}]},
        {"user_input": Q, "reference": A, "reference_ids": ("c1",)},
    ),
    "a golden set by name, with file names": (
        {"who": {"id": "who", "question": Q, "ground_truth_answer": A, "relevant_sources": ["emma.md"]}},
        {"user_input": Q, "reference": A, "reference_ids": ("emma.md",)},
    ),
    "ids of what is relevant are no contexts": (
        {"question": Q, "retrieved_docs": [C, D], "relevant_docs": ["d1", "d2"], "answer": A}, WHOLE,
    ),
    "nor are they in a cell": ((("question", "relevant_docs", "answer"), (Q, "['d1', 'd2']", A)), {"user_input": Q, "response": A}),
    "how many documents were retrieved": ({"question": Q, "retrieved_docs": 5, "answer": A}, {"user_input": Q, "response": A}),
    "turns": (
        {"input": TURNS, "contexts": [{"text": C, "document_id": "d"}, {"text": D}], "targets": [{"text": A}]},
        {"user_input": Q, "retrieved_contexts": (C, D), "reference": A,
         "history": ({"role": "user", "content": "Do you know Emma?"}, {"role": "assistant", "content": "Yes."})},
    ),
    "titles with sentences": ({"question": Q, "context": [["Emma", [C]], ["May", [D]]], "answer": A}, WHOLE),
    "messages": ({"messages": MESSAGES, "docs": [C, D]}, WHOLE),
    "messages in inputs": ({"inputs": {"messages": MESSAGES[:2]}, "outputs": {"messages": MESSAGES}}, {"user_input": Q, "response": A}),
    "a question of ragas' with turns": (
        {"user_input": [{"type": "human", "content": Q}, {"type": "ai", "content": A}], "retrieved_contexts": [C, D]},
        WHOLE,
    ),
    "DeepEval's golden": (
        {"input": Q, "expected_output": A, "context": [C]},
        {"user_input": Q, "reference": A},
    ),
    "DeepEval's test case without what was retrieved": (
        {"input": Q, "actual_output": A, "context": [C]},
        {"user_input": Q, "response": A},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form(name, file):
    content, want = FORMS[name]
    (row,) = rows_of(file(content))
    assert said(row) == want


COLUMNS = {
    "plural names": {"questions": [Q, "Why?"], "answers": [A, "So."], "contexts": [[C], [D]], "model": "m"},
    "as for Dataset.from_dict": {"question": [Q, "Why?"], "answer": [A, "So."], "contexts": [[C], [D]]},
    "as pandas' to_json": {"question": {"0": Q, "1": "Why?"}, "answer": {"0": A, "1": "So."}, "contexts": {"0": [C], "1": [D]}},
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_as_lists(name, file):
    want = [
        {"user_input": Q, "response": A, "retrieved_contexts": (C,)},
        {"user_input": "Why?", "response": "So.", "retrieved_contexts": (D,)},
    ]
    assert list(map(said, rows_of(file(COLUMNS[name])))) == want
    assert list(map(said, rows_of(COLUMNS[name]))) == want


def test_a_row_with_several_right_answers_is_no_column(file):
    (row,) = rows_of(file({"question": Q, "answers": [A, "Austen"]}))
    assert said(row) == {"user_input": Q}


def test_columns_of_different_lengths_are_no_rows(file):
    with pytest.raises(SourceError, match=r"'questions' has 1, 'ground_truths' has 2; a row needs a value in each"):
        list(rows_of(file({"questions": [Q], "ground_truths": [A, "So."]})))


def test_columns_of_different_rows_are_no_rows(file):
    with pytest.raises(SourceError, match="numbers of different rows, or in another order; write a list of rows"):
        list(rows_of(file({"question": {"0": Q, "1": "Why?"}, "answer": {"1": "So.", "0": A}})))


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        *[
            ({"expected_ids": cell}, "may be several ids; write a list")
            for cell in ("a;b", "a,b", "a|b", "a\nb", "[3 4]")
        ],
        ({"expected_ids": '["a", "b'}, "begins as a list and is none"),
        ({"expected_ids": '[{"id": 1}]'}, "holds no ids"),
        ({"expected_chunk_ids": "c1", "expected_sources": "a.md"}, "hold different texts; say which with"),
    ],
)
def test_ids_that_cannot_be_told_are_a_reason_of_metrics_that_need_them_alone(cells, why, file):
    row = {"question": Q, "contexts": C, "retrieved_ids": "a", **cells}
    path = file((tuple(row), tuple(row.values())))
    (row,) = rows_of(path)
    assert said(row) == {"user_input": Q, "retrieved_contexts": (C,), "retrieved_ids": ("a",)}
    outcome = next(iter(evaluate(path, [RetrievalRank()], progress=False))).outcome
    assert outcome.reason == "missing_input"
    assert outcome.detail.startswith("reference_ids: ")
    assert why in outcome.detail
    with pytest.raises(ValueError, match=why):
        RetrievalRank().score({"question": Q, "retrieved_ids": "a", **cells})


GRADED = {"query": Q, "relevance": [{"doc_id": "a", "gain": 2}, {"doc_id": "b", "gain": 1}], "retrieved_ids": ["b"]}


def test_a_star_leads_into_each_item_of_a_list_and_a_column_that_may_hold_ids_is_offered(file):
    (row,) = rows_of(file(GRADED), {"reference_ids": "relevance.*.doc_id"})
    assert row.sample.reference_ids == ("a", "b")
    (row,) = rows_of(file(GRADED), {"reference_ids": "relevance"})
    assert "relevance: [{'doc_id': 'a'" in row.problems["reference_ids"]
    report = evaluate([{"query": Q, "chunk_id": 7, "retrieved_ids": [7]}], [RetrievalRank()], progress=False)
    assert "row 1 also has 'chunk_id': fields={'reference_ids': 'chunk_id'}" in str(report)


def test_the_first_row_says_the_names_of_the_file(file):
    (row,) = rows_of(file({"questions": [Q], "ground_truths": [A]}))
    assert {field: found.name for field, found in row.first.found.items()} == {
        "user_input": "questions",
        "reference": "ground_truths",
    }


# --- a passage a row ------------------------------------------------------------------------------------------------

HEAD = ("query_id", "query", "passage_id", "passage", "generated_answer")
ONE, TWO, NEXT = ("q1", Q, "p1", C, A), ("q1", Q, "p2", D, ""), ("q2", "Why?", "p1", C, "So.")


def test_rows_that_are_one(file):
    rows = list(rows_of(file((HEAD, ONE, TWO, NEXT)), rows_by="query_id"))
    assert list(map(said, rows)) == [WHOLE, {"user_input": "Why?", "retrieved_contexts": (C,), "response": "So."}]
    assert [(row.line, row.sample.id) for row in rows] == [(1, "q1"), (3, "q2")]


@pytest.mark.parametrize("rows", [(ONE, TWO, NEXT), (NEXT, ONE, TWO), (ONE, ("q1", "", "p2", D, ""))])
def test_an_answer_is_not_judged_by_one_of_its_passages(rows, file):
    read = rows_of(file((HEAD, *rows)))
    before = 1 if rows[0] == NEXT else 0
    assert [said(next(read))["user_input"] for _ in range(before)] == ["Why?"] * before
    with pytest.raises(SourceError, match=r"two passages and one answer.*rows_of\(..., rows_by='query_id'\)"):
        next(read)


@pytest.mark.parametrize(
    "other",
    [("q1", Q, "p2", D, A), ("q1", Q, "p2", C, ""), ("q1", "Why?", "p2", D, ""), ("q2", Q, "p2", D, "")],
    ids=["each has an answer", "one passage", "another question", "another id"],
)
def test_rows_that_may_be_samples_are(other, file):
    assert len(list(rows_of(file((HEAD, ONE, other))))) == 2


@pytest.mark.parametrize(
    ("rows", "way"),
    [
        ((HEAD, ONE, ("q1", Q, "p2", D, A)), "rows_by='query_id'"),
        ((("question", "passage", "answer"), (Q, C, A), (Q, D, A)), "rows_by='question'"),
        ((("question", "passage", "answer"), (Q, C, A), (Q, D, "")), "rows_by='question'"),
    ],
    ids=["each has the answer", "no id", "no id, one answer"],
)
def test_rows_that_may_be_passages_are_said(rows, way, file):
    first, _ = rows_of(file(rows))
    (note,) = first.first.notes
    assert note.endswith(f"if rows are passages of one answer: evaluate(rows_of(..., {way}), ...)")
    for apart in (file((HEAD, ONE, NEXT)), [{"question": Q, "contexts": [each], "answer": A} for each in (C, D)]):
        first, *_ = rows_of(apart)
        assert not first.first.notes


def test_passages_of_several_columns_are_in_the_order_of_their_numbers(file):
    head = ("question", "context_10", "context_2", "context_1", "answer")
    (row,) = rows_of(file((head, (Q, "j", "b", "a", A), (Q, "J", "B", "A", A))), rows_by="question")
    assert row.sample.retrieved_contexts == ("a", "A", "b", "B", "j", "J")


def test_what_cannot_be_one_row_is_said(file):
    path = file((HEAD, ONE, NEXT, TWO))
    with pytest.raises(SourceError, match="query_id 'q1' comes again behind other rows; sort them by query_id"):
        list(rows_of(path, rows_by="query_id"))
    with pytest.raises(SourceError, match="rows_by: there is no column 'id'; the columns are 'query_id'"):
        rows_of(path, rows_by="id").__next__()
    two_answers = [dict(zip(HEAD, ("q1", Q, "p1", C, answer), strict=True)) for answer in "AB"]
    (row,) = rows_of(two_answers, rows_by="query_id")
    assert row == BadLine(1, "generated_answer: differs in rows that are to be one")
    (row,) = rows_of([{"query": Q}], rows_by="query_id")
    assert row == BadLine(1, "has no query_id, by which rows are one; it has 'query'")


# --- Excel ----------------------------------------------------------------------------------------------------------

LINES = [
    [],
    ["question", "contexts", "answer", "id"],
    [Q, json.dumps([C, D]), A, 7.0],
    [None],
    ["Why?", "#N/A", 1816, 8],
]


def test_a_workbook(file):
    rows = list(rows_of(file(workbook(Notes=[["Of May"]], Eval=LINES, Empty=[]))))
    assert list(map(said, rows)) == [WHOLE, {"user_input": "Why?", "response": "1816"}]
    assert [row.sample.id for row in rows] == ["7", "8"]
    assert rows[0].first.part == "sheet 'Eval'"


def test_a_workbook_that_cannot_be_read_says_why(file, tmp_path):
    with pytest.raises(SourceError, match="the sheets 'May', 'June' have samples; keep one of them"):
        list(rows_of(file(workbook(May=LINES, June=LINES))))
    with pytest.raises(SourceError, match="sheet 'May': no column holds a field of a sample; the columns are 'k'"):
        list(rows_of(file(workbook(May=[["k"], [1]]))))
    with pytest.raises(SourceError, match="is empty"):
        list(rows_of(file(workbook(May=[]))))
    old = tmp_path / "a.xls"
    old.write_bytes(bytes.fromhex("D0CF11E0A1B11AE1") + bytes(300))
    with pytest.raises(SourceError, match=r"nor .xlsx \(not .xls\); save a table as CSV"):
        list(rows_of(old))
