"""What stands in for parts of pysbd gives what pysbd gives."""

import importlib
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.text import WINDOW, _pysbd, languages, split_sentences
from ragstone.text._pysbd import align, easy_starts

_pysbd.load()  # Python warns of pysbd's own source where it was never compiled before
pysbd = importlib.import_module("pysbd")
TEXT = (
    "the The cat a A I i ii c is no No p Mr Dr e.g U.S U.S.A etc art may town Élan été 1 12 123 1984 3.5 "
    "10.25 9 10 1,000 a) (a) (see (1993) (12) 12) 1994) (born 1921) Yahoo Yum well-known rock- -- - – "
    'Brown\'s boys\' don’t "plan" "a b" " “plan” “ ( ) co Co KG Inc & 5% a.m p.m PM A. It What st ph v vs '
    "sea ; : viii mix ſo miſs 20th x@y pdf ° \\ [12] B. * 1. 2. -1 12:30 B2B {is} d(phil d.phil İs"
)
WORDS = TEXT.split(" ")
EASY_TEXT = (
    "the The cat town It was an of sea the The cat town It was an of sea I a Élan Зорић 1984 3.5 12 9 20th 1,000 (see "
    "it) (1993) (born 12) (c) (so. it.) Brown's boys' well-known 's '' 'yes' 'a 'so. it's' “plan” “So.” ” \"plan\" "
    '"It " "No!" [12] [ is co Co Mr Mr. Dr. Inc. e.g. U.S. p.m. A.I. No. p. v. vs. Jan. st egg I. C. J. (Mr. x.y '
    "phil 5. 6. a. - -- & 5% Yahoo I'm ‘plan’"
)
EASY_WORDS = EASY_TEXT.split(" ")
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


@settings(max_examples=300, deadline=None)
@given(prose(WORDS, MARKS, GAPS), st.sampled_from(["en", "en", "en", *languages()]))
def test_looking_at_fewer_abbreviations_changes_nothing(text, language):
    try:
        expected = rules_of(text, language)
    except Exception as error:  # the same text must then fail here as well
        with pytest.raises(type(error)):
            _pysbd.raw_sentences(text, language)
    else:
        assert _pysbd.raw_sentences(text, language) == expected


@settings(max_examples=500, deadline=None)
@given(
    prose(
        EASY_WORDS,
        ["", "", "", "", "", "", ",", ".", ".", "?", "!", '"', "'", ")", '."'],
        [*[" "] * 9, "  ", "\n", " \r\n\n", "\t"],
    )
)
def test_easy_text_is_split_as_pysbd_does(text):
    starts = easy_starts(text)
    if starts is not None:  # not held against `segment`, which now and then misplaces a sentence of such text
        assert [0, *starts] == align(text, rules_of(text, "en"))


EASY = [
    "The cat sat. It sat (see it) in 1984.  At 3.5 degrees! Did it?\nYes",
    "The 'coverage score' is a 'yes' answer. It isn't Smith's. Text number 17.",
    "It 'is so. Or' not. Well , it 's so . The boys' cat 'sat'.",
    'The "cat" sat. On the “mat”, sure.',
    'He "sat. It" is (so. Is [it. So]) on “sat. It”.',
    'He said "so." Then "it" sat. "So." Then not. "So," Then not. (It is.) Then not. “So” Then.',
    "Mr. Cat met Dr. Dog of Acme Inc. in Jan. 1984. See No. 5 vs. p. 12 etc. I went. He is with Acme Inc. The end.",
    "Vitamin C. It is. J. Smith, at 5 p.m. today, e.g. in the U.S. (as ever). On example.com.",
    "Jan Čermák. Зорић. So",
    "It is 1984. It is 1985. So",
    "The cat\n‘is so. It is’ so. It",
]
HARD = [
    "It is (so. Is it) not) so",
    'He "sat. It sat',
    "He sat 1. It sat 2. So",
    "On a. and b. so.",
    "He sat 12) and 13) sat.",
    "He (see a) sat. The (mix) sat.",
    "Yahoo! Good",
    "'It is' so.",
    "It is so\n5. So",
    "5. It is so.",
    "It 'is so. It'is",
    "It ‘is. It",
    "The cat\n‘so.' a No.’ is. It",
    "Wait... What?",
    "He (“so.”) (a) sat",
    'He "a" (bee) "c" sat.',
    "In the U.S. The end",
    "He said 'so.' Then it was.",
    "The 'cat' is\nand 'so. It'is.",
    'In "x(U.S. So" and x(U.S. So)',
    "See.12 The end",
    "At Co. KG",
    '"So" Then\nYes.',  # no mark: one line
    '"So" Then',
    "(Ph.D. So) He is a/Ph.D. So",
    "今日は。",
    "On the ‘mat’.",
    "He -- so. It -- is.",
]


@pytest.mark.parametrize("text", EASY, ids=range(len(EASY)))
def test_what_is_easy(text):
    starts = easy_starts(text)
    assert starts is not None
    assert [0, *starts] == align(text, rules_of(text, "en"))
    assert [s.text for s in split_sentences(text)] == plain("en").segment(text)


def test_what_is_not_easy():
    for text in HARD:
        assert easy_starts(text) is None, text
        assert [s.text for s in split_sentences(text)] == plain("en").segment(text)


def test_the_abbreviations_are_pysbds():
    known = plain("en").language_module.Abbreviation
    assert sorted(known.PREPOSITIVE_ABBREVIATIONS) == sorted(_pysbd._BEFORE_NAME.pattern.split("|"))
    assert sorted(known.NUMBER_ABBREVIATIONS) == sorted(_pysbd._BEFORE_NUMBER.pattern.split("|"))
    # Those with a period in them, and those that end like "I" or "I.V", have rules of their own.
    dotted = {a for a in known.ABBREVIATIONS if not a.isalpha()}
    assert dotted == {"u.s", "e.g", "i.e", "ph.d", "d.phil", "dr.phil", "dr.philos"}
    assert not [a for a in known.ABBREVIATIONS if re.search(r"i$|i.v$", a) or len(a) > 9]


def test_a_window_of_marks_is_looked_at_to_its_end():
    """A pattern that backtracks without bound would not come back from these."""
    for unit in ["'s ", " '", "‘", " ‘a", "“", "[", "(", '"', "\n", "-", "--", "a", "a.b", ". ", "!\n"]:
        text = "x" + unit * (WINDOW // len(unit))
        for whole in (text, text + "x."):
            starts = easy_starts(whole)
            assert starts is None or all(0 < start < len(whole) for start in starts)


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
