"""Samples from everywhere: every form of source, and every way in which a row of it can be none."""

import csv
import dataclasses
import gzip
import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ragstone import Sample
from ragstone.sample import BadLine, Row
from ragstone.sources import SourceError, rows_of

from ..support import programs  # noqa: TID252 - under importlib mode tests are no package

WHOLE = {"user_input": "Q?", "retrieved_contexts": ["C.", "D."], "response": "A."}
LINES = [WHOLE, {"question": "R?", "answer": "B.", "id": 5}]
CSV = 'question,contexts,answer,id\nQ?,"[""C."", ""D.""]",A.,\nR?,,B.,5\n'
TSV = CSV.replace(",", "\t").replace('""\t', '"",')


def read(source, fields=None):
    return list(rows_of(source, fields))


def problem(row):
    assert isinstance(row, BadLine), row
    return row.problem


def texts(row):
    assert isinstance(row, Row), row
    return row.sample.user_input, tuple(row.sample.retrieved_contexts), row.sample.response


@pytest.fixture
def file(tmp_path):
    def written(name, content):
        path = tmp_path / name
        body = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
        return path

    return written


@pytest.fixture
def cells(file):
    """Writes records as a CSV file."""

    def written(*records):
        text = io.StringIO()
        csv.writer(text).writerows(records)
        return file("cells.csv", text.getvalue())

    return written


# --- rows in memory -------------------------------------------------------------------------------------------------


class RagasLike(BaseModel):
    user_input: str
    retrieved_contexts: list[str] | None = None
    response: str | None = None
    rubrics: dict[str, str] | None = None


@dataclasses.dataclass
class DeepEvalLike:
    input: str
    actual_output: str | None = None
    retrieval_context: list[str] | None = None
    context: list[str] | None = None


@dataclasses.dataclass
class Document:
    page_content: str


@pytest.mark.parametrize(
    "item",
    [
        Row(7, Sample(**WHOLE)),
        WHOLE | {"other": object(), 3: "a key that is no text"},
        {**WHOLE, "retrieved_contexts": np.array(["C.", "D."])},
        {**WHOLE, "retrieved_contexts": [Document("C."), {"text": "D."}]},
        RagasLike(**WHOLE),
        DeepEvalLike("Q?", "A.", ["C.", "D."], context=["what should have been retrieved"]),
        {"Question": "Q?", "Contexts": ["C.", "D."], "Answer": "A."},
        {"query": "Q?", "documents": ["C.", "D."], "output": "A."},
        {"Query": "Q?", "retrievalContext": ["C.", "D."], "actualOutput": "A."},
        {"userInput": "Q?", "retrieved-contexts": ["C.", "D."], "Prediction": "A."},
    ],
)
def test_every_kind_of_item_and_name(item):
    (row,) = read([item])
    assert texts(row) == ("Q?", ("C.", "D."), "A.")
    assert all(type(text) is str for text in (row.sample.user_input, *row.sample.retrieved_contexts))


@pytest.mark.parametrize(
    "name", ["reference", "ground_truth", "expected_output", "ground_truths", "reference_answer", "Ground Truth"]
)
def test_a_reference_answer_is_read_by_every_name_and_is_no_sample_alone(name):
    row, bad = read([{"question": "Q?", name: ["R."] if name == "ground_truths" else "R."}, {name: "R."}])
    assert row.sample.reference == "R."
    assert "none of a sample's fields" in problem(bad)


