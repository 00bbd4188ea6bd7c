"""What understands nothing: the embedder's cosines, and the map that is fitted on them."""

import numpy as np
import pytest
from agreement.files import Label
from agreement.floors import signals
from agreement.judge_free import cosine_maps, others
from agreement.rows import read_folder

from .data import sentences_row, write


class Bag:
    """Embeds by counts of a few words."""

    model = "bag"

    def embed(self, texts, /):
        words = ("seen", "spring", "needed", "sleeps", "where")
        rows = np.array([[1.0 + 9 * text.casefold().count(word) for word in words] for text in texts])
        return (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(np.float32)


@pytest.fixture
def row(tmp_path):
    return read_folder(write(tmp_path / "x.jsonl", [sentences_row(1, [[1, 1]])]))["x"][0]


def test_cosines_are_of_question_and_sentence_and_the_one_before_in_its_passage(row):
    found = signals(row, Bag())
    texts = [row.sample.user_input, *row.sample.retrieved_contexts, *(s for each in row.sentences for s in each)]
    asked, one, two, *rest = Bag().embed([*texts, " ".join(row.sentences[0]), " ".join(row.sentences[1])])
    assert found.near == pytest.approx((asked @ one + asked @ two) / 2, abs=1e-4)
    alone = [float(asked @ each) for each in rest]
    expected = [[(alone[0], alone[0]), (alone[1], alone[4])], [(alone[2], alone[2]), (alone[3], alone[5])]]
    assert np.array(found.cosines) == pytest.approx(np.array(expected), abs=1e-4)
    assert signals(row) == found._replace(near=None, cosines=None)


def test_the_map_without_a_judge_is_of_another_file(row):
    def label(file, number, near):
        cosines = [[(0.9, 0.9) if i == near else (0.1 * i, 0.1) for i in range(3)]]
        fields = {"file": file, "id": str(number), "relevant": frozenset({(0, near)})}
        label = Label.of(row)
        return label.model_copy(
            update={**fields, "signals": label.signals._replace(cosines=cosines, overlaps=[[0.0] * 3])}
        )

    labels = [label(file, i, i % 3) for file in ("own__one", "own__other") for i in range(6)]
    beside = others(cosine_maps(labels), "own__one")
    assert "cosines, by one" not in beside
    found = beside["cosines, by other"]
    assert all(found.chosen(each) == each.relevant for each in labels)
    best = max(found.graded(labels[1]).items(), key=lambda item: item[1])
    assert best[0] == (0, 1)
