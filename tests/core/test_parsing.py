"""The reader of replies, by its properties."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragstone.judging import (
    FLAG,
    TEXT,
    BadReply,
    json_form,
    listing,
    one_of,
    parse,
    parse_json,
    record,
    unfence,
    whole,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)
LONG = "{" + ", ".join(f'"{i}": 0' for i in range(50_000)) + ', "x": 1, "x": 2}'


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_it_reads_what_json_reads(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    read = parse_json(text)
    assert read == json.loads(text) == value
    assert repr(read) == repr(value), "types, order and signs too"


@given(st.text(max_size=40) | VALUES.map(json.dumps).flatmap(lambda t: st.integers(0, len(t)).map(lambda n: t[:n])))
@example('{"ids": [١]}')
@example("{“ids”: [1]}")
def test_it_reads_nothing_that_json_does_not(text):
    try:
        read = parse_json(text)
    except BadReply:
        return
    assert read == json.loads(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{}\nHope that helps!", "more than one value"),
        ("Here it is: {}", "not bare JSON"),
        ("```json\n{}\n```", "not bare JSON"),
        ('{"a": 1', "not bare JSON"),
        ('{"a": 1,}', "not bare JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("\ufeff{}", "not bare JSON"),
        ('{"b": {"a": 1, "c": 0, "a": 1}}', "'a' stands twice"),
        ('{"\\ud800": 1, "\\ud801": 2}', "stands twice"),
        ("[" * 100_000, "not usable JSON (maximum recursion depth"),
        ("9" * 5000, "not usable JSON"),
        (LONG, "'x' stands twice"),
    ],
    ids=lambda value: value if len(value) < 30 else value[:12],
)
def test_it_says_what_is_wrong(text, said):
    with pytest.raises(BadReply, match=re.escape(said)):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('"\ud800"', "\ufffd"),
        ('{"a\\udfffb": ["\\ud83d!", 1.5]}', {"a\ufffdb": ["\ufffd!", 1.5]}),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\\\ud800"', "\\ud800"),
    ],
    ids=range(4),
)
def test_half_characters_are_replaced_whole_ones_kept(text, read):
    assert parse_json(text) == read


FORM = record(
    number=whole(1, 9), words=listing(TEXT, 1, 2), flag=FLAG, ids=record(**{"1": one_of("ab"), "10": one_of("ab")})
)
GOOD = {"number": 1, "words": ["a"], "flag": True, "ids": {"1": "a", "10": "b"}}


def test_a_schema_is_exact():
    assert parse(json.dumps(GOOD), FORM) == GOOD
    for change, wrong in [
        ({"number": "1"}, "number: is not an integer"),
        ({"number": True}, "number: is not an integer"),
        *(({"number": n}, "number: is not an integer") for n in (1.0, 2.5)),
        ({"number": 10}, "number: 10 is not from 1 to 9"),
        ({"words": "a"}, "words: is not a list"),
        ({"words": [1]}, "words.0: is not text"),
        ({"words": []}, "words: 0 in the list where at least 1 were asked for"),
        ({"flag": 1}, "flag: is not a flag"),
        ({"ids": {"1": "a"}}, "ids: missing: 10"),
        ({"ids": {}}, "ids: missing: 1, 10"),
        ({"ids": GOOD["ids"] | {"3": "a"}}, "ids: unknown: 3"),
        ({"ids": {"1": "a", "10": "c"}}, "ids.10: is not one of a, b"),
        ({"more": 1}, "the whole: unknown: more"),
    ]:
        with pytest.raises(BadReply, match=re.escape(wrong)):
            parse(json.dumps(GOOD | change), FORM)
    for text in ("[]", '"{}"', "null"):
        with pytest.raises(BadReply, match="the whole: is not a JSON object"):
            parse(text, FORM)


def test_the_number_asked_for_is_exact_and_an_upper_bound_alone_is_none():
    assert parse('["a", "b", "c"]', listing(TEXT, 0, 2)) == ["a", "b", "c"]
    for text in ('["a"]', '["a", "b", "c"]'):
        with pytest.raises(BadReply, match="in the list where 2 were asked for"):
            parse(text, listing(TEXT, 2, 2))


def test_the_example_in_the_prompt_is_the_schemas():
    assert json_form(FORM, words="QUESTION").asked == (
        'Reply with bare JSON: {"number": NUMBER, "words": [QUESTION], "flag": true or false, "ids": {NUMBER: WORD}}.'
    )


FENCED = {
    '```json\n{"a": 1}\n```': '{"a": 1}',
    ' ```\r\n{"a": 1}\r\n```\n\n': '{"a": 1}',
    "```json \n{}```": "{}",
    "```\n\n```": "",
    "```\na\n\n```": "a\n",
}
LEFT = ["", "{}", "```json", "``` ```", "Here: ```json\n{}\n```", "```\n{}\n``` done", "```\na\n```\n```\nb\n```"]


def test_a_message_wrapped_in_one_fence_is_unwrapped_and_no_other():
    assert {text: unfence(text) for text in FENCED} == FENCED
    assert [unfence(text) for text in LEFT] == LEFT
    blank = "```json\n" + " " * 200_000  # read in linear time
    assert unfence(blank) == blank
    assert unfence(blank + "\n\t" * 100_000 + "x```").endswith("x")
