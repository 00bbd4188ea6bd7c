"""A record is read as it was written: from lines, from a database's row, without what is empty."""

import json
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragstone import Sample, Score, Unscored, Usage, Verdict
from ragstone.outcome import Evidence
from ragstone.results.record import COLUMNS, Record, decode, decode_rows, encode, encode_rows, from_row, to_row

TEXT = st.text(max_size=8)
ANY_TEXT = st.text(st.characters(categories=None), max_size=8)  # half surrogate pairs, too
SAMPLE = st.builds(
    Sample,
    id=st.none() | TEXT,
    user_input=st.none() | TEXT,
    response=st.none() | TEXT,
    retrieved_contexts=st.lists(TEXT, max_size=3),
    metadata=st.dictionaries(TEXT, st.integers() | TEXT | st.none(), max_size=2),
)
EVIDENCE = st.builds(
    Evidence,
    field=st.sampled_from(("user_input", "retrieved_contexts", "response", "reference")),
    chunk=st.none() | st.integers(0, 3),
    start=st.integers(0, 4),
    end=st.integers(0, 9),
    text=TEXT,
)
VERDICT = st.builds(
    Verdict,
    id=TEXT,
    kind=TEXT,
    text=ANY_TEXT,
    verdict=TEXT,
    probability=st.none() | st.floats(0, 1),
    evidence=st.lists(EVIDENCE, max_size=3).map(tuple),
    lowers_score=st.booleans(),
)
COUNT = st.integers(0, 9)
USAGE = st.builds(
    Usage,
    llm_calls=COUNT,
    embed_calls=COUNT,
    input_tokens=st.none() | COUNT,
    output_tokens=st.none() | COUNT,
    seconds=st.floats(0, 9),
)
COMMON = {"metric": TEXT, "version": TEXT, "usage": USAGE}
SCORE = st.builds(
    Score,
    value=st.floats(-1, 1),
    passed=st.none() | st.booleans(),
    reason=ANY_TEXT,
    breakdown=st.dictionaries(TEXT, st.floats(-1, 1), max_size=2),
    verdicts=st.lists(VERDICT, max_size=4).map(tuple),
    **COMMON,
)
UNSCORED = st.builds(Unscored, reason=st.sampled_from(("timeout", "undefined")), detail=ANY_TEXT, **COMMON)
RECORD = st.builds(
    Record,
    sample_id=TEXT,
    outcome=SCORE | UNSCORED,
    judge=TEXT,
    row=COUNT,
    submitted_at=st.floats(0, 1e9),
    scored_at=st.floats(0, 1e9),
    rate=st.floats(0, 1),
    chosen_by=TEXT,
    origin=st.dictionaries(st.sampled_from(("trace_id", "span_id", "trace_flags")), TEXT),
    sample=st.none() | SAMPLE,
    run_id=st.none() | TEXT,
    run_name=st.none() | TEXT,
    tags=st.lists(TEXT, max_size=2).map(tuple),
    user_id=st.none() | TEXT,
    thread_id=st.none() | TEXT,
)


def read(line: str, sample: Sample | None = None) -> Record:
    return decode(line.encode(), sample)


@given(RECORD, st.none() | SAMPLE)
def test_a_line_gives_the_record_back(record, sample):
    assert read(encode(record)) == record
    assert read(encode(record, sample), sample) == record


@given(st.lists(RECORD, max_size=5), st.none() | SAMPLE)
def test_lines_of_a_row_share_its_sample(records, sample):
    rows = [Record(f"q{i // 2}", each.outcome, row=i // 2) for i, each in enumerate(records)]
    lines = [line.encode() for line in encode_rows(rows, lambda _: sample)]
    assert sum(b'"sample":' in line for line in lines) <= (len(rows) + 1) // 2
    assert [record for _, record in decode_rows(enumerate(lines))] == [replace(each, sample=sample) for each in rows]


@given(RECORD)
def test_a_row_gives_the_record_back(record):
    record = replace(record, origin={n: t for n, t in record.origin.items() if n != "trace_flags"})
    row = to_row(record)
    assume(not any("\\u" in str(cell) for name, cell in row.items() if COLUMNS[name] in ("key", "text")))
    assert from_row(row, record.row) == record


def test_odd_numbers_and_half_characters_come_back():
    for value, seconds, name in ((-0.0, 0.0, "a\ud83d"), (1e-320, float("inf"), "\x00")):
        usage = Usage(llm_calls=10**30, input_tokens=None, seconds=seconds)
        score = Score(metric=name, value=value, reason=name, breakdown={name: value}, usage=usage, version="1")
        assert repr(read(encode(Record("", score))).outcome) == repr(score)  # 0.0 == -0.0 would pass


def test_what_is_empty_is_not_written():
    passage = Evidence(field="retrieved_contexts", chunk=1, start=0, end=4, text="Emma")
    verdict = Verdict(id="1", kind="sentence", text="Emma", verdict="relevant", evidence=(passage,))
    score = Score(metric="demo", value=1.0, reason="", version="1", verdicts=(verdict,))
    sample = Sample(retrieved_contexts=["", "Emma."])
    alone, with_sample = json.loads(encode(Record("a", score))), json.loads(encode(Record("a", score), sample))
    assert alone["verdicts"] == [["1", "sentence", "relevant", False, [[1, 0, 4, "Emma"]]]]
    assert with_sample["verdicts"] == [["1", "sentence", "relevant", False, [[1, 0, 4]]]]
    assert set(alone) == {"id", "row", "status", "metric", "value", "reason", "version", "verdicts"}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "{}",
        '{"id":"a"}',
        '{"id":"a","status":"scored","metric":"m","value":NaN,"reason":"","version":"1"}',
        '{"id":"a","status":"scored","metric":"m","value":1,"reason":"","version":"1","verdicts":[["1"]]}',
        '{"id":"a","status":"scored","metric":"m","value":1,"reason":"","version":"1","verdicts":[["1","a","b",true,[[{},0,1]]]]}',
        '{"id":"a","status":"scored","metric":"m","value":1,"reason":"","version":"1","sample":7}',
        '{"id":"a","status":"what"}',
        "[" * 100_000,
    ],
)
def test_a_damaged_line(line):
    with pytest.raises(ValueError, match=r".*"):
        decode(line)
    assert list(decode_rows([(7, line.encode())])) == [(7, None)]
