"""See what a monitor would read of an app, and what it would miss: the first step before an app is scored live."""

from langchain_core.runnables import RunnableLambda
from with_langchain.app import QUESTIONS, Reader, retriever
from words import judge

from ragstone import Monitor, ResponseRelevancy
from ragstone.live import CallableSink, Record
from ragstone_langchain import MonitorHandler, contexts, preview

store = retriever().vectorstore


def tell(asked: dict[str, str]) -> dict[str, str]:
    """Answer a visitor, from what the store has. LangChain says nothing of this search, and no usual name is there."""
    found = store.similarity_search(asked["question"], k=2)
    prompt = [("system", " ".join(document.page_content for document in found)), ("human", asked["question"])]
    return {"for_the_visitor": Reader().invoke(prompt).text, "language": "en"}


def tell_and_name(asked: dict[str, str]) -> dict[str, str]:
    """The same, with the line that the preview says: it names what was found."""
    found = contexts(store.similarity_search(asked["question"], k=2))
    prompt = [("system", " ".join(document.page_content for document in found)), ("human", asked["question"])]
    return {"for_the_visitor": Reader().invoke(prompt).text, "language": "en"}


def main() -> None:
    """Preview the app before and after, and put it on a monitor with what the preview found."""
    asked = {"question": QUESTIONS[0]}
    seen = preview(RunnableLambda(tell), asked)
    print("\nAfter that:\n")
    app = RunnableLambda(tell_and_name)
    seen = preview(app, asked, fields=seen.fields)

    llm, embedder = judge()
    records: list[Record] = []  # in place of a database
    metric = ResponseRelevancy(llm=llm, embedder=embedder)
    with Monitor(metric, sinks=CallableSink(records.extend)) as monitor:
        app.invoke(asked, {"callbacks": [MonitorHandler(monitor, fields=seen.fields)]})
    print(f"\n{monitor.stats()}")


if __name__ == "__main__":
    main()
