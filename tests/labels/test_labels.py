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
    return read_labels(rows, metric or relevancy(), **more)


def answers(*rows, **more):
    return read(*rows, metric=ResponseRelevancy(llm=judge(), embedder=FakeEmbedder()), **more)


BLANK = {"sentences": [["Ann did.", " ", "It rains."], [" ", "Bob did."]]}


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        ({"labels": [1, 0, 1.0]}, (1.0, 0.0, 1.0)),
        ({"relevant": [[1, 0], [0, 0], [0, 0]]}, (1.0, 0.0, 1.0)),
        ({"sentences": [["Ann did. It rains."], ["Bob", "did."]], "labels": [1, 0, 1]}, (1.0, 0.0, 1.0)),
        (BLANK | {"relevant": [[0, 2], [1, 1]]}, (0.0, 1.0, 1.0)),
        (BLANK | {"labels": [0, 1, 1, 1, 1]}, (0.0, 1.0, 1.0)),
    ],
)
def test_the_forms_of_sentence_labels(more, labels):
    found = read(ROW | more)
    assert (found.item, found.samples[0].labels) == ("sentence", labels)
    assert (found.splitter is None) == ("sentences" not in more)


def test_sentences_that_the_file_names_are_the_splitters():
    splitter = read(ROW | BLANK | {"relevant": []}).splitter
    assert list(splitter("Ann did. It rains.", "en")) == [("Ann did.", 0, 8), ("It rains.", 9, 18)]
    assert splitter("Not known. At all.", "en") == relevancy().splitter("Not known. At all.", "en")


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
    assert [(each.name, each.labels) for each in found.samples] == [("line 1", (1.0,)), ("line 3", (0.0,))]
    assert found.skipped == 1
    assert len({each.group for each in found.samples}) == 1
    assert answers(ANSWER | {"score": 0.25}).item == "score"
    assert read(ROW | {"score": True}).samples[0].labels == (1.0,)


@pytest.mark.parametrize(
    ("label", "message"),
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
        (
            {"labels": [0] * 2, "sentences": [["Ann did. It rains."], ["Bob did."]]},
            r"sentences\[0\]: another line has other sentences for the same context",
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_named(label, message):
    with pytest.raises(CalibrationError, match=f"(?s)1 line.*line 2: .*{message}"):
        read(ROW | {"labels": [0, 0, 1], "sentences": [["Ann did.", "It rains."], ["Bob did."]]}, ROW | label)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_scores_are_from_0_to_1(tmp_path, value):
    (tmp_path / "rows.jsonl").write_text(json.dumps(ANSWER | {"score": value}))
    with pytest.raises(CalibrationError, match="line 1: score: .* is not true, false or a number from 0 to 1"):
        read_labels(tmp_path / "rows.jsonl", relevancy())


def test_labels_in_the_cells_of_a_table(tmp_path):
    text = 'question,contexts,labels,score\nWho?,"[""Ann did. It rains.""]","[true, false]",\n'
    (tmp_path / "a.csv").write_text(text + 'Why?,"[""So."", ""No.""]","[1, 0]",\n')
    assert [each.labels for each in read_labels(tmp_path / "a.csv", relevancy()).samples] == [(1.0, 0.0), (1.0, 0.0)]
    (tmp_path / "b.csv").write_text("question,contexts,mine\nWho?,Ann did.,0.5\nWhy?,So.,\n")
    found = read_labels(tmp_path / "b.csv", relevancy(), keys={"score": "mine"})
    assert ([each.labels for each in found.samples], found.skipped) == ([(0.5,)], 1)


def test_all_bad_lines_are_named_up_to_a_limit():
    rows = [ROW | {"labels": [1]} for _ in range(25)]
    with pytest.raises(CalibrationError) as refused:
        read(*rows)
    lines = str(refused.value).splitlines()
    assert lines[0] == "25 line(s) cannot be used:"
    assert lines[-1] == "and 5 more"
    assert len(lines) == 22


def test_the_items_are_the_sentences_as_the_metric_decided_on_them():
    text = "Ann did p0.6. It rains p0.6."
    ranked = relevancy(llm=judge(gives_probabilities=True), embedder=FakeEmbedder())
    labels = read({"user_input": "Who?", "contexts": [text], "labels": [1, 0]}, metric=ranked)
    (one,), _ = gather(prepared(ranked, labels), labels, progress=False)
    *sentences, passage = ranked.score(labels.samples[0].sample).verdicts
    assert passage.kind == "passage"
    assert one.judged == [v.probability for v in sentences]
    assert one.chosen == [v.verdict == "relevant" for v in sentences]


def test_labels_of_other_sentences_than_were_judged_are_refused():
    labels = read({"user_input": "Who?", "contexts": ["A p0.6. B p0.6."], "labels": [1, 0]})
    other = relevancy(splitter=lambda text, _language: [(text, 0, len(text))])
    with pytest.raises(CalibrationError, match="^line 1: 2 labels for the 1 items that were judged; read the labels"):
        gather(prepared(other, labels), labels, progress=False)
