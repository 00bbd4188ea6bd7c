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

WHOLE = {"user_input": "Q?", "retrieved_contexts": ["C.", "D."], "response": "A."}
SAMPLE = Sample(**WHOLE)


def read(source, fields=None):
    return list(rows_of(source, fields))


def problem(row):
    assert isinstance(row, BadLine), row
    return row.problem


def refused(source):
    with pytest.raises(SourceError) as caught:
        read(source)
    return str(caught.value)


def texts(row):
    assert isinstance(row, Row), row
    return row.sample.user_input, tuple(row.sample.retrieved_contexts), row.sample.response


# --- in memory ------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "item",
    [
        Row(7, SAMPLE),
        WHOLE | {"other": object(), 3: "a key that is no text"},
        {**WHOLE, "retrieved_contexts": np.array(["C.", "D."])},
        RagasLike(**WHOLE),
        DeepEvalLike("Q?", "A.", ["C.", "D."], context=["what should have been retrieved"]),
    ],
    ids=lambda item: type(item).__name__,
)
def test_every_kind_of_item(item):
    (row,) = read([item])
    assert texts(row) == ("Q?", ("C.", "D."), "A.")
    assert all(type(text) is str for text in (row.sample.user_input, *row.sample.retrieved_contexts))


class Broken(dict):
    def __getitem__(self, name):
        raise ZeroDivisionError("when it is looked into")


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("text", "is str, not a Sample or a dict"),
        ({}, "none of a sample's fields; the row has (none): name them with fields="),
        ({"contexts": [float("nan")]}, "retrieved_contexts[0]: is NaN, not text (str)"),
        ({"contexts": np.array("C.")}, "TypeError: iteration over a 0-d array"),
        ({"contexts": {"C."}}, "retrieved_contexts: is a set, which has no order; pass a list of texts"),
        (Broken(response="A."), "ZeroDivisionError: when it is looked into"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(item, said):
    rows = read([item, WHOLE])
    assert problem(rows[0]).startswith(said)
    assert texts(rows[1])


# --- ids ------------------------------------------------------------------------------------------------------------


def test_ids_of_other_types():
    ids = [7, np.int64(7), None, float("nan")]
    assert [row.sample.id for row in read([WHOLE | {"id": given} for given in ids])] == ["7", "7", "3", "4"]


# --- names of fields ------------------------------------------------------------------------------------------------


def test_fields_by_other_names():
    fields = {"user_input": "q", "retrieved_contexts": "c", "response": "r", "id": "key"}
    (row,) = read([{"q": "Q?", "c": "one text is one context", "r": "A.", "key": 3, "response": "not this"}], fields)
    assert texts(row) == ("Q?", ("one text is one context",), "A.")
    assert row.sample.id == "3"


@pytest.mark.parametrize(
    "row",
    [
        {"Question": "Q?", "Contexts": ["C."], "Answer": "A.", "Ground Truth": "R."},
        {"query": "Q?", "documents": ["C."], "output": "A.", "ground_truths": ["R."]},
        {"Query": "Q?", "retrievalContext": ["C."], "actualOutput": "A.", "expectedOutput": "R."},
        {"userInput": "Q?", "retrieved-contexts": ["C."], "Prediction": "A.", "reference_answer": "R."},
    ],
)
def test_names_in_other_writings(row):
    (found,) = read([row])
    assert (*texts(found), found.sample.reference) == ("Q?", ("C.",), "A.", "R.")
    assert found.unread == ""


def test_two_names_of_one_field():
    assert texts(*read([{"question": "Q?", "query": "no", "answer": "A.", "output": "no"}]))[::2] == ("Q?", "A.")
    assert "response: 'output', 'Answer' both mean it" in problem(*read([{"question": "Q?", "output": 1, "Answer": 2}]))
    (row,) = read([{"question": "Q?", "output": "A.", "prediction": "no"}], {"response": "output"})
    assert row.sample.response == "A."


def test_names_with_dots_and_documents():
    row = {"inputs": {"q": "Q?"}, "outputs": {"answer": "A.", "docs": [{"page_content": "C."}, {"text": "D."}]}}
    fields = {"user_input": "inputs.q", "response": "outputs.answer", "retrieved_contexts": "outputs.docs"}
    assert texts(*read([row], fields)) == ("Q?", ("C.", "D."), "A.")
    assert read([row], fields)[0].unread == ""
    assert texts(*read([row], {**fields, "retrieved_contexts": "outputs.docs.0.page_content"}))[1] == ("C.",)
    assert "response: there is no key 'outputs.text'" in problem(*read([row], {"response": "outputs.text"}))

    @dataclasses.dataclass
    class Document:
        page_content: str

    for documents in ([Document("C.")], [{"document": {"content": "C."}}], [{"node": Document("C.")}], ["C."]):
        assert texts(*read([{"contexts": documents}]))[1] == ("C.",)
    assert "retrieved_contexts[0]: is dict" in problem(*read([{"contexts": [{"score": 1}]}]))


def test_phoenix_calls_its_contexts_reference():
    row = {"input": "Q?", "reference": "C.", "output": "A."}
    (found,) = read([row], "phoenix")
    assert (*texts(found), found.sample.reference) == ("Q?", ("C.",), "A.", None)


def test_deepeval_writes_contexts_with_bars(tmp_path):
    cells = 'input,actual_output,retrieval_context\nQ?,A.,One.|Two.\nQ?,A.,"[""a|b""]"\n'
    assert [texts(row)[1] for row in read(written(tmp_path, "a.csv", cells))] == [("One.", "Two."), ("a|b",)]
    cells = "Input,Actual Output,Retrieval Context\nQ?,A.,One.|Two.\n"
    assert [texts(row)[1] for row in read(written(tmp_path, "c.csv", cells))] == [("One.", "Two.")]
    cells = "question,answer,contexts\nQ?,A.,\"[{'page_content': 'One.'}]\"\n"
    assert [texts(row)[1] for row in read(written(tmp_path, "d.csv", cells))] == [("One.",)]
    cells = "question,answer,contexts\nQ?,A.|B.,a|b\n"  # of others a bar is a bar
    assert [texts(row) for row in read(written(tmp_path, "b.csv", cells))] == [("Q?", ("a|b",), "A.|B.")]


@pytest.mark.parametrize(
    "content",
    [
        "question;contexts;answer\nQ?;C, D.;A.\n",
        "sep=;\nquestion;contexts;answer\nQ?;C, D.;A.\n",
        "\nquestion\tcontexts\tanswer\nQ?\tC, D.\tA.\n",
        'question,contexts,answer\nQ?,"C, D.",A.\n',
    ],
)
def test_what_separates_cells(tmp_path, content):
    assert [texts(row) for row in read(written(tmp_path, "a.csv", content))] == [("Q?", ("C, D.",), "A.")]


@pytest.mark.parametrize("indent", [None, 1])
def test_one_object_with_the_rows_under_a_key(tmp_path, indent):
    rows = [{"query": "Q?", "reference_answer": "R.", "reference_contexts": ["no"]}, {"query": "R?"}]
    whole = json.dumps({"version": 1, "examples": rows, "none": []}, indent=indent)  # as LlamaIndex' rag_dataset.json
    found = read(written(tmp_path, "a.json", whole))
    assert [(row.sample.user_input, row.sample.reference) for row in found] == [("Q?", "R."), ("R?", None)]
    named = read(written(tmp_path, "c.json", whole.replace("query", "inp")), {"user_input": "inp"})
    assert [row.sample.user_input for row in named] == ["Q?", "R?"]
    (alone,) = read(written(tmp_path, "b.json", json.dumps({"question": "Q?", "contexts": ["C."]}, indent=indent)))
    assert texts(alone)[:2] == ("Q?", ("C.",))


def test_an_object_that_is_no_sample_before_others_is_one_bad_row(tmp_path):
    lines = '{"examples": [{"query": "no"}]}\n{"question": "Q?"}\n'
    bad, good = read(written(tmp_path, "a.jsonl", lines))
    assert "none of a sample's fields; the row has 'examples'" in problem(bad)
    assert good.sample.user_input == "Q?"


def test_the_first_row_says_what_was_not_read():
    first, second = read([{"question": "Q?", "context": ["C."], "score": 1}] * 2)
    assert first.unread == "also has 'context', 'score': fields={'retrieved_contexts': 'context'}"
    assert second.unread == ""


def test_wrong_fields_are_refused_at_once():
    for fields, error, said in (
        ({"respnse": "a"}, ValueError, "fields: 'respnse' is no field of a sample; there are user_input, retrieved_"),
        ("response", ValueError, "fields: 'response' is none of phoenix, nor a mapping"),
        (7, TypeError, "fields: is int; pass a mapping such as"),
    ):
        with pytest.raises(error, match=said):
            rows_of([WHOLE], fields)


# --- what is no source ----------------------------------------------------------------------------------------------


def test_what_is_no_source_is_refused_at_once():
    for source, said in (
        (WHOLE, r"samples: is one dict \(with 'user_input', .*\), not a list of them; write \[row\]"),
        ({"train": [WHOLE]}, r"with 'train'\).*or take one of the splits"),
        (None, "samples: is NoneType; pass an iterable of Samples or dicts, a DataFrame"),
    ):
        with pytest.raises(TypeError, match=said):
            rows_of(source)


@pytest.mark.parametrize("text", ["Who wrote Emma?", "a\x00b.jsonl", "x" * 5_000])
def test_a_text_that_is_no_path_is_refused_at_once(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match="there is no such file; pass the path of one, or a list of samples"):
        rows_of(text)


# --- files ----------------------------------------------------------------------------------------------------------

LINES = [WHOLE, {"question": "R?", "answer": "B.", "id": 5}]
CSV = 'question,contexts,answer,id\nQ?,"[""C."", ""D.""]",A.,\nR?,,B.,5\n'


def written(folder, name, content):
    path = folder / name
    body = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("a.jsonl", "".join(json.dumps(row) + "\n" for row in LINES), id="lines"),
        pytest.param("a.b.NDJSON", "\ufeff" + "\r\n".join(map(json.dumps, LINES)), id="bom-crlf"),
        pytest.param("a.json", "\ufeff\n" + json.dumps(LINES, indent=2), id="list"),
        pytest.param("lines.json", "".join(json.dumps(row) + "\n" for row in LINES), id="lines-in-json"),
        pytest.param("list.jsonl", json.dumps(LINES), id="list-in-lines"),
        pytest.param("named.txt", "\n" + json.dumps(LINES), id="list-by-content"),
        pytest.param("named", CSV, id="csv-by-content"),
        pytest.param("b.txt", CSV.replace(",", "\t").replace('""\t', '"",'), id="tsv-by-content"),
        pytest.param("a.csv", "\ufeff" + CSV.replace("\n", "\r\n"), id="csv-bom-crlf"),
        pytest.param("a.csv", CSV.encode("utf-16"), id="csv-utf-16"),
        pytest.param("a.tsv", CSV.replace(",", "\t").replace('""\t', '"",'), id="tsv"),
    ],
)
def test_every_kind_of_file(tmp_path, name, content):
    for packed in ("", ".gz"):
        path = written(tmp_path, name + packed, content)
        for source in (path, str(path)):
            rows = read(source)
            assert [texts(row) for row in rows] == [("Q?", ("C.", "D."), "A."), ("R?", (), "B.")]
            assert [row.sample.id for row in rows] == ["1", "5"]


