"""What stands in for parts of pysbd gives what pysbd gives."""

import json
import re
from functools import cache
from pathlib import Path

import pysbd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysbd.lang.common import Common

from ragstone.text import _pysbd, languages, split_sentences
from ragstone.text._align import align
from ragstone.text._easy import easy_starts

DATA = Path(__file__).resolve().parents[3] / "shared/data/dev"

WORDS = [
    "the",
    "The",
    "cat",
    "a",
    "A",
    "I",
    "i",
    "ii",
    "c",
    "is",
    "no",
    "No",
    "p",
    "Mr",
    "Dr",
    "e.g",
    "U.S",
    "U.S.A",
    "etc",
    "art",
    "may",
    "town",
    "Élan",
    "été",
    "1",
    "12",
    "123",
    "1984",
    "3.5",
    "10.25",
    "9",
    "10",
    "1,000",
    "a)",
    "(a)",
    "(see",
    "(1993)",
    "(12)",
    "12)",
    "1994)",
    "(born",
    "1921)",
    "Yahoo",
    "Yum",
    "well-known",
    "rock-",
    "--",
    "-",
    "–",
    "Brown's",
    "boys'",
    "don’t",
    '"plan"',
    '"a',
    'b"',
    '"',
    "“plan”",
    "“",
    "(",
    ")",
    "co",
    "Co",
    "KG",
    "Inc",
    "&",
    "5%",
    "a.m",
    "p.m",
    "PM",
    "A.",
    "It",
    "What",
    "st",
    "ph",
    "v",
    "vs",
    "sea",
    ";",
    ":",
    "viii",
    "mix",
    "ſo",
    "miſs",
    "20th",
    "x@y",
    "pdf",
    "°",
    "\\",
    "[12]",
    "B.",
    "*",
    "1.",
    "2.",
    "-1",
    "12:30",
    "B2B",
    "{is}",
    "d(phil",
    "d.phil",
    "İs",
]
EASY_WORDS = [
    "the",
    "The",
    "cat",
    "I",
    "town",
    "Élan",
    "1984",
    "3.5",
    "1,000",
    "(see",
    "it)",
    "(1993)",
    "Brown's",
    "well-known",
    "“plan”",
    '"plan"',
    "co",
    "is",
    "Mr",
    "20th",
    "12",
    "a",
    "-",
    "sea",
]
MARKS = ["", "", "", ",", ".", ".", ".", "?", "!", "...", "?!", "!!!", '."', '?"', ".)", ").", "'.", ". . ."]
GAPS = [" ", " ", " ", " ", "  ", "\n", " \n\n", ""]


def prose(words, marks, gaps):
    piece = st.tuples(st.sampled_from(words), st.sampled_from(marks), st.sampled_from(gaps)).map("".join)
    return st.lists(piece, min_size=1, max_size=14).map("".join).map(str.lstrip)


@cache
def plain(language):
    return pysbd.Segmenter(language=language, clean=False)


def rules_of(text, language):
    """pysbd's sentences in front of its own search for them in the text."""
    return [sentence for sentence in plain(language).processor(text).process() if sentence]


@settings(max_examples=600, deadline=None)
@given(prose(WORDS, MARKS, GAPS), st.sampled_from(["en", "en", "en", *languages()]))
def test_looking_at_fewer_abbreviations_changes_nothing(text, language):
    try:
        expected = rules_of(text, language)
    except Exception as error:  # the same text must then fail here as well
        with pytest.raises(type(error)):
            _pysbd.raw_sentences(text, language)
    else:
        assert _pysbd.raw_sentences(text, language) == expected


@settings(max_examples=1000, deadline=None)
@given(prose(EASY_WORDS, ["", "", "", ",", ".", ".", "?", "!"], [" ", " ", " ", "  ", "\n", " \n\n"]))
def test_easy_text_is_split_as_pysbd_does(text):
    starts = easy_starts(text, _pysbd.english_abbreviations())
    if starts is not None:
        assert [0, *starts] == align(text, rules_of(text, "en"))
        assert [s.text for s in split_sentences(text)] == plain("en").segment(text)


@pytest.mark.parametrize(
    ("text", "easy"),
    [
        ("The cat sat. It sat (see it) in 1984.  At 3.5 degrees! Did it?\nYes", True),
        ('The "cat" sat. On the “mat”, sure.', True),
        ("“Mat” it is.", False),
        ("Mr. Cat sat.", False),
        ("Vitamin C. It is.", False),
        ("It is (so. Is it) not", False),
        ("It is ) not", False),
        ('He "sat. It" sat', False),
        ('He "sat" (so)', False),
        ("He sat 1. It", False),
        ("He (12) and (13) sat.", False),
        ("Yahoo! Good", False),
        ("Oh! no", False),
        ("It is. (So it is.)", False),
        ("It 'is' so.", False),
        ("Wait... What?", False),
        ("今日は。", False),
    ],
)
def test_what_is_easy(text, easy):
    assert (easy_starts(text, _pysbd.english_abbreviations()) is not None) is easy
    assert [s.text for s in split_sentences(text)] == plain("en").segment(text)


@settings(max_examples=1500, deadline=None)
@given(
    st.lists(st.sampled_from(["[", "]", "1", "23", "456", "7890", ",", " ", "-", ".", "∯", "x", "A"]), max_size=14),
    st.data(),
)
def test_the_rule_for_numbered_references_matches_what_pysbds_matches(parts, data):
    text = "x." + "".join(parts) + data.draw(st.sampled_from(["", "] A", "1] A", " A"]))
    replacement = r"∯\2\r\7"
    expected = re.sub(Common.NUMBERED_REFERENCE_REGEX, replacement, text)
    assert re.sub(_pysbd._REFERENCE, replacement, text) == expected


def test_a_long_list_of_references_does_not_hang():
    text = "So it is.[" + "101, " * 3000 + "102] and so on. " + "It is.[" + "1" * 5000 + " so."
    assert "".join(s.text for s in split_sentences(text)) == text


@pytest.mark.parametrize(
    ("text", "sentences", "starts"),
    [
        ("One. Two.", ["One.", "Two."], [0, 5]),
        ("  One.\n Two.", ["One.", " Two."], [2, 8]),
        ("A b. C", ["A  b.", "C"], [0, 5]),  # white space does not count
        ("One. 2!? Three. Four.", ["One.", "☉", "Three.", "Four."], [0, 9, 16]),  # one was altered
        ("One. x Two.", ["One.", "Two."], [0, 7]),  # one was dropped
        ("One.", ["One.", "Two."], [0]),  # one too many
        ("One. ", ["", " ", "One."], [0]),
        ("One.", [], []),
    ],
)
def test_sentences_are_found_back(text, sentences, starts):
    assert align(text, sentences) == starts


def dev_texts():
    for file in sorted(DATA.glob("*/*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield from row.get("retrieved_contexts") or ()
            yield from (row[field] for field in ("source", "response", "user_input") if isinstance(row.get(field), str))


@pytest.mark.skipif(not DATA.is_dir(), reason="the development data is not beside the repository")
def test_the_development_texts_are_split_as_pysbd_does():
    texts = [text for text in dict.fromkeys(dev_texts()) if len(text) < 10_000]
    same = sum([s.text for s in split_sentences(text)] == plain("en").segment(text) for text in texts)
    assert same >= 0.999 * len(texts) > 500
