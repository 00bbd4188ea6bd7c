"""Which metadata of documents stand in the contexts: the same live and offline, and none unless it is asked for."""

from functools import partial

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode

from ragstone import ContextRelevancy
from ragstone.testing import FakeLLM
from ragstone_llama_index import MetricEvaluator, evaluate_query_engine, instrument

from ..support.noting import Noting  # noqa: TID252
from .models import truth
from .monitored import Speaking, memory

TEXT = "Emma is a novel by Jane Austen."
MODES = {
    None: TEXT,
    "llm": f"file_path: books/emma.txt\npage_label: 7\n\n{TEXT}",
    MetadataMode.EMBED: f"file_path: books/emma.txt\nsize: 812\n\n{TEXT}",
    "all": f"file_path: books/emma.txt\npage_label: 7\nsize: 812\n\n{TEXT}",
}


class Own(CustomQueryEngine):
    """Its answer names no nodes."""

    retriever: BaseRetriever

    def custom_query(self, query_str):
        return str(len(self.retriever.retrieve(query_str)))


@pytest.mark.parametrize("mode", MODES)
def test_offline_as_live(mode):
    document = Document(
        text=TEXT,
        metadata={"file_path": "books/emma.txt", "page_label": "7", "size": 812},  # as LlamaIndex' readers of files do
        excluded_llm_metadata_keys=["size"],
        excluded_embed_metadata_keys=["page_label"],
    )
    options = {} if mode is None else {"metadata_mode": mode}
    notes = Noting()
    index = VectorStoreIndex.from_documents([document], embed_model=MockEmbedding(embed_dim=2))
    engine = index.as_query_engine(llm=Speaking())
    chat = ContextChatEngine.from_defaults(index.as_retriever(), llm=Speaking(), memory=memory())
    instrument(notes, metadata_mode="all")
    instrument(notes, **options)  # the last call holds
    metric = ContextRelevancy(llm=FakeLLM(truth))
    report = evaluate_query_engine(engine, ["Who?"], [metric], **options)
    result = MetricEvaluator(metric, **options).evaluate_response("Who?", engine.query("Who?"))
    with pytest.raises(ConnectionError):
        index.as_query_engine(llm=Speaking(ConnectionError("down"))).query("Who?")
    assert {report.sample(next(report.results())).retrieved_contexts, tuple(result.contexts)} == {(MODES[mode],)}
    list(index.as_query_engine(llm=Speaking(), streaming=True).query("Who?").response_gen)
    list(chat.stream_chat("Who?").response_gen)
    notes.wait(5)
    Own(retriever=index.as_retriever()).query("Who?")
    assert [one.retrieved_contexts for one in notes.samples] == [(MODES[mode],)] * 5
    assert notes.skipped == {"own_run": 1}
    assert notes.errors == []


def test_a_wrong_option_is_refused_with_what_there_is():
    metric = ContextRelevancy(llm=FakeLLM(truth))
    for call in (
        partial(instrument, Noting()),
        partial(MetricEvaluator, metric),
        partial(evaluate_query_engine, Own.model_construct(), ["Who?"], [metric]),
    ):
        with pytest.raises(ValueError, match="metadata_mode: 'NONE' should be 'all', 'embed', 'llm' or 'none'"):
            call(metadata_mode="NONE")
        with pytest.raises(ValueError, match="context_tools: 'search' should be"):
            call(context_tools="search")
