"""Apps of LlamaIndex: an engine with a reranker, and an agent that asks an engine as its tool."""

import asyncio
import functools
import itertools
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.agent import ReActAgent, ReActChatFormatter
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.tools import QueryEngineTool
from tests.traces.make.common import ELECTRIC, FERRIES, PASSAGES, WHEN_FERRIES, WHO_LIT, vector

HEADER = (
    "Use a tool: {tool_desc}\nWrite Thought, Action (of {tool_names}), Action Input (JSON); at last Thought and Answer."
)


class Words(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)


class Model(CustomLLM):
    """Says its texts one after the other."""

    texts: Any = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=next(self.texts))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        said = ""
        for word in next(self.texts).split(" "):
            delta = word if not said else f" {word}"
            said += delta
            yield CompletionResponse(text=said, delta=delta)


def model(*texts: str) -> Model:
    return Model(texts=itertools.cycle(texts))


@functools.cache
def index() -> VectorStoreIndex:
    documents = [Document(text=text, id_=f"velin-{n}") for n, text in enumerate(PASSAGES)]
    return VectorStoreIndex.from_documents(documents, embed_model=Words())


def engine() -> Any:
    """Four passages are found, and a model keeps two of them."""
    rerank = LLMRerank(llm=model("Doc: 2, Relevance: 9\nDoc: 1, Relevance: 7"), top_n=2)
    engine = index().as_query_engine(similarity_top_k=4, llm=model(ELECTRIC), node_postprocessors=[rerank])
    return engine.query(WHO_LIT)


def agent() -> Any:
    """An agent asks an engine, its tool, and says the answer with its own words."""
    tool = QueryEngineTool.from_defaults(
        index().as_query_engine(similarity_top_k=2, llm=model("At eight and at noon.")), name="velin"
    )
    said = model(
        'Thought: I need the tool.\nAction: velin\nAction Input: {"input": "ferries to the island of Orm"}',
        f"Thought: I can answer.\nAnswer: {FERRIES}",
    )

    async def run() -> Any:
        return await ReActAgent(tools=[tool], llm=said, formatter=ReActChatFormatter(system_header=HEADER)).run(
            user_msg=WHEN_FERRIES
        )

    return asyncio.run(run())
