"""Chains as public code has them: what makes one, what it is asked, and what a person would say that it read and said."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableBranch, RunnableLambda, RunnableParallel, RunnablePassthrough, chain
from pydantic import BaseModel

from .monitored import FIRST, FOUND, PROMPT, QUESTION, SECOND, THIRD, Searching, joined, says

SAID = "The novel Emma was written by Jane Austen."
DRAFT = "It may be that Charlotte Brontë wrote the novel."
FOURTH = "Villette is a novel by Charlotte Brontë."
ALL = Searching(texts=(THIRD, FIRST, FOURTH, SECOND))
TEXT = StrOutputParser()
READ = (QUESTION, FOUND, SAID)
CHAINS: dict[str, tuple[Any, ...]] = {}


def public(expected: tuple[Any, ...] = READ, asked: Any = QUESTION) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add the maker of a chain to the table, under its name as words."""

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        CHAINS[make.__name__.replace("_", " ")] = make, {}, asked, expected
        return make

    return add


def called(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "1"}])


def worded(found: dict[str, Any]) -> dict[str, Any]:
    return {"context": joined(found["context"]), "question": found["question"]}


def reranked(found: dict[str, Any]) -> list[Document]:
    """The two that a cross-encoder likes best."""
    order = (FIRST, SECOND, THIRD, FOURTH)
    return sorted(found["context"], key=lambda document: order.index(document.page_content))[:2]


class Cited(BaseModel):
    """Answer, and cite."""

    answer: str
    citations: list[int]


FIND_ALL = RunnableParallel(context=ALL, question=RunnablePassthrough())


@public()
def a_reranker_in_an_assign() -> Any:
    return FIND_ALL | RunnablePassthrough.assign(context=RunnableLambda(reranked) | joined) | PROMPT | says(SAID) | TEXT


@public()
def a_reranker_and_names_of_sources() -> Any:
    answer = RunnablePassthrough.assign(answer=worded | PROMPT | says(SAID) | TEXT)
    chosen = FIND_ALL | RunnablePassthrough.assign(context=reranked) | answer
    return chosen | (lambda x: {"answer": x["answer"], "sources": ["emma.pdf" for _ in x["context"]]})


@public()
def a_cited_answer_beside_documents() -> Any:
    model = says(called("Cited", answer=SAID, citations=[1])).with_structured_output(Cited)
    found = RunnableParallel(context=Searching(), question=RunnablePassthrough())
    return found.assign(answer=worded | PROMPT | model)


@public()
def a_cited_answer_of_some_snippets() -> Any:
    model = says(called("Cited", answer=SAID, citations=[1])).with_structured_output(Cited)
    snippets = RunnableLambda(
        lambda found: "\n".join(f"ID {i}: {d.page_content}" for i, d in enumerate(reranked(found)))
    )
    return FIND_ALL | RunnablePassthrough.assign(context=snippets) | PROMPT | model


@public()
def an_answer_in_a_call_of_a_tool() -> Any:
    said = says(called("cited", answer=SAID, citations=[1])) | JsonOutputKeyToolsParser(
        key_name="cited", first_tool_only=True
    )
    return {"context": Searching() | joined, "question": RunnablePassthrough()} | PROMPT | said


def answered(text: str, said: str, before: str = "") -> str:
    """The answer to a part of the question, from one of two passages that were found."""
    documents = Searching(texts=(text, FOURTH)).invoke("part")[:1]
    return (PROMPT | says(said) | TEXT).invoke({"context": before + joined(documents), "question": "part"})


@public(expected=(QUESTION, (FIRST, SECOND, THIRD), SAID))
def parts_of_a_question_one_after_another() -> Any:
    def run(_: str) -> str:
        before = ""
        for text, said in (
            (FIRST, "It is a novel by Austen, says one."),
            (SECOND, "She was born in that year, says one."),
        ):
            before += answered(text, said, before)
        return answered(THIRD, SAID, before)

    return RunnableLambda(run)


@public()
def parts_of_a_question_each_by_itself() -> Any:
    one = RunnableLambda(lambda text: answered(text, f"One passage has it so: {text[::-1]}"))
    both = RunnableLambda(lambda question: [FIRST, SECOND]) | one.map() | "\n".join
    return {"context": both, "question": RunnablePassthrough()} | PROMPT | says(SAID) | TEXT