class Broken(dict):
    def items(self):
        raise ZeroDivisionError("when it is looked into")


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("text", "is str, not a Sample or a dict"),
        ({}, "none of a sample's fields has a value; the row has (none): name them with fields="),
        ({"contexts": [float("nan")]}, "contexts[0]: is NaN, not text (str)"),
        (
            {"contexts": [{"score": 1}]},
            "contexts[0]: is a document with 'score'; its text is read under page_content, text, content",
        ),
        ({"contexts": np.array("C.")}, "TypeError: iteration over a 0-d array"),
        ({"contexts": {"C."}}, "contexts: is one set; pass a list of texts"),
        ({"response": "A.", "id": True}, "id: is bool, not text (str)"),
        ({"question": "Q?", "output": 1, "Answer": 2}, "Answer: is int, not text (str)"),
        (
            {"response": "A.", "Answer": "B."},
            "response: 'response', 'Answer' hold different texts; say which with fields=",
        ),
        (Broken(response="A."), "ZeroDivisionError: when it is looked into"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_and_the_next_one_is_read(item, said):
    rows = read([item, WHOLE])
    assert problem(rows[0]).startswith(said)
    assert texts(rows[1])


def test_ids_of_other_types():
    ids = [7, np.int64(7), None, float("nan")]
    assert [row.sample.id for row in read([WHOLE | {"id": given} for given in ids])] == ["7", "7", "3", "4"]


def test_fields_by_other_names():
    fields = {"user_input": "q", "retrieved_contexts": "c", "response": "output", "id": "key"}
    row = {"q": "Q?", "c": "one text is one context", "output": "A.", "key": 3, "response": "no", "prediction": "no"}
    (found,) = read([row], fields)
    assert (*texts(found), found.sample.id) == ("Q?", ("one text is one context",), "A.", "3")
    assert texts(*read([{"question": "Q?", "query": "Q?", "answer": ""}])) == ("Q?", (), "")


def test_names_with_dots():
    row = {"inputs": {"q": "Q?"}, "outputs": {"answer": "A.", "docs": [{"page_content": "C."}, {"text": "D."}]}}
    fields = {"user_input": "inputs.q", "response": "outputs.answer", "retrieved_contexts": "outputs.docs"}
    (found,) = read([row], fields)
    assert (texts(found), found.first.also()) == (("Q?", ("C.", "D."), "A."), "")
    assert texts(*read([row], {**fields, "retrieved_contexts": "outputs.docs.0.page_content"}))[1] == ("C.",)
    said = "response: there is no key 'outputs.text'; the row has 'inputs', 'outputs'"
    assert problem(*read([row], {"response": "outputs.text"})) == said


def test_phoenix_calls_its_contexts_reference():
    (row,) = read([{"input": "Q?", "reference": "C.", "output": "A."}], "phoenix")
    assert (*texts(row), row.sample.reference) == ("Q?", ("C.",), "A.", None)


def test_the_first_row_says_what_was_not_read():
    first, second = read([{"question": "Q?", "found": ["A novel."], "score": 1, "answer": "A."}] * 2)
    assert first.first.also() == "also has 'found', 'score': fields={'retrieved_contexts': 'found'}"
    assert second.first is None
    # The ideal retrieval of a golden is not offered as what was retrieved.
    (golden,) = read([{"input": "Q?", "expected_output": "R.", "context": ["C."]}])
    assert golden.first.also() == ""


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"respnse": "a"}, ValueError, "fields: 'respnse' is no field of a sample; there are user_input, retrieved_"),
        ({"response": 7}, TypeError, r"fields\['response'\]: is int; name a column or key"),
        ("response", TypeError, "fields: is str; pass a mapping such as .*, or one of phoenix"),
    ],
)
def test_wrong_fields_are_refused_at_once(fields, error, said):
    with pytest.raises(error, match=said):
        rows_of([WHOLE], fields)


async def arriving():
    yield WHOLE


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        (WHOLE, TypeError, r"samples: is one dict \(with 'user_input', .*\), not a list of them; write \[row\]"),
        ({"train": [WHOLE]}, TypeError, r"with 'train'\).*or take one of the splits"),
        (None, TypeError, "samples: is NoneType; pass a list of Samples or dicts, a generator, a DataFrame"),
        (io.StringIO("{}"), TypeError, "samples: is StringIO; pass a list"),
        (arriving(), TypeError, "samples: is async_generator; pass a list of Samples or dicts"),
        ("Who wrote Emma?", SourceError, "there is no such file; samples that are no file are a list, in Python"),
        ("a\x00b.jsonl", SourceError, "there is no such file"),
        ("x" * 5_000, SourceError, "there is no such file"),
        ("s3://bucket/a.parquet", SourceError, "is an address; download it first"),
        (Path("https://example.org/a.csv"), SourceError, "is an address; download it first"),
    ],
    ids=[
        "row",
        "splits",
        "nothing",
        "open-file",
        "asynchronous",
        "question",
        "nul",
        "long",
        "address",
        "address-as-path",
    ],
)
def test_what_is_no_source_is_refused_at_once(source, error, said):
    with pytest.raises(error, match=said):
        rows_of(source)


