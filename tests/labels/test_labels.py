"""Reading labels: every form, and every line that cannot be used named by its number and its field."""

import json

import pytest

from ragstone import AlignmentCoverage, ResponseRelevancy
from ragstone.labels import CalibrationError
from ragstone.labels.label_rows import read_labels
from ragstone.labels.make import gather, prepared
from ragstone.testing import FakeEmbedder

from .made import judge, relevancy

ROW = {"user_input": "Who?", "retrieved_contexts": ["Ann did. It rains.", "Bob did."]}
ANSWER = {"user_input": "Who?", "response": "Ann."}


def read(*rows, metric=None, **more):
    return read_labels([json.dumps(row).encode() for row in rows], metric or relevancy(), **more)


def answers(*rows, **more):
    return read(*rows, metric=ResponseRelevancy(llm=judge(), embedder=FakeEmbedder()), **more)


@pytest.mark.parametrize(
    "label",
    [
        {"labels": [1, 0, 1.0]},
        {"relevant": [[1, 0], [0, 0], [0, 0]]},
    ],
)
def test_the_forms_of_sentence_labels(label):
    found = read(ROW | label)
    assert found.item == "sentence"
    assert found.samples[0].labels == (1.0, 0.0, 1.0)
    assert found.splitter is None


def test_sentences_that_the_file_names():
    found = read(ROW | {"sentences": [["Ann did. It rains."], ["Bob", "did."]], "labels": [1, 0, 1]})
    assert found.samples[0].labels == (1.0, 0.0, 1.0)
    assert [piece for piece, _, _ in found.splitter("Bob did.", "en")] == ["Bob", "did."]
    assert found.splitter("Not known. At all.", "en") == relevancy().splitter("Not known. At all.", "en")


@pytest.mark.parametrize("label", [{"relevant": [[0, 2], [1, 1]]}, {"labels": [0, 1, 1, 1, 1]}])
def test_a_blank_sentence_keeps_its_place_and_is_not_judged(label):
    found = read(ROW | {"sentences": [["Ann did.", " ", "It rains."], [" ", "Bob did."]]} | label)
    assert found.samples[0].labels == (0.0, 1.0, 1.0)
    assert [piece for piece, _, _ in found.splitter("Ann did. It rains.", "en")] == ["Ann did.", "It rains."]


def test_other_names_and_places():
    row = {"q": "Who?", "contexts": ["Ann did. It rains."], "use": {"target": {"relevant": [[0, 1]]}}}
    found = read(row, fields={"user_input": "q"}, keys={"relevant": "use.target.relevant"})
    assert found.samples[0].labels == (0.0, 1.0)
    dotted = {"user_input": "Who?", "contexts": ["Ann did. It rains."], "a.b": [True, True]}
    assert read(dotted, keys={"labels": "a.b"}).samples[0].labels == (1.0, 1.0)


SUMMARY = {
    "user_input": "Sum it up.",
    "retrieved_contexts": ["Ann did.", "It rains."],
    "response": "She did.",
    "score": 1,
}


def groups(metric, *changes):
    return [each.group for each in read(*(SUMMARY | change for change in changes), metric=metric).samples]


def test_summaries_of_one_source_belong_together_however_they_were_asked_for():
    metric = AlignmentCoverage(llm=judge(), source="retrieved_contexts")
    one, again, other = groups(metric, {}, {"user_input": "In short?"}, {"retrieved_contexts": ["Bob did."]})
    assert one == again != other
    one, again, other = groups(relevancy(), {}, {"retrieved_contexts": ["Bob did."]}, {"user_input": "Who?"})
    assert one == again != other


def test_responses():
    found = answers(ANSWER | {"noncommittal": True}, ANSWER | {"noncommittal": None}, ANSWER | {"noncommittal": 0})
    assert found.item == "noncommittal"
    assert [(each.line, each.labels) for each in found.samples] == [(1, (1.0,)), (3, (0.0,))]
    assert found.skipped == 1
    assert len({each.group for each in found.samples}) == 1
    assert answers(ANSWER | {"score": 0.25}).item == "score"
    assert read(ROW | {"score": True}).samples[0].labels == (1.0,)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ({"labels": [True]}, "labels: 1 for 3 sentences"),
        ({"labels": [True, "no", False]}, r'labels\[1\]: "no" is not true or false'),
        ({"relevant": [[0, 2]]}, "no sentence 2 in context 0 .from 0., which has 2"),
        ({"relevant": [[-1, 0]]}, r"relevant\[0\]\[0\]: Input should be greater than or equal to 0"),
        ({"relevant": [], "labels": [0, 0, 0]}, "one of them, not both"),
        (
            {"labels": [0] * 3, "sentences": [["It rains.", "Ann did."], ["Bob did."]]},
            r"sentences\[0\]\[1\]: does not stand in the context, behind",
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_named(label, said):
    with pytest.raises(CalibrationError, match=f"(?s)1 line.*line 2: .*{said}"):
        read(ROW | {"labels": [0, 0, 1]}, ROW | label)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_scores_are_from_0_to_1(value):
    with pytest.raises(CalibrationError, match="line 1: score: .* is not true, false or a number from 0 to 1"):
        answers(ANSWER | {"score": value})


def test_all_bad_lines_are_told_up_to_a_limit():
    rows = [ROW | {"labels": [1]} for _ in range(25)]
    with pytest.raises(CalibrationError) as refused:
        read(*rows)
    lines = str(refused.value).splitlines()
    assert lines[0] == "25 line(s) cannot be used:"
    assert lines[-1] == "and 5 more"
    assert len(lines) == 22


def whole(text, language, /):
    return [(text, 0, len(text))]


def test_labels_of_other_sentences_than_were_judged_are_refused():
    labels, other = (
        read({"user_input": "Who?", "contexts": ["A p0.6. B p0.6."], "labels": [1, 0]}),
        relevancy(splitter=whole),
    )
    with pytest.raises(
        CalibrationError, match="^line 1: 2 labels for the 1 items that were judged; read the labels with"
    ):
        gather(prepared(other, labels), labels, progress=False)


def test_one_context_cannot_have_two_splits():
    rows = [
        ROW | {"sentences": [["Ann did.", "It rains."], ["Bob did."]], "labels": [0, 0, 0]},
        ROW | {"sentences": [["Ann did. It rains."], ["Bob did."]], "labels": [0, 0]},
    ]
    with pytest.raises(CalibrationError, match="line 2: .*other sentences for the same context"):
        read(*rows)
