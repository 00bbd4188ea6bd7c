"""A LangChain RAG chain over the handbook."""

from operator import itemgetter
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from live.handbook import nearest
from words import answer


class HandbookRetriever(BaseRetriever):
    """Finds paragraphs of the handbook."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        return [Document(text) for text in nearest(query)]


class Reader(SimpleChatModel):
    """Answers with a sentence out of what it was given."""

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:  # noqa: ANN401, ARG002
        return answer(str(messages[-1].content), str(messages[0].content))


prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
chain = (
    RunnablePassthrough.assign(context=itemgetter("question") | HandbookRetriever())
    | prompt
    | Reader()
    | StrOutputParser()
)