# --- history and metadata -------------------------------------------------------------------------------------------

TURNS = [{"role": "human", "content": "Who wrote Emma?"}, {"role": "assistant", "content": "Jane Austen."}]
SAID = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen."))


def history(row):
    assert isinstance(row, Row), row
    return tuple((turn.role, turn.content) for turn in row.sample.history)


@pytest.mark.parametrize("name", ["history", "chat_history", "conversation_history"])
def test_history(name, cells):
    turns = [{"role": "system", "content": "Be kind."}, *TURNS, {"role": "tool", "content": "{}"}]
    for value in (turns, np.array(turns), json.dumps(turns)):
        assert history(*read([WHOLE | {name: value}])) == SAID
    assert history(*read([WHOLE | {"history": "not this", "before": turns}], {"history": "before"})) == SAID
    assert history(*read([WHOLE | {name: None}])) == history(*read([WHOLE | {name: []}])) == ()
    rows = read(cells(["answer", name], ["A.", json.dumps(TURNS)], ["A.", ""]))
    assert list(map(history, rows)) == [SAID, ()]
    assert "none of a sample's fields" in problem(*read([{name: TURNS}]))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("user: Why?", 'history: write a list such as [{"role": "user", "content": "Why?"}], or its JSON as text'),
        ('{"role": "user", "content": "Why?"}', "history: write a list"),
        (TURNS[0], "history: write a list"),
        (["Why?"], "history: write a list"),
        ([{"role": "critic", "content": "Why?"}], "history[0][role]: Input should be 'user' or 'assistant'"),
        ([*TURNS, {"role": "user", "content": 3}], "history[2][content]: is int, not text (str)"),
        ([{"content": "Why?"}], "history[0][role]: Field required"),
    ],
)
def test_what_is_no_history_is_said_by_name(value, said):
    assert problem(*read([{"response": "A.", "history": value}])).startswith(said)


def test_metadata(cells):
    kept = {"topic": "shoes", "n": 3}
    for value, held in ((kept, kept), (json.dumps(kept), kept), ("shoes", {"metadata": "shoes"})):
        assert read([WHOLE | {"metadata": value}])[0].sample.metadata == held
    path = cells(["answer", "additional_metadata", "topic"], ["A.", json.dumps(kept), "hats"], ["A.", "{'k': 1}", ""])
    assert [row.sample.metadata for row in read(path)] == [kept, {"additional_metadata": "{'k': 1}"}]
    assert read(path, {"metadata": "topic"})[0].sample.metadata == {"topic": "hats"}


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("a.jsonl", "".join(json.dumps(row) + "\n" for row in LINES), id="lines"),
        pytest.param("a.b.NDJSON", "\ufeff" + "\r\n\n".join(map(json.dumps, LINES)), id="bom-crlf"),
        pytest.param("a.json", "\ufeff\n" + json.dumps(LINES, indent=2), id="list"),
        pytest.param("list.jsonl", json.dumps(LINES), id="list-in-lines"),
        pytest.param("named.txt", "\n" + json.dumps(LINES), id="list-by-content"),
        pytest.param("named", CSV, id="csv-by-content"),
        pytest.param("a.csv", "\ufeff\r\n" + CSV.replace("\n", "\r\n"), id="csv-bom-crlf"),
        pytest.param("a.csv", CSV.encode("utf-16"), id="csv-utf-16"),
        pytest.param("a.txt", TSV, id="tsv"),
        pytest.param("a.csv", TSV.replace("\t", ";"), id="semicolons"),
        pytest.param("a.csv", "sep=;\r\n" + TSV.replace("\t", ";"), id="sep"),
    ],
)
def test_every_kind_of_file(file, name, content, packed):
    rows = read(str(file(name + packed, content)))
    assert [texts(row) for row in rows] == [("Q?", ("C.", "D."), "A."), ("R?", (), "B.")]
    assert [row.sample.id for row in rows][1] == "5"