def test_an_empty_file_is_said(tmp_path):
    for name, content in (("a.jsonl", ""), ("a.json", "\n"), ("a.csv", "\r\n\r\n"), ("b.csv", "question,answer\n")):
        for packed in ("", ".gz"):
            with pytest.raises(SourceError, match=f"{name}{packed}: is empty: it holds no rows"):
                read(written(tmp_path, name + packed, content))


def test_the_home_folder_and_addresses(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    written(tmp_path, "a.jsonl", '{"question": "Q?"}')
    assert len(read("~/a.jsonl")) == 1
    for address in ("https://example.org/a.csv", "s3://bucket/a.parquet", "hf://datasets/a/b"):
        for source in (address, Path(address)):
            with pytest.raises(SourceError, match="is an address; download it first"):
                rows_of(source)


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_line_and_a_cell_have_a_largest_size(tmp_path, packed):
    long = "x" * 1_000
    for name, content, where in (
        ("a.jsonl", f'{{"question": "Q?"}}\n{{"question": "{long}"}}\n', "line 2 is longer than 1,000 bytes"),
        ("a.csv", f"question,answer\nQ?,A.\n{long},A.\n", "line 3 is longer than 1,000 bytes"),
    ):
        rows = rows_of(written(tmp_path, name + packed, content), largest=1_000)
        assert next(rows).sample.user_input == "Q?"
        with pytest.raises(SourceError, match=f"{where}; split it, or read it by rows_of"):
            list(rows)
        assert len(list(rows_of(tmp_path / f"{name}{packed}"))) == 2
    cell = "x\n" * 600
    rows = list(rows_of(written(tmp_path, f"b.csv{packed}", f'question,answer\nQ?,A.\n"{cell}",A.\n'), largest=1_000))
    assert "field larger than field limit" in rows[1].problem


def test_a_row_of_arrow_has_a_largest_size():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"question": ["Q?", "x" * 10_000, "R?"], "answer": ["A.", "B.", "C."]})
    with pytest.raises(SourceError, match=r"row 2 is larger than 5,000 bytes; split it"):
        list(rows_of(table, largest=5_000))
    assert len(list(rows_of(table))) == 3