@public(expected=(QUESTION, (FIRST, SECOND, THIRD), SAID))
def fused_lists_as_pairs_with_ranks() -> Any:
    def fused(lists: list[list[Document]]) -> list[tuple[Document, float]]:
        texts = dict.fromkeys(document.page_content for documents in lists for document in documents)
        return [(Document(text), 1 / (60 + i)) for i, text in enumerate(texts)]

    queries = says("Emma?\nAusten?") | TEXT | str.splitlines
    find = RunnableLambda(lambda q: Searching(texts=FOUND if "Emma" in q else (FIRST, THIRD)).invoke(q))
    return {"context": queries | find.map() | fused, "question": RunnablePassthrough()} | PROMPT | says(SAID) | TEXT


WHOLE_BOOKS = {"On Emma.": f"A whole book that was found by its summary. {FIRST}", "On her.": f"Another book. {SECOND}"}


@public(expected=(QUESTION, tuple(WHOLE_BOOKS.values()), SAID))
def whole_books_by_their_summaries() -> Any:
    books = Searching(texts=tuple(WHOLE_BOOKS)) | (lambda found: [Document(WHOLE_BOOKS[d.page_content]) for d in found])
    return {"context": books | joined, "question": RunnablePassthrough()} | PROMPT | says(SAID) | TEXT


@public()
def a_function_as_the_retriever() -> Any:
    @chain
    def retriever(query: str) -> list[Document]:
        return [Document(text, metadata={"score": 0.9}) for text in FOUND]

    return {"context": retriever | joined, "question": RunnablePassthrough()} | PROMPT | says(SAID) | TEXT


@public()
def an_envelope_of_an_api() -> Any:
    def envelope(answer: str) -> dict[str, Any]:
        return {"status": "success", "data": {"answer": answer, "sources": [{"snippet": "Emma is"}]}, "error": None}

    return {"context": Searching() | joined, "question": RunnablePassthrough()} | PROMPT | says(SAID) | TEXT | envelope


@public(asked={"query": QUESTION})
def the_model_s_message_as_response() -> Any:
    found = RunnablePassthrough.assign(context=itemgetter("query") | Searching())
    asked = RunnableLambda(lambda x: {"context": joined(x["context"]), "question": x["query"]})
    return found | RunnablePassthrough.assign(response=asked | PROMPT | says(SAID))


@public(expected=(QUESTION, (), "I know of books alone."))
def a_guard_that_answers() -> Any:
    refused = RunnableBranch(
        (lambda x: x["topic"] == "other", lambda _: {"answer": "I know of books alone."}), Searching()
    )
    return RunnableParallel(topic=says("other") | TEXT, question=RunnablePassthrough()) | refused


@public()
def the_best_of_three_by_its_number() -> Any:
    def run(question: str) -> dict[str, Any]:
        context = joined(reranked({"context": ALL.invoke(question)}))
        drafts = [
            (PROMPT | says(said) | TEXT).invoke({"context": context, "question": question}) for said in (DRAFT, SAID)
        ]
        best = (ChatPromptTemplate.from_template("Which?\n{drafts}") | says("1") | TEXT).invoke(
            {"drafts": "\n".join(drafts)}
        )
        return {"answer": drafts[int(best)], "candidates": drafts}

    return RunnableLambda(run)


def fails(_: Any) -> str:
    raise ConnectionError


@public(expected=(QUESTION, (), "Please ask again later."))
def another_chain_where_the_model_is_down() -> Any:
    main = {"context": Searching() | joined, "question": RunnablePassthrough()} | PROMPT | fails
    return main.with_fallbacks([RunnableLambda(lambda _: "Please ask again later.")])


TALK = [HumanMessage("Who are you?"), AIMessage("A librarian."), HumanMessage(QUESTION)]


@public(asked={"messages": TALK})
def a_search_that_depends_on_the_number_of_messages() -> Any:
    last = RunnableLambda(lambda x: x["messages"][-1].text)
    worded_anew = RunnableLambda(lambda x: x["messages"]) | says("Emma author") | TEXT
    find = RunnableBranch(
        (lambda x: len(x["messages"]) == 1, last | Searching(texts=(THIRD,))), worded_anew | Searching()
    )
    answer = RunnableLambda(lambda x: [("system", joined(x["context"])), *x["messages"]]) | says(SAID) | TEXT
    return RunnablePassthrough.assign(context=find).assign(answer=answer)


# A limit: the text of a function is not known to be passages; the app names it with `contexts(...)`.
@public(expected=(QUESTION, (), SAID), asked={"question": QUESTION})
def a_store_in_a_lambda_that_returns_a_text() -> Any:
    return RunnablePassthrough.assign(context=lambda _: "\n".join(FOUND)) | PROMPT | says(SAID) | TEXT
