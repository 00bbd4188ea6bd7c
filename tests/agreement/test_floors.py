"""The trivial scorers, and the figures that the development data's README gives for them."""

import pytest
from agreement.labels import Label
from agreement.lines import Line
from agreement.readings import comparisons
from agreement.rows import read_folder

from agreement import floors
from agreement import statistics as st

from .data import DEV, sentences_row, summary_row, write


def test_signals_of_a_row(tmp_path):
    (row,) = read_folder(write(tmp_path / "x.jsonl", [sentences_row(1, [])]))["x"]
    found = floors.signals(row)
    assert found.words == 15  # of the passages
    # Asked: where, zebrafinch, seen. "was" and "the" are too short.
    assert found.overlaps == ((0.333333, 0.0), (0.333333, 0.333333))
    (row,) = read_folder(write(tmp_path / "y.jsonl", [summary_row(0, 1, coverage=1)]))["y"]
    assert floors.signals(row)[:1] == (3,)
    assert floors.signals(row).bigrams == 0.5


@pytest.mark.parametrize("empty", ["", " ", "?!"])
def test_nothing_to_count(empty):
    assert floors.overlap(empty, "Word.") == floors.cosine(empty, "Word.") == floors.bigram_precision(empty, "x y") == 0
    assert not floors.refuses(empty)


@pytest.mark.parametrize("text", ["I’m sorry, no.", "I cannot help.", "As an AI, I", "I do not know."])
def test_refusals(text):
    assert floors.refuses(text)
    assert not floors.refuses("Knowing this, cans are fine.")


# (file, metric, label, statistic, floor): what the README says, and how far from it ours may be. Its lengths and
# take-all are ours to the digit; its lexical overlap, word pairs and keywords are near, not the same rules.
README = {
    ("context_relevancy__clapnq", "sentence F1, answerable rows", "take all"): (0.60, 0.006),
    ("context_relevancy__clapnq", "sentence F1, answerable rows", "lexical .2"): (0.54, 0.006),
    ("context_relevancy__clapnq", "sentence F1, answerable rows", "lexical .3"): (0.40, 0.02),
    ("context_relevancy__clapnq", "rho of the share", "lexical .2"): (0.46, 0.006),
    ("context_relevancy__clapnq", "mean error of the share", "the median label"): (0.220, 0.001),
    ("context_relevancy__hotpotqa", "sentence F1", "take all"): (0.12, 0.006),
    ("context_relevancy__hotpotqa", "sentence F1", "lexical .2"): (0.18, 0.01),
    ("context_relevancy__hotpotqa", "sentence F1", "lexical .3"): (0.24, 0.02),
    ("context_relevancy__hotpotqa", "rho of the share", "lexical .2"): (0.19, 0.03),
    ("context_relevancy__hotpotqa", "mean error of the share", "the median label"): (0.017, 0.001),
    ("context_relevancy__wikieval", "pairwise accuracy", "shorter"): (1.00, 0.0),
    ("context_relevancy__wikieval", "pairwise accuracy", "cosine"): (0.48, 0.006),
    ("response_relevancy__wikieval", "pairwise accuracy", "longer"): (0.80, 0.0),
    ("response_relevancy__haluquestqa", "AUROC", "length"): (0.60, 0.006),
    ("noncommittal__xstest", "AUROC", "length"): (0.30, 0.006),
    ("noncommittal__xstest", "accuracy", "keywords"): (0.75, 0.07),  # ours knows more phrases: .82
    ("response_relevancy__mtrag_turn1", "rho pooled", "length"): (0.10, 0.006),
    ("summarization__squality", "rho within documents", "length", "coverage"): (0.25, 0.006),
    ("summarization__squality", "rho pooled", "length", "coverage"): (0.18, 0.006),
    ("summarization__squality", "rho within documents", "length", "alignment"): (0.20, 0.006),
    ("summarization__squality", "rho pooled", "length", "alignment"): (0.06, 0.006),
    ("summarization__realsumm", "rho within documents", "length", "coverage"): (0.44, 0.006),
    ("summarization__realsumm", "rho pooled", "length", "coverage"): (0.45, 0.006),
    ("summarization__summeval", "rho within documents", "length", "coverage"): (0.08, 0.006),
    ("summarization__summeval", "rho within documents", "length", "alignment"): (-0.21, 0.006),
    ("summarization__summeval", "rho within documents", "bigrams", "alignment"): (0.51, 0.03),
    ("summarization__summeval", "rho pooled", "bigrams", "alignment"): (0.55, 0.05),
    ("summarization__realsumm", "rho within documents", "bigrams", "coverage"): (-0.03, 0.006),
    ("summarization__squality", "rho pooled", "bigrams", "coverage"): (0.08, 0.07),
}


@pytest.fixture(scope="module")
def dev_floors():
    if not DEV.is_dir():
        pytest.skip(f"needs the development data in {DEV}")
    found = {}
    for file, rows in read_folder(DEV).items():
        labels = [Label.of(row) for row in rows]
        for metric in labels[0].metrics:
            parts = {"coverage": 0.5, "alignment": 0.5}
            pairs = [
                (each, Line(file=file, id=each.id, metric=metric, value=0.5, parts=parts, sentences=()))
                for each in labels
            ]
            for comparison in comparisons(labels[0].task, metric, tuple(labels[0].target)):
                for name, measure in comparison.floors.items():
                    estimate = st.estimate(measure(pairs))
                    value = None if estimate is None else estimate.value
                    found[file, comparison.statistic, name] = value
                    found[file, comparison.statistic, name, comparison.label] = value
    return found


@pytest.mark.parametrize(("key", "expected"), README.items(), ids=lambda each: "-".join(map(str, each)))
def test_readme_figures(dev_floors, key, expected):
    figure, tolerance = expected
    assert dev_floors[key] == pytest.approx(figure, abs=max(tolerance, 0.0005))