def test_a_million_blank_lines_are_enough(tmp_path):
    path = written(tmp_path, "a.jsonl.gz", "\n" * 1_000_001)
    with pytest.raises(SourceError, match="its first 1,000,000 lines are blank"):
        read(path)
    assert len(read(written(tmp_path, "b.jsonl", "\n" * 999_999 + '{"question": "Q?"}'))) == 1


def test_a_damaged_arrow_table_is_refused_before_a_value_of_it_is_read():
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.array(["Who?", "Why?"])
    offsets = pyarrow.py_buffer(np.array([0, 2_000_000_000, 8], dtype=np.int32))
    damaged = pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, offsets, texts.buffers()[2]])
    for table in (pyarrow.table({"question": damaged}), pyarrow.record_batch({"question": damaged})):
        with pytest.raises(SourceError, match="the rows from 1 on are damaged"):
            list(rows_of(table))


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), st.text("\",\r\n' a")),
        min_size=1,
        max_size=4,
    )
)
def test_what_a_csv_writer_writes_is_read_exactly(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["answer", "question"], *cells])
    assert [(r.sample.response, r.sample.user_input) for r in read(path)] == [(a, q or None) for a, q in cells]


def test_contexts_in_one_cell(tmp_path):
    cells = ['["One.", "Two."]', "[]", "[1] a footnote first", "[[Emma]] is a novel.", "('Twas the night.)"]
    cells += ["('One.', 'Two.')", "[Sic] he said (twice)."]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["contexts", "answer"], *([cell, "A."] for cell in cells)])
    found = [row.sample.retrieved_contexts for row in read(tmp_path / "a.csv")]
    assert found[:3] == [("One.", "Two."), (), ("[1] a footnote first",)]
    assert found[3:5] == [("[[Emma]] is a novel.",), ("('Twas the night.)",)]
    assert found[5:] == [("One.", "Two."), ("[Sic] he said (twice).",)]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("['One.'\n 'Two.']", "begins as a list and is none: it was cut off"),  # numpy's
        ("['One.' 'Two.']", "or is one of numpy's or of objects; write it as JSON"),
        ("[Document(metadata={}, page_content='One.')]", "begins as a list and is none"),
        ("[Document('One.')]", "begins as a list and is none"),
        ("array(['One.', 'Two.'], dtype=object)", "begins as a list and is none"),
        ("[None]", "retrieved_contexts"),
        ("[['One.'], ['Two.']]", "retrieved_contexts"),
        ('["One.", "Tw', "begins as a list and is none: it was cut off"),
        ('[{"page_content": "One."}, {"page_', "begins as a list and is none: it was cut off"),
        ("['One.', 'Tw", "begins as a list and is none: it was cut off"),
        ("['One.', f'{1}']", "begins as a list and is none"),
        ("['" + "x" * 1_000_000 + "']", "begins as a list and is none"),
        ('["One.", 2]', ", not text (str)"),
    ],
)
def test_a_list_that_is_no_json_of_texts_is_not_shown_to_the_judge(tmp_path, cell, said):
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["contexts", "answer"], [cell, "A."]])
    assert said in refused(path)


