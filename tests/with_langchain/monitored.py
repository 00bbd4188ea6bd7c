"""What the tests of live monitoring share: a monitor that notes, and real retrievers and models with fixed words."""

import itertools
import json
import re
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough, RunnableSequence

from ragstone import Sample
from ragstone_langchain import MonitorHandler

from ..support.noting import Noting  # noqa: TID252
from .ways import invoke

QUESTION = "Who wrote Emma?"
FIRST = "Emma is a novel by Jane Austen."
SECOND = "Jane Austen was born in 1775."
THIRD = "Persuasion is a novel too."
ANSWER = "Jane Austen wrote Emma."
FOUND = (FIRST, SECOND)
WHOLE = (QUESTION, FOUND, ANSWER)
PROMPT = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")


class Searching(BaseRetriever):
    """A retriever that always returns the same documents."""

    texts: tuple[str, ...] = FOUND
    error: Exception | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if self.error is not None:
            raise self.error
        return [Document(text) for text in self.texts]


class Around(BaseRetriever):
    """A retriever that chooses from what others return, as an ensemble or a reranker does."""

    inner: list[Any]
    keep: int

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        return [document for one in self.inner for document in one.invoke(query, config)][: self.keep]


class Model(GenericFakeChatModel):
    """Says what it is told to, word by word where it is streamed, tools or no tools."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        said = next(self.messages)
        pieces = [AIMessageChunk(word) for word in re.split(r"(?<= )", str(said.content))]
        if said.tool_calls:
            calls = [{**call, "args": json.dumps(call["args"]), "index": i} for i, call in enumerate(said.tool_calls)]
            pieces.append(AIMessageChunk("", tool_call_chunks=calls))
        for piece in pieces:
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def says(*texts: str | AIMessage) -> Model:
    """A model that says these one after another, or the only one again and again."""

    def message(text: str | AIMessage) -> AIMessage:
        return text.model_copy() if isinstance(text, AIMessage) else AIMessage(text)  # it is given an id

    return Model(messages=map(message, itertools.cycle(texts)))  # unlike a generator, for many threads


def joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def rag(*steps, search=None):
    """A chain that searches, words a prompt and takes these steps; by default a model says the answer, as text."""
    steps = steps or (says(ANSWER), StrOutputParser())
    return RunnableSequence(
        {"context": (search or Searching()) | joined, "question": RunnablePassthrough()}, PROMPT, *steps
    )


def parts(sample: Sample) -> tuple[Any, ...]:
    return sample.user_input, tuple(sample.retrieved_contexts), sample.response


def sample_of(runnable: Any, asked: Any = QUESTION, way: Any = invoke, **config: Any) -> Sample:
    """Run it with a handler, and return the one sample that came of it."""
    monitor = Noting()
    handler = MonitorHandler(monitor)
    way(runnable, asked, {"callbacks": [handler], **config})
    assert len(handler.recorder.runs) == 0
    return monitor.only
