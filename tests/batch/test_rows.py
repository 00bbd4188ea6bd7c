"""Reading rows: every field's names, every way in which a line can be no sample."""

import json

import pytest

from ragstone.batch import BadLine, Row, rows_of

WHOLE = {"user_input": "Q?", "retrieved_contexts": ["C."], "response": "A."}


@pytest.fixture
def read(tmp_path):
    def rows(*lines, fields=None):
        path = tmp_path / "rows.jsonl"
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
        return list(rows_of(path, fields))

    return rows


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[1, 2]", "is list, not an object {...}"),
        (b'{"question": "tru', "not JSON: Unterminated string starting at column 14"),
        (b'{"question": "Q", "answer": "A", "answer": "B"}', "the key 'answer' appears twice in one object"),
        (b"[" * 200_000, "not usable JSON: maximum recursion depth"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not usable JSON: Exceeds the limit"),
        ('{"question": "Q"}'.encode("utf-16"), "not UTF-8 at byte 1: it looks like UTF-16"),
        (b"{}", "none of a sample's fields; the row has (none): name them with fields={FIELD: KEY, ...}"),
        (b'{"response": NaN}', "response: is NaN, not text (str)"),
        (b'{"response": "A", "id": true}', "id: is bool, not text (str)"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_bad_line_is_named_and_the_next_one_read(read, line, problem):
    bad, good = read(line, WHOLE)
    assert isinstance(bad, BadLine)
    assert bad.line == 1
    assert bad.problem.startswith(problem)
    assert len(bad.problem) < 200
    assert isinstance(good, Row)
    assert good.line == 2


def test_an_empty_text_is_there_and_no_other_key_stands_for_it(read):
    (row,) = read({"response": "", "answer": "not this", "contexts": []})
    assert (row.sample.response, row.sample.retrieved_contexts) == ("", ())
    assert row.sample.model_fields_set >= {"response", "retrieved_contexts"}


def test_a_mapped_key_that_is_not_there_names_those_that_are(read):
    bad, _ = read({"source": "S."}, {"sorce": "S."}, fields={"retrieved_contexts": "sorce"})
    assert bad.problem == "retrieved_contexts: there is no key 'sorce'; the row has 'source'"