TURNS = [{"role": "human", "content": "Who wrote Emma?"}, {"role": "assistant", "content": "Jane Austen."}]
SAID = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen."))


def history(row):
    assert isinstance(row, Row), row
    return tuple((turn.role, turn.content) for turn in row.sample.history)


@pytest.mark.parametrize("name", ["history", "chat_history", "conversation_history"])
def test_history_from_every_kind_of_source(tmp_path, name):
    row = {"question": "And when?", "answer": "In 1815.", name: TURNS}
    cells = io.StringIO()
    csv.writer(cells).writerows([list(row), ["And when?", "In 1815.", json.dumps(TURNS)], ["Why?", "So.", ""]])
    content = {"a.jsonl": json.dumps(row), "a.json": json.dumps([row]), "a.csv": cells.getvalue()}
    paths = [written(tmp_path, file, body) for file, body in content.items()]
    pandas, pq = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pytest.importorskip("pyarrow").Table.from_pylist([row]), tmp_path / "a.parquet")
    read_back = pandas.read_parquet(tmp_path / "a.parquet")
    for source in ([row], *paths, tmp_path / "a.parquet", read_back, pandas.DataFrame([row])):
        assert history(read(source)[0]) == SAID, source
    assert history(read(tmp_path / "a.csv")[1]) == ()


