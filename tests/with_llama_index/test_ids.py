"""The ids of nodes: a golden set of LlamaIndex', its own measures, and ids from metadata, narrowed with the contexts."""

import random

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from pydantic import BaseModel

from ragstone import RetrievalRank, Sample
from ragstone.sources import rows_of
from ragstone_llama_index import evaluate_query_engine, instrument, preview, uninstrument

from ..support.noting import Noting  # noqa: TID252

NODES = [
    TextNode(text="Emma is a novel.", id_="n1", metadata={"file_name": "emma.md"}),
    TextNode(text="It rains.", id_="n2"),
]
MEASURES = ("hit_rate", "mrr", "precision", "recall", "ndcg")


class Golden(BaseModel):
    """As LlamaIndex' `EmbeddingQAFinetuneDataset`, which comes with a package of its own."""

    queries: dict[str, str]
    corpus: dict[str, str]
    relevant_docs: dict[str, list[str]]


def index():
    return VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=2))


@pytest.mark.parametrize("measure", MEASURES)
def test_a_thousand_random_lists_have_the_values_of_llama_index(measure):
    draw, theirs = random.Random(measure), METRIC_REGISTRY[measure]()
    ids = [f"d{i}" for i in range(20)]
    for _ in range(1_000):
        wanted, ranked = draw.sample(ids, draw.randint(1, 6)), draw.sample(ids, draw.randint(1, 10))
        score = RetrievalRank(measure=measure).score(Sample(reference_ids=wanted, retrieved_ids=ranked))
        assert score.value == pytest.approx(theirs.compute(expected_ids=wanted, retrieved_ids=ranked).score, abs=1e-12)


def test_a_golden_set_of_llama_index_scores_as_its_own_evaluator(tmp_path):
    golden = Golden(
        queries={"q1": "Who wrote Emma?", "q2": "Does it rain?"},
        corpus={node.id_: node.text for node in NODES},
        relevant_docs={"q1": ["n2"], "q2": ["n2"]},
    )
    engine = index().as_query_engine(llm=MockLLM())
    report = evaluate_query_engine(engine, golden, [RetrievalRank(measure="mrr")])
    ids = [report.sample(each).retrieved_ids for each in report.results()]
    theirs = RetrieverEvaluator.from_metric_names(["mrr"], retriever=index().as_retriever())
    values = [
        theirs.evaluate(query, golden.relevant_docs[name]).metric_vals_dict["mrr"]
        for name, query in golden.queries.items()
    ]
    assert [each.outcome.value for each in report.results()] == values
    assert [sorted(each) for each in ids] == [["n1", "n2"]] * 2
    saved = tmp_path / "golden.json"
    saved.write_text(golden.model_dump_json())
    rows = [row.sample for row in rows_of(saved)]
    assert [(row.user_input, row.reference_ids) for row in rows] == [
        ("Who wrote Emma?", ("n2",)),
        ("Does it rain?", ("n2",)),
    ]
    named = evaluate_query_engine(engine, saved, ["retrieval_rank"], id_key="file_name")
    assert {*report_ids(named)} == {"emma.md", "n2"}


def report_ids(report):
    return [each for result in report.results() for each in report.sample(result).retrieved_ids]


@pytest.mark.parametrize(("key", "ids"), [("file_name", {"emma.md", "n2"}), ("", {"n1", "n2"}), (None, set())])
def test_live_ids_of_nodes(key, ids):
    monitor = Noting()
    instrument(monitor, id_key=key)
    index().as_query_engine(llm=MockLLM()).query("Who wrote Emma?")
    uninstrument(monitor)
    (sample,) = monitor.samples
    assert {*sample.retrieved_ids} == ids


def test_a_preview_has_a_row_for_ids_that_are_asked_for():
    engine = index().as_query_engine(llm=MockLLM())
    assert "retrieved_ids       <-  ids of its sources" in str(preview(engine, "Who wrote Emma?", id_key="file_name"))
    assert "retrieved_ids" not in str(preview(engine, "Who wrote Emma?"))