@pytest.mark.parametrize("indent", [None, 1])
def test_one_object_with_the_rows_under_a_key(file, indent):
    rows = [{"query": "Q?", "reference_answer": "R.", "reference_contexts": ["no"]}, {"query": "R?"}]
    whole = json.dumps({"version": 1, "examples": rows, "none": []}, indent=indent)  # as LlamaIndex' rag_dataset.json
    found = read(file("a.json", whole))
    assert [(row.sample.user_input, row.sample.reference) for row in found] == [("Q?", "R."), ("R?", None)]
    found = read(file("a.json", whole.replace("query", "inp")), {"user_input": "inp"})
    assert [row.sample.user_input for row in found] == ["Q?", "R?"]
    (alone,) = read(file("a.json", json.dumps({"question": "Q?", "contexts": ["C."]}, indent=indent)))
    assert texts(alone)[:2] == ("Q?", ("C.",))


def test_an_object_that_is_no_sample_before_others_is_one_bad_row(file):
    bad, good = read(file("a.jsonl", '{"examples": [{"query": "no"}]}\n{"question": "Q?"}\n'))
    assert "none of a sample's fields has a value; the row has 'examples'" in problem(bad)
    assert good.sample.user_input == "Q?"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1, 2]", "is list, not a Sample or a dict"),
        (b'{"question": "tru', "not JSON: Unterminated string starting at column 14"),
        (b"[" * 200_000, "not JSON: maximum recursion depth"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON: Exceeds the limit"),
        (b'{"answer": "caf\xe9"}', "not JSON: 'utf-8' codec can't decode byte"),
        (b"{}", "none of a sample's fields has a value"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_bad_line_is_named_and_the_next_one_read(file, line, said):
    bad, good = read(file("a.jsonl", line + b"\n" + json.dumps(WHOLE).encode()))
    assert (bad.line, good.line) == (1, 2)
    assert problem(bad).startswith(said)
    assert len(problem(bad)) < 200


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", "", r"a\.jsonl: is empty: it holds no rows"),
        ("a.csv.gz", "\r\n\r\n", r"a\.csv\.gz: is empty"),
        ("a.csv", "question,answer\n", r"a\.csv: is empty"),
        ("a.jsonl", gzip.compress(b"\n" * 1_000_002), "line 1,000,001 is blank, as are the 1,000,000 before it"),
        ("a.csv", gzip.compress(b"question\n" + b" \n" * 1_000_002), "line 1,000,002 is blank"),
        ("a.json", "nonsense", r"a\.json: no sample in its first 1 row; line 1: not JSON: Expecting value"),
        ("a.jsonl", CSV * 30, r"a\.jsonl: no sample in its first 20 rows; line 1: not JSON: Expecting value"),
        ("a.bin", b"\x7fELF\0\0" * 50, r"a\.bin: is neither JSON, CSV, Parquet, Arrow nor .xlsx"),
        ("a.md", "# Title\n", r"a\.md: no column holds a field of a sample; the columns are '# Title': name them with"),
        ("a.csv", "history,id\n[],1\n", "no column holds a field of a sample"),
        ("a.csv", "question,answer,answer\n1,2,3\n", "the column 'answer' is there more than once"),
        (
            "a.csv",
            "Query,Question\n1,2\n",
            r"user_input: 'Question', 'Query' hold different texts; say which with fields=",
        ),
        ("a.jsonl", '{"ragstone_results": 1}\n', r"a\.jsonl: holds results; `ragstone report`, `explain` and"),
        ("a.json", '{"a": [{"q": 1}],\n"b": [{"q": 1}]}', "is one object with lists under 'a', 'b'; pass the one with"),
        ("b.csv", gzip.compress(CSV.encode() * 1000)[:-20], "cannot be read: Compressed file ended"),
        ("a.parquet", b"PAR1garbage", r"a\.parquet: cannot be read: "),
    ],
)
def test_a_file_that_cannot_be_read_says_why(file, name, content, said):
    with pytest.raises(SourceError, match=said):
        read(file(name, content))


