"""From labelled lines to a calibration: what is refused before a fit, and what counts as one."""

import json

import pytest

from ragstone.calibration import CalibrationError
from ragstone.calibration.labels import read_labels
from ragstone.calibration.making import gather, prepared

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
