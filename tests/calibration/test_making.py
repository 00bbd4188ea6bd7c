"""From labelled lines to a calibration: what is refused before a fit, and what counts as one."""

import json

import pytest

from ragstone import SummarizationScore
from ragstone.calibration import CalibrationError
from ragstone.calibration.labels import read_labels
from ragstone.calibration.making import gather, make, prepared
from ragstone.testing import FakeLLM

from .made import relevancy


def read(metric, *rows):
    return read_labels([json.dumps(row).encode() for row in rows], metric)


def whole(text, language, /):
    return [(text, 0, len(text))]


def test_labels_of_other_sentences_than_were_judged_are_refused():
    row = {"user_input": "Who did?", "contexts": ["Ann did it p0.6. It rained p0.6."], "labels": [True, False]}
    labels, other = read(relevancy(), row), relevancy(splitter=whole)
    with pytest.raises(
        CalibrationError, match="^line 1: 2 labels for the 1 items that were judged; read the labels with"
    ):
        gather(prepared(other, labels), labels, progress=False)


def test_summaries_of_many_sources_that_were_asked_for_in_the_same_words_are_many():
    pytest.importorskip("sklearn")
    metric = SummarizationScore(llm=FakeLLM(lambda _: {"answers": {"1": "yes"}}), questions=["Is it?"])
    rows = [
        {
            "user_input": "Summarize the article.",
            "contexts": [f"It is {i}. " * 9],
            "response": "It is. " * (1 + i % 9),
            "score": i % 9 < 4,
        }
        for i in range(40)
    ]
    made = make(metric, read(metric, *rows), progress=False)
    assert made.calibration.samples == 40
    assert made.found.agreement[0].after.value > 0.8