def test_a_folder_and_the_home_folder(file, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    file("a.jsonl", '{"question": "Q?"}')
    assert len(read("~/a.jsonl")) == 1
    with pytest.raises(SourceError, match="is a folder; name a file in it, or a folder that Dataset.save_to_disk"):
        read(tmp_path)
    file("dataset_dict.json", '{"splits": ["train", "test"]}')
    with pytest.raises(SourceError, match="holds the splits 'train', 'test'; name the folder of one of them"):
        read(tmp_path)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_line_and_a_cell_have_a_largest_size(file, name, packed):
    long, cell = "x" * 1_000, "x\n" * 600
    lines = ['{"question": "Q?"}', f'{{"question": "{long}"}}']
    path = file(name + packed, "\n".join(lines if name == "a.jsonl" else ["question,answer", "Q?,A.", f"{long},A."]))
    rows = rows_of(path, largest=1_000)
    assert next(rows).sample.user_input == "Q?"
    with pytest.raises(SourceError, match=r"line \d is longer than 1,000 bytes; split it, or read it by rows_of"):
        list(rows)
    assert len(read(path)) == 2
    _, bad, *_ = rows_of(file(f"b.csv{packed}", f'question,answer\nQ?,A.\n"{cell}",A.\n'), largest=1_000)
    assert "field larger than field limit" in problem(bad)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_read_while_it_is_written(tmp_path):
    path = tmp_path / "a.jsonl"
    os.mkfifo(path)
    read_first = threading.Event()

    def write():
        with path.open("w") as pipe:
            print(json.dumps(WHOLE), file=pipe, flush=True)
            assert read_first.wait(60)
            print(json.dumps(WHOLE), file=pipe, flush=True)

    writer = threading.Thread(target=write)
    writer.start()
    rows = rows_of(path)
    assert texts(next(rows))
    read_first.set()
    assert texts(next(rows))
    assert list(rows) == []
    writer.join()


def test_standard_input_by_its_content():
    with programs.start(
        "from ragstone.sources import rows_of; print([r.sample.user_input for r in rows_of('-')])"
    ) as of:
        said, _ = of.communicate("".join(json.dumps(row) + "\n" for row in LINES))
    assert said == "['Q?', 'R?']\n"


# --- CSV ------------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), st.text("\",\r\n' a")
        ).filter(lambda texts: texts[0][0] != '"'),
        min_size=1,
        max_size=4,
    )
)
def test_what_a_csv_writer_writes_is_read_exactly(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["answer", "question"], *cells])
    assert [(r.sample.response, r.sample.user_input) for r in read(path)] == [(a, q or None) for a, q in cells]


def test_cells_stay_text_and_empty_ones_are_absent(file):
    rows = read(file("a.csv", "question,answer,contexts,id\n42,nan,,007\n,NA,,\n,,,\n,,,x\n"))
    assert (*texts(rows[0]), rows[0].sample.id) == ("42", (), "nan", "007")
    assert "retrieved_contexts" not in rows[0].sample.model_fields_set
    assert texts(rows[1]) == (None, (), "NA")
    assert all("none of a sample's fields has a value" in problem(row) for row in rows[2:])


def test_texts_lose_the_quotes_that_tracing_products_write_around_all_of_them(file):
    cells = [[json.dumps(text) for text in ("Why?", 'He said "so".\n', "")], ['"Why?"', "So.", "7"]]
    text = io.StringIO()
    csv.writer(text).writerows([["input", "output", "id"], *cells])
    rows = read(file("a.csv", text.getvalue()))
    assert [(row.sample.user_input, row.sample.response, row.sample.id) for row in rows] == [
        ("Why?", 'He said "so".\n', "1"),
        ('"Why?"', "So.", "7"),
    ]


