"""Apps of LangChain: a chain that narrows what it found, and an agent with two tools, of which one searches."""

import itertools
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from tests.traces.make.common import ELECTRIC, FERRIES, PASSAGES, WHEN_FERRIES, WHO_LIT, vector

App = Callable[[dict[str, Any]], Any]


class Words(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(vector, texts))

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


class Model(GenericFakeChatModel):
    """The framework's scripted model, and takes tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def model(*messages: AIMessage | str) -> Model:
    return Model(messages=itertools.cycle(messages))


def retriever(k: int = 4) -> Any:
    documents = [Document(text, metadata={"source": f"velin-{n}.md"}) for n, text in enumerate(PASSAGES)]
    store = InMemoryVectorStore(Words())
    store.add_documents(documents)
    return store.as_retriever(search_kwargs={"k": k})


def rag(config: dict[str, Any]) -> Any:
    """Four passages are found, and the prompt has the first two."""
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from these passages only:\n{context}"), ("human", "{question}")]
    )
    two = retriever() | RunnableLambda(lambda found: "\n\n".join(each.page_content for each in found[:2]))
    chain = {"context": two, "question": RunnablePassthrough()} | prompt | model(ELECTRIC) | StrOutputParser()
    return chain.invoke(WHO_LIT, config)


def agent(config: dict[str, Any]) -> Any:
    """A model that asks a tool for a sum and another for passages, then answers."""

    @tool
    def add(a: int, b: int) -> int:
        """The sum of two numbers."""
        return a + b

    search = create_retriever_tool(retriever(2), "search_velin", "Passages on Velin.")
    said = model(
        AIMessage("", tool_calls=[{"name": "add", "args": {"a": 4, "b": 5}, "id": "call_1"}]),
        AIMessage("", tool_calls=[{"name": "search_velin", "args": {"query": WHEN_FERRIES}, "id": "call_2"}]),
        AIMessage(FERRIES),
    )
    return create_agent(said, [add, search]).invoke({"messages": [("user", WHEN_FERRIES)]}, config)
