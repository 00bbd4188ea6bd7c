"""One reading of rows at every door: what a row is to `evaluate`, it is to a metric, a file, an engine and a monitor."""

import asyncio
import csv
import json

import pandas as pd
import pytest

from ragstone import ContextRelevancy, Monitor, RetrievalRank, Sample, evaluate
from ragstone.batch import Scorer
from ragstone.live import CallableSink
from ragstone.testing import FakeLLM, assert_score

ROW = {"question": "Who wrote Emma?", "contexts": "Jane Austen did. It rains.", "answer": "Jane Austen."}
AS_NAMED = {"user_input": ROW["question"], "retrieved_contexts": [ROW["contexts"]], "response": ROW["answer"]}


def by_file(metric, row, path):
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([row.keys(), row.values()])
    else:
        path.write_text(json.dumps(row) if path.suffix == ".jsonl" else json.dumps([row]))
    evaluate(str(path), metric)


def by_monitor(metric, row, _):
    with Monitor(metric, sinks=CallableSink(lambda _: None)) as monitor:
        monitor.submit(row)


DOORS = {
    "score": lambda metric, row, _: metric.score(row),
    "score by name": lambda metric, row, _: metric.score(**row),
    "ascore": lambda metric, row, _: asyncio.run(metric.ascore(row)),
    "ascore by name": lambda metric, row, _: asyncio.run(metric.ascore(**row)),
    "assert_score": lambda metric, row, _: assert_score(row, metric, at_least=0.5),
    "evaluate": lambda metric, row, _: evaluate([row], metric),
    "columns": lambda metric, row, _: evaluate({name: [value] for name, value in row.items()}, metric),
    "frame": lambda metric, row, _: evaluate(pd.DataFrame([row]), metric),
    "scorer": lambda metric, row, _: Scorer(metric)({name: [value] for name, value in row.items()}),
    "monitor": by_monitor,
    "csv": lambda metric, row, folder: by_file(metric, row, folder / "rows.csv"),
    "json": lambda metric, row, folder: by_file(metric, row, folder / "rows.json"),
    "jsonl": lambda metric, row, folder: by_file(metric, row, folder / "rows.jsonl"),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_row_is_the_same_sample_at_every_door(door, tmp_path):
    judges = [FakeLLM({"ids": [1]}) for _ in range(2)]
    ContextRelevancy(judges[0]).score(Sample(**AS_NAMED))
    DOORS[door](ContextRelevancy(judges[1]), ROW, tmp_path)
    asked, by_door = ([request.user for request in judge.requests] for judge in judges)
    assert asked == by_door != []


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((Sample(),), {"response": "A."}, "sample: is given, and so is 'response'; pass a row, or its fields by name"),
        ((), {}, "sample: is NoneType; pass a Sample, a row such as a dict, or its fields: user_input=..."),
        (([ROW],), {}, "sample: is list; pass a Sample, a row such as a dict, or its fields: user_input=..."),
        ((), {"user_input": "Q?", "respons": "A."}, "respons: is no field of a sample; write response="),
        ((), {"user_input": "Q?", "colour": 3}, "colour: is no field of a sample; there are user_input, "),
        ((), {"user_input": 3}, "user_input: is int, not text (str)"),
        (({"question": float("inf")},), {}, "question: is float, not text (str)"),
        (
            ({"question": "Q?", "retreived_contexts": ["C."]},),
            {},
            "retrieved_contexts: is missing; 'retreived_contexts' may be it: "
            "retrieved_contexts=row['retreived_contexts']",
        ),
        (({"my question": "Q?"},), {}, "the row has 'my question': perhaps user_input=row['my question']"),
    ],
)
def test_what_is_no_row_says_what_to_write(given, named, said):
    for way in (
        ContextRelevancy().score,
        lambda *row, **fields: asyncio.run(ContextRelevancy().ascore(*row, **fields)),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            way(*given, **named)
        assert said in str(caught.value)
        assert "pydantic" not in str(caught.value)


def test_a_row_with_nothing_in_it_is_an_outcome_and_ids_alone_are_a_sample():
    for row in ({}, {"question": None}, {"reference": "A."}):
        assert ContextRelevancy(FakeLLM({"ids": [1]})).score(row).reason == "missing_input"
    ids = {"reference_ids": ["a"], "retrieved_ids": ["a"]}
    assert evaluate([ids], RetrievalRank())["retrieval_rank"].mean == RetrievalRank().score(**ids).value == 1.0


@pytest.mark.parametrize(
    "door",
    [
        lambda fields: evaluate([ROW], RetrievalRank(), fields=fields),
        lambda fields: Scorer(RetrievalRank(), fields=fields)({"q": ["Q?"]}),
    ],
)
def test_fields_behind_their_keys_are_written_the_other_way_round(door):
    with pytest.raises(ValueError, match=r"write it the other way round: {'user_input': 'q', 'response': 'a'}"):
        door({"q": "user_input", "response": "a"})