def test_history_by_another_name_and_without_turns_of_system_and_tools():
    turns = [{"role": "system", "content": "Be kind."}, *TURNS, {"role": "tool", "content": "{}"}]
    (row,) = read([WHOLE | {"history": "not this", "before": np.array(turns)}], {"history": "before"})
    assert history(row) == SAID
    assert history(*read([WHOLE | {"history": None}])) == history(*read([WHOLE | {"history": []}])) == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *(
            (bad, 'history: write a list such as [{"role": "user", "content": "Why?"}], or its JSON as text')
            for bad in (
                "user: Why?",
                "",
                '{"role": "user", "content": "Why?"}',
                3,
                TURNS[0],
                ["Why?"],
                [["Why?", "So."]],
            )
        ),
        ([{"role": "bot", "content": "Why?"}], "history[0][role]: Input should be 'user' or 'assistant'"),
        ([*TURNS, {"role": "user", "content": 3}], "history[2][content]: is int, not text (str)"),
        ([{"content": "Why?"}], "history[0][role]: Field required"),
    ],
)
def test_what_is_no_history_is_said_by_name(tmp_path, value, said):
    row = {"response": "A.", "history": value}
    assert said in problem(*read([row]))
    assert said in refused(written(tmp_path, "a.jsonl", json.dumps(row)))


def test_metadata(tmp_path):
    kept = {"topic": "shoes", "n": 3}
    assert read([WHOLE | {"metadata": kept}])[0].sample.metadata == kept
    cells = io.StringIO()
    csv.writer(cells).writerows([["answer", "metadata", "topic"], ["A.", json.dumps(kept), "hats"]])
    path = written(tmp_path, "a.csv", cells.getvalue())
    assert read(path)[0].sample.metadata == kept
    assert read(path, {"metadata": "topic"})[0].sample.metadata == {"topic": "hats"}
    for text, held in (("shoes", {"metadata": "shoes"}), ("{'k': 1}", {"k": 1}), ("{cut", {"metadata": "{cut"})):
        assert read([WHOLE | {"metadata": text}])[0].sample.metadata == held
    path = written(tmp_path, "b.csv", "answer,additional_metadata\nA.,\"{'k': 1}\"\nB.,from the shop\n")
    assert [row.sample.metadata for row in read(path)] == [{"k": 1}, {"additional_metadata": "from the shop"}]


