"""Evaluate a chat engine turn by turn, and show what a score rests on."""

from llama_index.core.chat_engine.types import ChatMode
from with_llama_index.app import QUESTIONS, Reader, index
from words import judge

from ragstone_llama_index import MetricEvaluator

engine = index().as_chat_engine(chat_mode=ChatMode.CONTEXT, llm=Reader(), similarity_top_k=1)


def main() -> None:
    """Print each turn with its scores, and the verdicts that the last one rests on."""
    llm, embedder = judge()
    context = MetricEvaluator("context_relevancy", llm)
    response = MetricEvaluator("response_relevancy", llm, embedder)
    for question in QUESTIONS:
        answer = engine.chat(question)
        print(f"{question}\n  {answer}")
        result = context.evaluate_response(query=question, response=answer)
        for scored in (response.evaluate_response(query=question, response=answer), result):
            score = "unscored" if scored.invalid_result else f"{scored.score:8.3f}"
            print(f"  {scored.metric:18} {score}  {scored.feedback or scored.invalid_reason}")
        for verdict in result.verdicts:
            print(f"    {verdict.verdict:10} {verdict.text}")
        print()


if __name__ == "__main__":
    main()