def test_records_that_are_none_are_bad_rows(file):
    """A quote that is never closed would else take all rows behind it for its cell, and nobody would know."""
    body = 'question,answer\n"Q\n?",A.\nR?\nS?,B.,C.\nT?,caf\xe9\n'.encode()
    rows = read(file("a.csv", body + "U?,caf\xe9\n".encode("latin-1") + b'V?,D.\n"W?,E.\nX?,F.\n'))
    assert [row.line for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert problem(rows[1]) == "has 1 cells, and there are 2 columns (it ends on line 4 of the file)"
    assert problem(rows[2]) == "has 3 cells, and there are 2 columns (it ends on line 5 of the file)"
    assert problem(rows[4]) == "is not UTF-8; save the file as UTF-8 (it ends on line 7 of the file)"
    assert problem(rows[6]).startswith("is not CSV: unexpected end")
    assert [texts(rows[i])[2] for i in (0, 3, 5)] == ["A.", "caf\xe9", "D."]


def test_columns_by_other_names(file):
    path = file("a.csv", "q,c,answer,output\nQ?,One.,no,A.\n")
    (row,) = read(path, {"user_input": "q", "retrieved_contexts": "c", "response": "output"})
    assert texts(row) == ("Q?", ("One.",), "A.")
    with pytest.raises(SourceError, match="response: there is no column 'ouput'; the columns are 'q', 'c', 'answer'"):
        read(path, {"response": "ouput"})


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ('["One.", "Two."]', ["One.", "Two."]),
        ("['It\\'s \"one\".',\n'Two.']", ['It\'s "one".', "Two."]),
        ("[{'page_content': 'One.'}]", ["One."]),
        ("('One.', 'Two.')", ["One.", "Two."]),
        ("[]", []),
        *((text, [text]) for text in ("[1] a footnote first", "[[Emma]] is a novel.", "('Twas the night.)", "a|b")),
    ],
)
def test_contexts_in_one_cell(cells, cell, found):
    (row,) = read(cells(["contexts", "answer"], [cell, "A."]))
    assert list(row.sample.retrieved_contexts) == found


def test_deepeval_writes_contexts_with_bars(cells):
    path = cells(["input", "actual_output", "Retrieval Context"], ["Q?", "A.|B.", "One.|Two."], ["Q?", "A.", '["a|b"]'])
    assert [texts(row)[1:] for row in read(path)] == [(("One.", "Two."), "A.|B."), (("a|b",), "A.")]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("['One.'\n 'Two.']", "begins as a list and is none: it was cut off"),  # numpy's
        ("[Document(metadata={}, page_content='One.')]", "or is one of numpy's or of objects; write it as JSON"),
        ("array(['One.', 'Two.'], dtype=object)", "begins as a list and is none"),
        ('["One.", "Tw', "begins as a list and is none"),
        ('[{"page_content": "One."}, {"page_', "begins as a list and is none"),
        ("['One.', f'{1}']", "begins as a list and is none"),
        ("['" + "x" * 1_000_000 + "']", "begins as a list and is none"),
        ("[None]", "contexts[0]: is NoneType, not text"),
        ("[['One.'], ['Two.']]", "contexts[0]: is list, not text"),
    ],
)
def test_a_list_that_is_none_of_texts_is_not_shown_to_the_judge(cells, cell, said):
    good, bad = read(cells(["contexts", "answer"], ["C.", "A."], [cell, "A."]))
    assert texts(good)
    assert said in problem(bad)


# --- tables ---------------------------------------------------------------------------------------------------------

COLUMNS = {
    "question": ["Q?", "R?", None],
    "contexts": [["C.", "D."], None, []],
    "answer": ["A.", None, None],
    "id": [1, 2, 3],
    "other": [1.5, None, 2.5],
}


def pandas_frame(tmp_path):
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def arrow_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    return arrow_table(tmp_path).to_pandas(types_mapper=pandas.ArrowDtype)


def arrow_table(tmp_path):
    return pytest.importorskip("pyarrow").table(COLUMNS)


def arrow_reader(tmp_path):
    return arrow_table(tmp_path).to_reader(max_chunksize=1)


def arrow_batch(tmp_path):
    return arrow_table(tmp_path).to_batches()[0]


def polars_frame(tmp_path):
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def hugging_face(tmp_path):
    return pytest.importorskip("datasets").Dataset.from_dict(COLUMNS)


def hugging_face_stream(tmp_path):
    return hugging_face(tmp_path).to_iterable_dataset()


def parquet(tmp_path):
    path = tmp_path / "a.unnamed"
    pytest.importorskip("pyarrow.parquet").write_table(arrow_table(tmp_path), path, row_group_size=2)
    return path


def arrow_file(tmp_path):
    table, path = arrow_table(tmp_path), tmp_path / "a.unnamed"
    with pytest.importorskip("pyarrow").ipc.new_file(path, table.schema) as out:
        out.write_table(table, max_chunksize=1)
    return path


