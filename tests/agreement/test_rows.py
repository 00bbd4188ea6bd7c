"""What is read, what is refused and how it is said."""

import pytest
from agreement.rows import DataError, GoldSplitter, read_folder

from .data import response_row, sentences_row, summary_row, tiny, write


def test_files_below_the_folder(tmp_path):
    data = read_folder(tiny(tmp_path))
    assert {file: (len(rows), rows[0].task, rows[0].metrics) for file, rows in data.items()} == {
        "pairs": (8, "pairwise", ("response_relevancy",)),
        "refusals": (6, "noncommittal", ("response_relevancy",)),  # three have no label
        "sentences": (6, "sentences", ("context_relevancy",)),
        "summaries": (9, "correlation", ("summarization_score", "alignment_coverage")),
    }


def test_summary_is_held_against_its_source(tmp_path):
    (row,) = read_folder(write(tmp_path / "x.jsonl", [summary_row(0, 1, coverage=1, alignment=0.5)]))["x"]
    assert row.sample.user_input == "What is the plot?"
    assert row.sample.retrieved_contexts[0].startswith("The zebrafinch 1 lived")
    assert (row.group, dict(row.target)) == ("doc1", {"coverage": 1.0, "alignment": 0.5})


@pytest.mark.parametrize(("limit", "expected"), [(1, "r1 r0"), (3, "r1 r0 r3 r2"), (99, None)])
def test_limit_takes_whole_pairs(tmp_path, limit, expected):
    rows = read_folder(tiny(tmp_path), limit)["pairs"]
    assert [row.id for row in rows] == (expected.split() if expected else [f"r{i}" for i in (1, 0, 3, 2, 5, 4, 7, 6)])


GOOD = sentences_row(1, [[1, 1]])


def changed(**fields):
    return {**GOOD, **fields}


def used(**fields):
    return {**GOOD, "use": {**GOOD["use"], **fields}}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1], "the line: Input should be a valid dictionary"),
        ({}, "(use|id): Field required"),
        (used(metric="Faithfulness"), "use.metric: 'Faithfulness' is none of ContextRelevancy,"),
        (used(task="ranking"), "use.task: 'ranking' begins with none of pairwise,"),
        (
            used(target={"relevant": [[9, 0]], "share": 0}),
            r"relevant: \[9, 0\] is no \[passage, sentence\] of this row",
        ),
        (used(target={"relevant": [], "share": float("nan")}), "use.target.*share: Input should be a finite number"),
        (changed(id=""), "id: String should have at least 1 character"),
        (changed(sentences=[["One."]]), "sentences: has 1 lists for 2 retrieved_contexts"),
        (changed(sentences=[["and sleeps.", "The zebrafinch"], []]), "number 1 is not in its passage, or not behind"),
        (
            used(target={"relevant": [], "share": 0}) | {"retrieved_contexts": [1], "sentences": [[]]},
            "retrieved_contexts.0: Input should be a valid string",
        ),
        (changed(source="x"), "source: stands beside retrieved_contexts"),
        (response_row(1, 0.5, "binary (x)"), "use.target: 0.5 is neither 0, 1 nor null"),
        (response_row(1, 1, "pairwise"), "pair_id: is missing"),
        (response_row(1, 1, "pairwise", pair="p"), r"pair_id 'p': needs one row of target 1 and one of target 0"),
    ],
)
def test_bad_row_is_named(tmp_path, row, message):
    path = write(tmp_path / "bad.jsonl", [row])
    with pytest.raises(DataError, match=rf"bad\.jsonl(, line 1)?: .*{message}"):
        read_folder(tmp_path)
    assert path.exists()


def test_rows_of_two_responses_are_left_out_and_said(tmp_path):
    two = {"id": "x", "user_input": "Why?", "response_a": "So.", "response_b": "Because.", "use": {"target": "a"}}
    write(tmp_path / "twos.jsonl", [two, two])
    write(tmp_path / "pairs.jsonl", [response_row(t, t, "pairwise", pair="p") for t in (0, 1)])
    with pytest.warns(UserWarning, match=r"twos\.jsonl: 2 row\(s\) left out: response_a and response_b are two"):
        assert list(read_folder(tmp_path)) == ["pairs"]


def test_gold_splitter_gives_the_rows_own_sentences(tmp_path):
    rows = read_folder(write(tmp_path / "x.jsonl", [sentences_row(i, []) for i in range(3)]))["x"]
    splitter = GoldSplitter(rows)
    for row in rows:
        for text, sentences in zip(row.sample.retrieved_contexts, row.sentences, strict=True):
            assert [text[a:b] for _, a, b in splitter(text, "en")] == list(sentences)
    assert splitter.cache_key == GoldSplitter(rows).cache_key != GoldSplitter(rows[:2]).cache_key


def test_gold_splitter_refuses_two_splits_of_one_passage(tmp_path):
    other = sentences_row(1, [], id="other")
    other["sentences"] = [[" ".join(each)] for each in other["sentences"]]
    rows = read_folder(write(tmp_path / "x.jsonl", [sentences_row(1, []), other]))["x"]
    with pytest.raises(DataError, match="x: other and s1 split the same passage differently"):
        GoldSplitter(rows)
