"""A small RAG app, end to end, that made `samples.jsonl`: it answers questions about this repository's LICENSE.

The licence is cut into paragraphs, the two nearest to a question are retrieved with the embedded embedder, and
the embedded LLM answers from them. Nothing is corrected by hand: the samples are what such an app really says.

    ragstone pull && python examples/make_samples.py > examples/samples.jsonl
"""

import json
import re
from pathlib import Path

from ragstone import LLMRequest
from ragstone.local import LocalEmbedder, LocalLLM

LICENSE = Path(__file__).resolve().parent.parent / "LICENSE"
QUESTIONS = (
    "Does the license let me use the contributors' patents?",
    "What must I state in files that I have changed?",
    "Which country's courts decide disputes about the license?",
)
RETRIEVED = 2
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of the terms, one line each."""
    terms = text[text.index("1. Definitions") : text.index("END OF TERMS")]
    flat = (re.sub(r"\s+", " ", paragraph).strip() for paragraph in terms.split("\n\n"))
    return [paragraph for paragraph in flat if len(paragraph) > 80]


def main() -> None:
    """Print one sample per question."""
    embedder, llm = LocalEmbedder(), LocalLLM()
    chunks = paragraphs(LICENSE.read_text(encoding="utf-8"))
    places = embedder.embed(chunks)
    for number, question in enumerate(QUESTIONS, 1):
        nearness = places @ embedder.embed([question])[0]
        contexts = [chunks[i] for i in sorted(nearness.argsort()[::-1][:RETRIEVED])]
        request = LLMRequest(
            task="app.answer",
            system="Answer the question from the context in one or two sentences. If it does not say, say so.",
            user="\n\n".join(["Context:", *contexts, f"Question: {question}"]),
            schema=ANSWER,
        )
        response = json.loads(llm.generate(request).text)["answer"]
        sample = {
            "id": f"license-{number}",
            "user_input": question,
            "retrieved_contexts": contexts,
            "response": response,
        }
        print(json.dumps(sample, ensure_ascii=False))


if __name__ == "__main__":
    main()
