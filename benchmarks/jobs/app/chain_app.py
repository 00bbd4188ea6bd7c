"""A LangChain chain; its state holds question, context and answer."""

from data import answer, contexts
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

chain = RunnablePassthrough.assign(context=RunnableLambda(lambda _: [Document(each) for each in contexts])).assign(
    answer=RunnableLambda(lambda _: answer)
)