def test_history_alone_is_no_sample(tmp_path):
    assert "none of a sample's fields" in problem(*read([{"history": TURNS}]))
    with pytest.raises(SourceError, match="no column holds a field of a sample"):
        read(written(tmp_path, "a.csv", "history,id\n[],1\n"))


def test_cells_stay_text_and_empty_ones_are_absent(tmp_path):
    path = written(tmp_path, "a.csv", "question,answer,contexts,id\n42,nan,,007\n,NA,,\n,,,\n,,,x\n")
    rows = read(path)
    assert texts(rows[0]) == ("42", (), "nan")
    assert "retrieved_contexts" not in rows[0].sample.model_fields_set
    assert rows[0].sample.id == "007"
    assert texts(rows[1]) == (None, (), "NA")
    for row in rows[2:]:
        assert "every cell is empty that could hold a field of a sample" in problem(row)


def test_a_record_of_too_many_or_too_few_cells_is_a_bad_row(tmp_path):
    path = written(tmp_path, "a.csv", 'question,answer\n"Q\n?",A.\nR?\nS?,B.,C.\nT?,D.\n')
    rows = read(path)
    assert [row.line for row in rows] == [1, 2, 3, 4]
    assert problem(rows[1]) == "the record that begins on line 4 of the file: has 1 cells, and there are 2 columns"
    assert problem(rows[2]) == "the record that begins on line 5 of the file: has 3 cells, and there are 2 columns"
    assert texts(rows[3]) == ("T?", (), "D.")


def test_a_quote_that_is_never_closed_is_said(tmp_path):
    """Else it would take all rows behind it for its cell, and nobody would know."""
    rows = read(written(tmp_path, "a.csv", 'question,answer\nQ?,A.\n"R?,B.\nS?,C.\n'))
    assert texts(rows[0])
    assert problem(rows[1]).startswith("the record that begins on line 3 of the file: is not CSV: unexpected end")


def test_mixed_encodings_spoil_their_rows_alone(tmp_path):
    body = "question,answer\nQ?,caf\xe9\n".encode() + "R?,caf\xe9\n".encode("latin-1") + "S?,\U0001f44d\n".encode()
    rows = read(written(tmp_path, "a.csv.gz", body))
    assert problem(rows[1]).endswith("line 3 of the file: answer: is not UTF-8; save the file as UTF-8")
    assert [texts(row)[2] for row in rows[::2]] == ["caf\xe9", "\U0001f44d"]
    good, bad = read(written(tmp_path, "a.jsonl", '{"answer": "caf\xe9"}\n'.encode() + b'{"answer": "caf\xe9"}\n'))
    assert texts(good)[2] == "caf\xe9"
    assert problem(bad).startswith("not UTF-8 at byte")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", "nonsense", r"a\.json: no sample in its 1 row\(s\); line 1: not JSON: Expecting value at column 1"),
        (
            "a.jsonl",
            CSV * 30,
            r"a\.jsonl: no sample in its first 20 rows; line 1: not JSON: Expecting value at column 1",
        ),
        ("a.bin", b"\x7fELF\0\0" * 50, r"a\.bin: is neither JSON, CSV, TSV, Parquet nor Arrow"),
        ("a.md", "# Title\n", r"a\.md: no column holds a field of a sample; the columns are '# Title'"),
        ("a.jsonl", '{"ragstone_results": 1}\n', r"a\.jsonl: holds results; `ragstone report`, `explain` and"),
        (
            "a.csv",
            "a,b\n1,2\n",
            r"a\.csv: no column holds a field of a sample; the columns are 'a', 'b': name them with fi",
        ),
        (
            "a.json",
            '{"a": [{"q": 1}],\n"b": [{"q": 1}]}',
            r"is one object with lists under 'a', 'b'; pass the one with",
        ),
        ("c.csv", "Query,Question\n1,2\n", r"user_input: 'Query', 'Question' both mean it; say which with fields="),
        ("b.csv.gz", None, "cannot be read: Compressed file ended"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, name, content, said):
    path = written(tmp_path, name, content or CSV * 1000)
    if name == "b.csv.gz":
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match=said):
        read(path)


