"""The callable that Dask, Ray Data and Spark take: the same outcomes from every form of a batch, on a worker that dies."""

import asyncio
import os
import pickle
import signal
import threading
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ragstone import ContextRelevancy, Limits, evaluate
from ragstone.batch import Scorer
from ragstone.judge_names import RegistryError
from ragstone.testing import FakeLLM

from ..support.judges import Slow  # noqa: TID252
from ..support.openai_server import Answer, chat  # noqa: TID252 - under importlib mode tests are no package

ROWS = [
    {"id": f"q{i}", "question": f"Who wrote {i}?", "contexts": ["Ann did. It rains.", "Bob."][: 1 + i % 2]}
    for i in range(6)
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
SAME = ["row", "sample_id", "metric", "value", "unscored", "user_input", "retrieved_contexts", "llm_calls"]


def metric():
    return ContextRelevancy(llm=FakeLLM({"ids": [1]}))


@pytest.mark.parametrize(
    "batch",
    [
        COLUMNS,
        {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
        pd.DataFrame(ROWS),
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
    ],
    ids=lambda batch: type(batch).__name__,
)
def test_each_form_of_a_batch_gives_what_evaluate_gives(batch):
    expected = evaluate(ROWS, metric()).to_pandas()
    found = Scorer(metric())(batch)
    assert dict(found.dtypes.astype(str)) == dict(Scorer.columns) == dict(expected.dtypes.astype(str))
    pd.testing.assert_frame_equal(found[SAME], expected[SAME])


def test_no_row_is_lost_and_an_empty_batch_has_the_same_columns():
    scorer = Scorer(metric())
    batch = {"id": ["a", "b", "c"], "contexts": [["Ann."], [3], None], "question": ["Who?", "Who?", "Who?"]}
    found = scorer(batch)
    assert found["row"].tolist() == [0, 2, 1]
    assert found["unscored"].fillna("").tolist() == ["", "missing_input", "no_sample"]
    assert "contexts" in found["reason"].iloc[-1]
    for empty in ({}, {"id": [], "contexts": []}, pd.DataFrame(ROWS)[:0], pa.Table.from_pylist(ROWS)[:0]):
        nothing = scorer(empty)
        assert (len(nothing), dict(nothing.dtypes.astype(str))) == (0, dict(Scorer.columns))
    assert [len(frame) for frame in scorer.frames([batch, {}])] == [3, 0]
    assert len(Scorer.spark_schema.split(",")) == len(Scorer.columns)


def test_what_is_named_is_made_in_each_process(openai_server):
    server = openai_server(lambda body: chat('{"ids": [1]}'))
    scorer = Scorer(["context_relevancy"], llm=f"m@{server.url}")
    assert scorer(COLUMNS)["value"].notna().all()
    again = pickle.loads(pickle.dumps(scorer))
    assert again(COLUMNS)["value"].tolist() == scorer(COLUMNS)["value"].tolist()
    assert b"FakeLLM" not in pickle.dumps(scorer)


def test_calls_in_flight_and_limits_are_divided():
    both = asyncio.Event()

    async def until_two_are_asked(request):
        if busy.in_flight == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 30)

    busy = Slow(until_two_are_asked, {"ids": [1]})
    limits = Limits(max_concurrency=6, max_calls=12)
    found = Scorer(ContextRelevancy(llm=FakeLLM(busy)), share=3, limits=limits)(pd.DataFrame(ROWS))
    assert busy.most == 2
    assert found["unscored"].fillna("").tolist().count("over_budget") == 2  # 12 / 3 are made


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"metrics": ["no_such_metric"], "llm": "m@http://127.0.0.1:1"}, RegistryError),
        ({"metrics": ["context_relevancy"]}, RegistryError),
        ({"metrics": metric(), "share": 0}, ValueError),
        ({"metrics": metric(), "progress": True}, ValueError),
        ({"metrics": metric(), "max_calls": 9}, ValueError),
        ({"metrics": metric(), "limits": {"max_calls": 9}}, TypeError),
    ],
)
def test_what_no_worker_could_do_is_refused_before_one_is_asked(given, error):
    with pytest.raises(
        error,
        match=r"no_such_metric|llm: is missing|share: |progress: is no option|pass limits=Limits.max_calls=|limits: is dict",
    ):
        Scorer(**given)


@pytest.mark.slow
def test_a_killed_dask_worker_costs_one_partition_at_most(openai_server):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    frame = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    size, partitions = 10, 8
    reached = threading.Event()
    asked: Counter[str] = Counter()

    def answer(body):
        asked[body["messages"][-1]["content"].partition("Book ")[2][:3]] += 1
        if len(asked) == 5:
            reached.set()
        return Answer(chat('{"ids": [1]}'), delay=0.05)

    server = openai_server(answer)
    texts = [f"{i:03}" for i in range(size * partitions)]
    rows = pd.DataFrame({"id": texts, "question": "Who?", "contexts": [[f"Book {text}. Rain."] for text in texts]})
    scorer = Scorer(["context_relevancy"], llm=f"m@{server.url}", share=2, limits=Limits(max_concurrency=4))
    config = {"distributed.scheduler.allowed-failures": 5, "dataframe.convert-string": False}
    with (
        dask.config.set(config),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pieces = frame.from_pandas(rows, npartitions=partitions).map_partitions(scorer, meta=scorer({}))
        found = client.compute(pieces)
        assert reached.wait(60)
        pid = next(iter(client.run(os.getpid).values()))
        os.kill(pid, signal.SIGKILL)
        outcomes = found.result(timeout=120)
    assert sorted(outcomes["sample_id"]) == texts
    assert outcomes["value"].notna().all()
    twice = [text for text, times in asked.items() if times > 1]
    assert len(twice) <= size
