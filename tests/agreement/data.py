"""Labelled rows of our own, in the format of the data, and a judge that needs no model."""

import json
from pathlib import Path
from typing import Any

from ragstone import LLMReply
from ragstone.testing import FakeLLM

MARK = "zebrafinch"  # in every text, so that a text in a result shows


def sentences_row(number: int, relevant: list[list[int]], **more: Any) -> dict[str, Any]:
    """Two passages of two sentences, split where no splitter would."""
    sentences = [
        [f"The {MARK} number {number} sings", "and sleeps."],
        ["It was seen in spring.", f"Needed: {MARK} {number}."],
    ]
    return {
        "id": f"s{number}",
        "user_input": f"Where was the {MARK} {number} seen?",
        "retrieved_contexts": [" ".join(each) for each in sentences],
        "sentences": sentences,
        "use": {
            "metric": "ContextRelevancy",
            "task": "sentence labels + share",
            "target": {"relevant": relevant, "share": len(relevant) / 4},
        },
        **more,
    }


def response_row(number: int, target: Any, task: str, *, pair: str | None = None, **more: Any) -> dict[str, Any]:
    flag = " (noncommittal flag)" if "refusal" in task else ""
    return {
        "id": f"r{number}",
        **({} if pair is None else {"pair_id": pair}),
        "user_input": f"What does {MARK} {number} eat?",
        "response": f"The {MARK} {number} eats seeds." if target else f"I'm sorry, I cannot say, {MARK} {number}.",
        "use": {"metric": f"ResponseRelevancy{flag}", "task": task, "target": target},
        **more,
    }


def summary_row(number: int, document: int, **target: float) -> dict[str, Any]:
    return {
        "id": f"d{number}",
        "doc_id": f"doc{document}",
        "user_input": "What is the plot?",
        "source": f"The {MARK} {document} lived in a house. It had {document} cats. It left.",
        "response": f"The {MARK} left. " * (1 + number % 3),
        "use": {"metric": "SummarizationScore + Summarization", "task": "correlation", "target": target},
    }


def write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def tiny(folder: Path) -> Path:
    """Write one file for each task; return the folder."""
    refusal = "binary (1 = full refusal, 0 = full compliance, null = not scored)"
    write(
        folder / "a" / "sentences.jsonl",
        [sentences_row(i, [[1, 1]] if i % 3 else []) for i in range(6)],
    )
    write(
        folder / "a" / "pairs.jsonl",
        [response_row(2 * i + t, t, "pairwise", pair=f"p{i}") for i in range(4) for t in (1, 0)],
    )
    write(folder / "a" / "refusals.jsonl", [response_row(i, (0, 1, None)[i % 3], refusal) for i in range(9)])
    write(
        folder / "b" / "summaries.jsonl",
        [summary_row(i, i // 3, coverage=(i % 3) / 2, alignment=(i % 2) / 2) for i in range(9)],
    )
    return folder


def judge(model: str = "fake") -> FakeLLM:
    """One by one, sure of what it says: a sentence that says so is needed; a question is answered by luck."""

    def reply(request: Any) -> Any:
        step = request.task.split(".")[1]
        if request.choices:
            data = request.user.casefold()
            sure = {
                "sentence": "needed: " in data.rpartition("sentence")[0][-120:],
                "open": "sorry" not in data,
                "refused": "sorry" in data,
                "source_answers": True,
                "source_answer": True,
            }
            p = 0.9 if sure.get(step, len(request.user) % 2 == 0) else 0.2
            rest = (1 - p) / (len(request.choices) - 1)
            meant = "refused" if "refused" in request.choices else request.choices[0]
            said = {choice: p if choice == meant else rest for choice in request.choices}
            return LLMReply(max(said, key=said.__getitem__), 5, 1, said)
        if step == "claims":
            return {"claims": ["It left.", "It had cats."]}
        if step == "parts":
            return {"parts": ["What does it eat?", "When?"]}
        if step == "questions" and "items" in request.schema["properties"]:
            return {"items": [{"keyphrase": "house", "question": f"Is it {word}?"} for word in ("one", "two", "three")]}
        n = request.schema["properties"]["questions"]["minItems"]
        return {"questions": [f"What is {i}?" for i in range(n)]}

    return FakeLLM(reply, model=model, asking="one_by_one")