def test_columns_by_other_names(tmp_path):
    path = written(tmp_path, "a.csv", "q,c,answer,output\nQ?,One.,no,A.\n")
    (row,) = read(path, {"user_input": "q", "retrieved_contexts": "c", "response": "output"})
    assert texts(row) == ("Q?", ("One.",), "A.")
    with pytest.raises(
        SourceError, match=r"response: there is no column 'ouput'; the columns are 'q', 'c', 'answer', 'o"
    ):
        read(path, {"response": "ouput"})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_read_while_it_is_written(tmp_path):
    path = tmp_path / "a.jsonl"
    os.mkfifo(path)
    opened, read_first = threading.Event(), threading.Event()

    def write():
        with path.open("w") as pipe:
            opened.set()
            print(json.dumps(WHOLE), file=pipe, flush=True)
            assert read_first.wait(60)
            print(json.dumps(WHOLE), file=pipe, flush=True)

    writer = threading.Thread(target=write)
    writer.start()
    rows = rows_of(path)
    assert not opened.wait(0.3), "opened twice, what is written meanwhile is lost"
    assert texts(next(rows))
    read_first.set()
    assert texts(next(rows))
    assert list(rows) == []
    writer.join()


# --- tables ---------------------------------------------------------------------------------------------------------

COLUMNS = {
    "question": ["Q?", "R?", None],
    "contexts": [["C.", "D."], None, []],
    "answer": ["A.", None, None],
    "id": [1, 2, 3],
    "other": [1.5, None, 2.5],
}
EXPECTED = [("Q?", ("C.", "D."), "A."), ("R?", (), None), (None, (), None)]


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def pyarrow():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture
def datasets():
    return pytest.importorskip("datasets", reason="datasets is not installed")


def check(rows):
    assert [texts(row) for row in rows] == EXPECTED
    assert [row.sample.id for row in rows] == ["1", "2", "3"]
    given = ["retrieved_contexts" in row.sample.model_fields_set for row in rows]
    assert given == [True, False, True]


class TestPandas:
    def test_a_frame(self, pandas):
        check(read(pandas.DataFrame(COLUMNS)))

    def test_columns_of_arrow(self, pandas, pyarrow):
        check(read(pyarrow.table(COLUMNS).to_pandas(types_mapper=pandas.ArrowDtype)))

    def test_whole_numbers_of_which_one_is_missing_are_ids_without_a_point(self, pandas):
        frame = pandas.DataFrame({"answer": ["A."] * 4, "id": [1, None, 2.5, 10**15]})
        assert [row.sample.id for row in read(frame)] == ["1", "2", "2.5", "1000000000000000"]

    def test_numbers_in_a_column_of_texts_are_bad_rows(self, pandas):
        frame = pandas.DataFrame({"answer": ["A.", 5, True, ["B."]]})
        said = [row.problem if isinstance(row, BadLine) else "" for row in read(frame)]
        assert said == ["", *(f"response: is {kind}, not text (str)" for kind in ("int", "bool", "list"))]

    def test_a_frame_that_went_through_csv(self, pandas, tmp_path):
        lists = [["C.", 'It\'s "D".'], ["E."]]
        pandas.DataFrame({"answer": ["A.", "B."], "contexts": lists}).to_csv(tmp_path / "a.csv")
        for source in (pandas.read_csv(tmp_path / "a.csv"), tmp_path / "a.csv"):
            assert [list(row.sample.retrieved_contexts) for row in read(source)] == lists
        arrays = pandas.DataFrame({"answer": ["A."], "contexts": [np.array(["C.", "D."])]})
        arrays.to_csv(tmp_path / "b.csv")
        assert "or is one of numpy's" in refused(tmp_path / "b.csv")


class TestArrow:
    def test_tables_batches_and_readers(self, pyarrow):
        table = pyarrow.table(COLUMNS)
        for source in (
            table, table.to_batches()[0], table.to_reader(max_chunksize=1),
            pyarrow.concat_tables([table.slice(0, 1), table.slice(1)]),
        ):  # fmt: skip
            check(read(source))