def hugging_face_folder(tmp_path):
    hugging_face(tmp_path).save_to_disk(tmp_path / "saved", num_shards=2)
    return tmp_path / "saved"


def pandas_of_parquet(tmp_path):
    return pytest.importorskip("pandas").read_parquet(parquet(tmp_path))


@pytest.mark.parametrize(
    "make",
    [
        pandas_frame, arrow_frame, arrow_table, arrow_batch, arrow_reader, polars_frame, hugging_face, hugging_face_stream, parquet,
        arrow_file, hugging_face_folder, pandas_of_parquet,
    ],
)  # fmt: skip
def test_every_kind_of_table(make, tmp_path):
    rows = read(make(tmp_path))
    assert [texts(row) for row in rows] == [("Q?", ("C.", "D."), "A."), ("R?", (), None), (None, (), None)]
    assert [row.sample.id for row in rows] == ["1", "2", "3"]
    assert ["retrieved_contexts" in row.sample.model_fields_set for row in rows] == [True, False, True]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("make", [parquet, arrow_file])
def test_a_table_comes_through_a_pipe(make, tmp_path):
    body, pipe = make(tmp_path).read_bytes(), tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[body])
    writer.start()
    assert [row.sample.id for row in read(pipe)] == ["1", "2", "3"]
    writer.join()


def test_cells_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"answer": ["A."] * 4, "id": [1, None, 2.5, 10**15]})
    assert [row.sample.id for row in read(frame)] == ["1", "2", "2.5", "1000000000000000"]
    said = read(pandas.DataFrame({"answer": [5, True, ["B."]]}))
    assert list(map(problem, said)) == [f"answer: is {kind}, not text (str)" for kind in ("int", "bool", "list")]
    with pytest.raises(SourceError, match="DataFrame: no column holds a field of a sample; the columns are 'q'"):
        rows_of(pandas.DataFrame({"q": ["Q?"]}))
    lists = [["C.", 'It\'s "D".'], ["E."]]
    pandas.DataFrame({"answer": ["A.", "B."], "contexts": lists}).to_csv(tmp_path / "a.csv")
    for source in (pandas.read_csv(tmp_path / "a.csv"), tmp_path / "a.csv"):
        assert [list(row.sample.retrieved_contexts) for row in read(source)] == lists


def test_a_damaged_arrow_table_is_refused_before_a_value_of_it_is_read():
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.array(["Who?", "Why?"])
    offsets = pyarrow.py_buffer(np.array([0, 2_000_000_000, 8], dtype=np.int32))
    damaged = pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, offsets, texts.buffers()[2]])
    with pytest.raises(ValueError, match="out of bounds"):
        read(pyarrow.table({"question": damaged}))


def test_a_row_of_arrow_has_a_largest_size():
    table = pytest.importorskip("pyarrow").table({"question": ["Q?", "x" * 10_000, "R?"]})
    with pytest.raises(SourceError, match=r"a row is larger than 5,000 bytes; split it"):
        list(rows_of(table, largest=5_000))
    assert len(read(table)) == 3


@pytest.mark.parametrize("texts", [["x" * 5_000_000], ["x" * 5_000_000, *"abc"]])
def test_a_row_of_parquet_has_a_largest_size_that_its_footer_tells(tmp_path, texts):
    pyarrow, path = pytest.importorskip("pyarrow"), tmp_path / "a.parquet"
    table = pyarrow.table({"answer": texts, "picture": ["y" * 9_000_000] * len(texts)})
    pytest.importorskip("pyarrow.parquet").write_table(table, path, compression="zstd", use_dictionary=False)
    assert len(read(path)) == len(texts)
    body = bytearray(path.read_bytes())
    body[4:400] = bytes(396)  # so that whoever unpacks it fails
    path.write_bytes(body)
    with pytest.raises(SourceError, match=rf"{len(texts)} rows? of 5,000,\d+ bytes in all, and one may have 1,000,000"):
        list(rows_of(path, largest=1_000_000))


def test_without_pyarrow_what_to_install_is_said(tmp_path, monkeypatch):
    path = parquet(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)  # as where it is not installed
    with pytest.raises(SourceError, match="reading Parquet and Arrow needs pyarrow: pip install pyarrow"):
        read(path)
