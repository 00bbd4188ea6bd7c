"""Score a LangGraph agent with a retriever tool, from the messages that it ends with."""

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import create_retriever_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from with_langchain.app import QUESTIONS, Reader, retriever
from words import judge

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone_langchain import RagEvaluator

# "content_and_artifact" leaves the documents in the tool's message, where RagEvaluator finds them. A tool that
# returns text alone is named instead: RagEvaluator(metric, retriever_tools={"handbook"}).
handbook = create_retriever_tool(
    retriever(k=1), "handbook", "Looks things up in the museum's handbook.", response_format="content_and_artifact"
)
model = Reader().bind_tools([handbook])


def answer(state: MessagesState) -> dict[str, Any]:
    """Let the model go on with the conversation."""
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("model", answer)
graph.add_node("tools", ToolNode([handbook]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
agent = graph.compile()


def main() -> None:
    """Print each answer with its scores and the reasons for them."""
    llm, embedder = judge()
    evaluators = [
        RagEvaluator(ContextRelevancy(llm=llm)),
        RagEvaluator(ResponseRelevancy(llm=llm, embedder=embedder)),
    ]
    for question in QUESTIONS:
        state = agent.invoke({"messages": [HumanMessage(question)]})
        print(f"{question}\n  {state['messages'][-1].content}")
        for evaluator in evaluators:
            result = evaluator(outputs=state)
            score = "unscored" if result["score"] is None else f"{result['score']:8.3f}"
            print(f"  {result['key']:18} {score}  {result['comment']}")
        print()


if __name__ == "__main__":
    main()