class TestPolars:
    def test_a_frame(self):
        polars = pytest.importorskip("polars", reason="polars is not installed")
        check(read(polars.DataFrame(COLUMNS)))
        with pytest.raises(SourceError, match="DataFrame: no column holds a field of a sample; the columns are 'q'"):
            rows_of(polars.DataFrame({"q": ["Q?"]}))


class TestArrowFiles:
    @pytest.fixture
    def folder(self, pyarrow, tmp_path):
        """Writes the files that datasets.Dataset.save_to_disk(..., num_shards=2) writes."""
        table = pyarrow.table(COLUMNS)
        for number, shard in enumerate((table.slice(0, 2), table.slice(2))):
            with pyarrow.ipc.new_stream(tmp_path / f"data-0000{number}-of-00002.arrow", table.schema) as out:
                out.write_table(shard)
        shards = [{"filename": f"data-0000{number}-of-00002.arrow"} for number in range(2)]
        (tmp_path / "state.json").write_text(json.dumps({"_data_files": shards, "_split": "train"}))
        return tmp_path

    def test_a_file_and_a_stream_by_name_and_by_content(self, pyarrow, tmp_path):
        table = pyarrow.table(COLUMNS)
        for name, make in (("a.arrow", pyarrow.ipc.new_file), ("b.arrow", pyarrow.ipc.new_stream)):
            with make(tmp_path / name, table.schema) as out:
                out.write_table(table, max_chunksize=1)
            check(read(tmp_path / name))
            check(read((tmp_path / name).rename(tmp_path / f"{name}.unknown")))
        assert "cannot be read as Arrow: " in refused(written(tmp_path, "c.arrow", b"garbage"))

    def test_a_folder_of_hugging_face(self, folder):
        check(read(folder))

    def test_other_folders_are_refused(self, tmp_path):
        assert refused(tmp_path).endswith("is a folder; name a file in it, or a folder that Dataset.save_to_disk wrote")
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        assert refused(tmp_path).endswith("holds the splits 'train', 'test'; name the folder of one of them")


class TestStandardInput:
    def test_its_content_says_what_it_is(self, pyarrow, monkeypatch):
        parquet = io.BytesIO()
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(COLUMNS).slice(0, 2), parquet)
        lines = "".join(json.dumps(row) + "\n" for row in LINES).encode()
        for content in (lines, CSV.encode(), gzip.compress(lines), parquet.getvalue()):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
            assert [texts(row)[0] for row in read("-")] == ["Q?", "R?"]


class TestParquet:
    def test_a_file(self, pyarrow, tmp_path):
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(COLUMNS), tmp_path / "a.parquet", row_group_size=2)
        check(read(tmp_path / "a.parquet"))
        with pytest.raises(SourceError, match=r"a\.parquet: cannot be read as Parquet: "):
            read(written(tmp_path, "a.parquet", b"garbage"))

    def test_without_pyarrow_what_to_install_is_said_at_once(self, tmp_path, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "pyarrow.ipc", None)  # as where it is not installed
        with pytest.raises(SourceError, match="reading Parquet and Arrow needs pyarrow: pip install pyarrow"):
            rows_of(written(tmp_path, "a.parquet", b""))


class TestHuggingFace:
    def test_a_dataset(self, datasets):
        check(read(datasets.Dataset.from_dict(COLUMNS)))

    def test_a_stream(self, datasets):
        check(read(datasets.Dataset.from_dict(COLUMNS).to_iterable_dataset()))

    def test_a_dictionary_of_splits_is_refused(self, datasets):
        splits = datasets.DatasetDict(train=datasets.Dataset.from_dict(COLUMNS))
        with pytest.raises(TypeError, match=r"is one DatasetDict \(with 'train'\).*take one of the splits"):
            rows_of(splits)


@pytest.mark.parametrize("name", ["reference", "ground_truth", "expected_output"])
def test_a_reference_answer_is_read_by_the_names_of_ragas_and_deepeval(name):
    row, bad = rows_of([{"question": "Q?", name: "So."}, {name: "So."}])
    assert row.sample.reference == "So."
    assert "none of a sample's fields" in bad.problem, "alone it is nothing to score"
