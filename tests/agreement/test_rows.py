"""What is read, what is refused and how it is said."""

import json

import pytest
from agreement.rows import DataError, GoldSplitter, read_folder

from .data import response_row, sentences_row, summary_row, tiny, write


def test_files_below_the_folder(tmp_path):
    data = read_folder(tiny(tmp_path))
    assert {file: (len(rows), rows[0].task, rows[0].metrics) for file, rows in data.items()} == {
        "pairs": (8, "pairwise", ("response_relevancy", "response_completeness")),
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
        (used(metric="Coherence"), "use.metric: 'Coherence' is none of AlignmentCoverage,"),
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


def pair_row(number, target, **more):
    use = {"metric": "ResponseRelevancy", "task": "pairwise", "target": target}
    return {"id": f"p{number}", "user_input": "Why?", "response_a": "So.", "response_b": "Because.", "use": use, **more}


@pytest.mark.parametrize(
    ("target", "expected"),
    [("a", [1, 0]), ("B", [0, 1]), (1.5, [0, 1]), (-2, [1, 0]), ({"overall": -1, "completeness": 2}, [1, 0])],
)
def test_a_pair_of_responses_is_two_rows(tmp_path, target, expected):
    rows = read_folder(write(tmp_path / "x.jsonl", [pair_row(1, target), pair_row(2, 0), pair_row(3, None)]))["x"]
    assert [(row.id, row.group, row.task, row.target["human"]) for row in rows] == [
        ("p1-a", "p1", "pairwise", expected[0]),
        ("p1-b", "p1", "pairwise", expected[1]),
    ]  # where neither is preferred there is nothing to score
    assert [row.sample.response for row in rows] == ["So.", "Because."]


def qags_line(*sentences, **more):
    said = [
        {"sentence": f"Cats {i}.", "responses": [{"worker_id": n, "response": word} for n, word in enumerate(words)]}
        for i, words in enumerate(sentences)
    ]
    return {"article": "Cats sleep.", "summary_sentences": said, **more}


def faithbench_sample(number, *labels):
    annotations = [{"annot_id": i, "label": list(each), "summary_span": "x"} for i, each in enumerate(labels)]
    return {"sample_id": number, "source": "Cats sleep.", "summary": "Cats run.", "annotations": annotations}


def test_forms_of_other_data_sets(tmp_path):
    yes, no = ("yes", "yes", "no"), ("yes", "no", "no")
    write(tmp_path / "a" / "mturk.jsonl", [qags_line(yes, yes), qags_line(yes, no)])
    (tmp_path / "b").mkdir()
    samples = [
        faithbench_sample(*each)
        for each in [(7,), (8, ["Benign"], ["Questionable"]), (9, ["Benign"], ["Unwanted", "Unwanted.Intrinsic"])]
    ]
    (tmp_path / "b" / "batch_1.json").write_text(json.dumps({"samples": samples}))
    (qags,), (faithbench,) = (read_folder(tmp_path / name).values() for name in "ab")
    assert [(row.id, row.target["human"]) for row in qags] == [("qags-1", 1.0), ("qags-2", 0.0)]
    assert [(row.id, row.target["human"]) for row in faithbench] == [
        ("faithbench-7", 1.0),
        ("faithbench-8", 1.0),
        ("faithbench-9", 0.0),
    ]
    for row in (*qags, *faithbench):
        assert (row.task, row.metrics) == ("binary", ("faithfulness", "alignment_coverage"))
        assert row.sample.retrieved_contexts == ("Cats sleep.",)
    assert len({row.group for row in faithbench}) == 1  # of one source: drawn together
    assert qags[0].sample.response == "Cats 0. Cats 1."


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "x", "response_a": "So."}, "line 1: response_a, response_b, id: a pair of responses needs these three"),
        (pair_row(1, "c"), "line 1: use.target: 'c' says of no response that it is better"),
        (pair_row(1, 1), "use.target: 0 and 1 alone do not say which response is better"),
        ({"summary_sentences": [1], "article": "x"}, "line 1: summary_sentences: needs, beside `article`,"),
        ({"annotations": [{}], "summary": "x", "source": "y"}, "line 1: annotations: needs, beside `source`"),
    ],
)
def test_other_forms_are_refused_in_a_sentence(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        read_folder(write(tmp_path / "x.jsonl", [line]))


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
