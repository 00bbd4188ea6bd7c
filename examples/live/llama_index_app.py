"""A web app over a LlamaIndex query engine, monitored: `uvicorn live.llama_index_app:app`."""

import os

from live.handbook import nearest
from live.monitoring import make_monitor
from llama_index.core import QueryBundle
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from words import answer

from ragstone_llama_index import instrument


class HandbookRetriever(BaseRetriever):
    """Finds paragraphs of the handbook."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in nearest(query_bundle.query_str)]


class Reader(CustomLLM):
    """Answers with a sentence out of its prompt."""

    @property
    def metadata(self) -> LLMMetadata:
        """What the framework asks of a model."""
        return LLMMetadata(model_name="reader")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponse:  # noqa: ARG002
        """Answer a prompt of LlamaIndex's."""
        context, _, rest = prompt.partition("Query: ")
        return CompletionResponse(text=answer(rest.partition("\n")[0], context))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponseGen:
        """Answer a prompt in one piece."""
        whole = self.complete(prompt, formatted, **kwargs)
        yield CompletionResponse(text=whole.text, delta=whole.text)


engine = RetrieverQueryEngine.from_args(HandbookRetriever(), llm=Reader())

# What monitoring adds: a monitor, one call that watches every query engine of the process, its lifespan.
monitor = make_monitor(os.environ.get("DATABASE", "llama_index.db"))
instrument(monitor)


async def ask(request: Request) -> JSONResponse:
    """Answer a question."""
    return JSONResponse({"answer": str(await engine.aquery(request.query_params["q"]))})


app = Starlette(routes=[Route("/ask", ask)], lifespan=monitor.lifespan)
