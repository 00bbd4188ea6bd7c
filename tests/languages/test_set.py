"""The set of benchmarks/languages is what it says: twins, sentences, encoding; and it is split as it was written."""

import re

import pytest
from language_set import LANGUAGES, detect_language

from ragstone.text import language_of, split_sentences

FIELDS = ["id", "language", "user_input", "retrieved_contexts", "response", "summary"]
DIGITS = re.compile(r"\d+(?:[.,]\d+)?")


def every_text(row):
    return [row.user_input, *(sentence for text in row.texts() for sentence in text)]


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


def test_the_plain_check_of_languages_knows_every_text_of_the_set(rows):
    for row in rows:
        detected = {detect_language(row.text(text)) for text in row.texts()} | {detect_language(row.user_input)}
        assert detected == {row.language}, (row.language, row.id, detected)


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code not in ("de", "es")])
def test_the_set_is_split_as_it_was_written_with_no_language_named(rows, language):
    for row in rows:
        if row.language == language:
            for sentences in row.texts():
                text = row.text(sentences)
                found = [sentence.text.strip() for sentence in split_sentences(text, language_of(text))]
                assert found == sentences
