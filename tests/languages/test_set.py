"""The set of benchmarks/languages is what it says: twins, sentences, encoding; and it is split as it was written."""

import json
import re
import unicodedata

import pytest
from language_figures import splitting
from language_rows import LANGUAGES, SET
from language_told import UNKNOWN, language_told

from ragstone.text import language_of, split_sentences

FIELDS = ["id", "language", "user_input", "retrieved_contexts", "response", "summary"]
DIGITS = re.compile(r"\d+(?:[.,]\d+)?")


def every_text(row):
    return [row.user_input, *(sentence for text in row.texts() for sentence in text)]


def test_the_file_is_plain_utf8_lines_of_json():
    raw = SET.read_bytes()
    assert not raw.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in raw
    assert raw.endswith(b"\n")
    for line in raw.decode("utf-8").splitlines():
        assert list(json.loads(line)) == FIELDS


def test_characters_are_composed_and_none_is_invisible(rows):
    for row in rows:
        for text in every_text(row):
            assert unicodedata.is_normalized("NFC", text), (row.language, row.id, text)
            assert text == " ".join(text.split()), (row.language, row.id, text)
            assert not {unicodedata.category(c) for c in text} & {"Cc", "Cf", "Co", "Cs", "Cn"}, (row.language, text)


def test_each_row_has_a_twin_in_every_language(rows):
    ids = [row.id for row in rows if row.language == "en"]
    assert len(ids) == len(set(ids)) == 4
    assert [(row.language, row.id) for row in rows] == [(language, id_) for language in LANGUAGES for id_ in ids]


def test_twins_have_the_same_number_of_sentences_in_every_text(rows):
    english = {row.id: [len(text) for text in row.texts()] for row in rows if row.language == "en"}
    for row in rows:
        assert [len(text) for text in row.texts()] == english[row.id], (row.language, row.id)
        assert 2 <= len(row.retrieved_contexts) <= 3
        assert 5 <= sum(map(len, row.retrieved_contexts)) <= 8


def test_twins_hold_the_same_figures(rows):
    """Of two digits and more: what is below is a word in some languages."""

    def figures(row):
        found = (n.replace(",", ".") for text in every_text(row) for n in DIGITS.findall(text))
        return sorted({n for n in found if len(n) > 1} - {"10"})  # Japanese writes "ten books" with digits

    english = {row.id: figures(row) for row in rows if row.language == "en"}
    for row in rows:
        assert figures(row) == english[row.id], (row.language, row.id)


def test_no_text_is_in_two_languages(rows):
    seen = {}
    for row in rows:
        for text in every_text(row):
            assert seen.setdefault(text, row.language) == row.language


def test_the_plain_check_of_languages_knows_every_text_of_the_set(rows):
    for row in rows:
        told = {language_told(row.text(text)) for text in row.texts()} | {language_told(row.user_input)}
        assert told == {row.language}, (row.language, row.id, told)


@pytest.mark.parametrize("text", ["", "7 + 8", "Toru 85", "in"])
def test_what_holds_no_sign_of_a_language_is_unknown(text):
    assert language_told(text) == UNKNOWN


def test_a_foreign_name_does_not_make_the_language():
    assert language_told("Who founded the museum 東京国立博物館?") == "en"
    assert language_told("RAG とは何ですか？") == "ja"


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code not in ("de", "es")])
def test_the_set_is_split_as_it_was_written_with_no_language_named(rows, language):
    for row in rows:
        if row.language == language:
            for sentences in row.texts():
                text = row.text(sentences)
                found = [sentence.text.strip() for sentence in split_sentences(text, language_of(text))]
                assert found == sentences


def test_german_is_split_as_it_was_written_when_it_is_named(rows):
    shares = {row["language"]: row for row in splitting(rows)}
    assert shares["de"]["named"] == 1.0
    assert shares["de"]["unnamed"] < 1.0  # "z. B." ends no sentence in German


def test_spanish_is_split_as_it_was_written_but_for_an_abbreviation_that_pysbd_lacks(rows):
    missed = [
        sentences
        for row in rows
        if row.language == "es"
        for sentences in row.texts()
        if [s.text.strip() for s in split_sentences(row.text(sentences), "es")] != sentences
    ]
    assert len(missed) == 1
    assert "p. ej." in missed[0][1]


def test_the_rules_for_english_leave_hindi_in_one_piece(rows):
    """What the recognition of the script is for."""
    row = next(row for row in rows if (row.language, row.id) == ("hi", "museum"))
    assert len(split_sentences(row.text(row.response + row.summary), "en")) == 1
