"""The app under test: a vector store over a museum's handbook, and a chat model that reads from it. No key needed."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from words import WordEmbedder, answer

HANDBOOK = (
    "The museum opens at ten in the morning from Tuesday to Sunday. It is closed on Mondays. On Thursdays it stays "
    "open until nine in the evening.",
    "A ticket costs 12 euros for adults. Children under twelve enter free. The audio guide costs 4 euros more.",
    "Photographs are allowed without flash. Tripods need a written permit from the office. Filming is not allowed.",
    "The cafe is on the ground floor next to the garden. It serves lunch from noon to three. Dogs may come into the "
    "garden but not into the cafe.",
    "Guided tours start at the main stairs at eleven and at three. A tour takes one hour. Groups of more than ten "
    "people must book a tour in advance.",
)
QUESTIONS = (
    "How much does a ticket cost for adults?",
    "Until when is the museum open on Thursdays?",
    "Where does the museum keep its dinosaurs?",
)


class WordEmbeddings(Embeddings):
    """Places a text by the words that it holds: near means many words in common."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text."""
        vectors: list[list[float]] = WordEmbedder().embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return self.embed_documents([text])[0]


class Reader(BaseChatModel):
    """Answers with the sentence of its context that has most words in common with the question.

    Given a tool, it first calls that with the question, as an agent's model would.
    """

    @property
    def _llm_type(self) -> str:
        return "reader"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ANN401 - as LangChain has it
        """Return the model with a tool."""
        return self.bind(tool=tools[0].name, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ANN401
    ) -> ChatResult:
        question = next(str(m.content) for m in reversed(messages) if m.type == "human")
        context = "\n".join(str(m.content) for m in messages if m.type in ("system", "tool"))
        if "tool" in kwargs and not isinstance(messages[-1], ToolMessage):
            call = {"name": kwargs["tool"], "args": {"query": question}, "id": "1"}
            return _said(AIMessage("", tool_calls=[call]))
        return _said(AIMessage(answer(question, context)))


def _said(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def retriever(k: int = 2) -> VectorStoreRetriever:
    """Return a retriever of the `k` nearest paragraphs of the handbook."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents([Document(text, metadata={"paragraph": i}) for i, text in enumerate(HANDBOOK)])
    return store.as_retriever(search_kwargs={"k": k})
