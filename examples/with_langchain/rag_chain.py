"""Score an LCEL RAG chain as it is, from the state that it returns; then have the chain score itself."""

from operator import itemgetter
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from with_langchain.app import QUESTIONS, Reader, retriever
from words import judge

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone_langchain import RagEvaluator

# The app. It returns what it retrieved beside its answer, so that both can be scored.
prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])


def shown(state: dict[str, Any]) -> dict[str, str]:
    """Return what the prompt shows."""
    return {"question": state["question"], "context": "\n".join(doc.page_content for doc in state["context"])}


chain = RunnablePassthrough.assign(context=itemgetter("question") | retriever()).assign(
    answer=RunnableLambda(shown) | prompt | Reader() | StrOutputParser()
)


def main() -> None:
    """Print each answer with its scores and the reasons for them."""
    llm, embedder = judge()
    evaluators = [
        RagEvaluator(ContextRelevancy(llm=llm)),
        RagEvaluator(ResponseRelevancy(llm=llm, embedder=embedder)),
    ]
    for question in QUESTIONS:
        state = chain.invoke({"question": question})
        print(f"{question}\n  {state['answer']}")
        for evaluator in evaluators:
            result = evaluator(inputs=question, outputs=state)
            score = "unscored" if result["score"] is None else f"{result['score']:8.3f}"
            print(f"  {result['key']:18} {score}  {result['comment']}")
        print()

    scoring = chain.assign(relevancy=evaluators[0].as_runnable())
    verdicts = scoring.invoke({"question": QUESTIONS[0]})["relevancy"]["metadata"]["verdicts"]
    print("What context_relevancy of the first answer rests on:")
    for verdict in verdicts:
        print(f"  {verdict['verdict']:10} {verdict['text']}")


if __name__ == "__main__":
    main()
