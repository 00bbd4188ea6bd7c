"""The ids of Documents: from their metadata or their own, narrowed with the contexts, live and by evaluators."""

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from ragstone import RetrievalRank
from ragstone_langchain import MonitorHandler, RagEvaluator, preview

from ..support.noting import Noting  # noqa: TID252
from .monitored import ANSWER, FIRST, QUESTION, SECOND, Searching

DOCUMENTS = [Document(FIRST, id="1", metadata={"source": "emma.md"}), Document(SECOND, id="2")]


class Searched(Searching):
    """A retriever of Documents that have ids."""

    def _get_relevant_documents(self, query, *, run_manager):
        return DOCUMENTS


def found(chain, asked=QUESTION, **options):
    notes = Noting()
    chain.invoke(asked, config={"callbacks": [MonitorHandler(notes, **options)]})
    return notes.only


def searching(_):
    Searched().invoke(QUESTION)
    return ANSWER


@pytest.mark.parametrize(("key", "ids"), [("source", ("emma.md", "2")), ("", ("1", "2")), (None, ())])
def test_live_ids_are_those_of_what_was_searched(key, ids):
    sample = found(RunnableLambda(searching), id_key=key)
    assert (sample.retrieved_contexts, sample.retrieved_ids) == ((FIRST, SECOND), ids)
    assert ("retrieved_ids" in sample.model_fields_set) == (key is not None)


def test_ids_of_what_an_app_states_or_names_and_none_where_one_has_none():
    stating = RunnableLambda(lambda _: {"answer": ANSWER, "documents": DOCUMENTS[:1]})
    assert found(stating, id_key="source").retrieved_ids == ("emma.md",)
    without = RunnableLambda(lambda _: {"answer": ANSWER, "documents": [*DOCUMENTS, Document("A third.")]})
    assert "retrieved_ids" not in found(without, id_key="source").model_fields_set


def test_an_evaluator_compares_them_with_the_reference_s():
    evaluator = RagEvaluator(RetrievalRank(measure="mrr"), id_key="source")
    golden = {"answer": ANSWER, "expected_sources": ["2"]}
    outputs = {"answer": ANSWER, "documents": DOCUMENTS}
    assert evaluator(inputs=QUESTION, outputs=outputs, reference_outputs=golden)["score"] == 0.5
    assert evaluator(inputs=QUESTION, outputs=ANSWER, context=DOCUMENTS, reference_outputs=golden)["score"] == 0.5
    own = {"retrieved_ids": ["2", "7"]}
    assert RagEvaluator("retrieval_rank")(inputs=QUESTION, outputs=own, reference_outputs=golden)["score"] == 1.0
    nothing = RagEvaluator("retrieval_rank")(inputs=QUESTION, outputs=ANSWER, reference_outputs=golden)
    assert nothing["score"] is None
    assert "retrieved_ids: is not in outputs" in nothing["comment"]
    lacks = RagEvaluator("retrieval_rank")(inputs=QUESTION, outputs=outputs, reference_outputs=ANSWER)
    assert "reference_ids: is not in reference_outputs" in lacks["comment"]


def test_a_preview_has_a_row_for_ids_that_are_asked_for(capsys):
    assert "retrieved_ids       <-  ids of its sources  2 ids: emma.md" in str(
        preview(RunnableLambda(searching), QUESTION, id_key="source")
    )
    without = RunnableLambda(lambda _: {"answer": ANSWER, "documents": [Document("A third.")]})
    assert "retrieved_ids           missing" in str(preview(without, QUESTION, id_key=""))
    assert "retrieved_ids" not in str(preview(without, QUESTION))
