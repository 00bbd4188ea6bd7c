"""The judge of the examples. It compares words, needs no model and no key, and tells good samples from bad ones.

Name a real one by the environment variable JUDGE: "openai:gpt-5-mini", "local", a server's address.
"""

import json
import os
import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ragstone import LLM, BaseEmbedder, BaseLLM, Embedder, LLMReply, LLMRequest
from ragstone.judge_names import make_embedder, make_llm

REFUSAL = "I do not know."
_COMMON = frozenset(
    re.findall("[a-z]+", "and are can do does for from have how into is its may much not the until what when")
)


def words(text: str) -> set[str]:
    """Return the words of a text that say something, without their endings."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return {word[:5] for word in found if len(word) > 1 and word not in _COMMON}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return re.split(r"(?<=[.?!])\s+", text.strip())


def share(part: str, whole: str) -> float:
    """Return the share of a text's words that another text holds."""
    return len(words(part) & words(whole)) / max(1, len(words(part)))


def answer(question: str, text: str) -> str:
    """Return the sentence of a text that shares most words with a question: an app without a model."""
    best = max(sentences(text), key=lambda sentence: share(question, sentence))
    return best if share(question, best) >= 0.4 else REFUSAL


class WordEmbedder(BaseEmbedder):
    """Places a text by its words: near means many words in common."""

    model = "words"

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one vector per text."""
        places = np.full((len(texts), 512), 1e-6, dtype=np.float32)
        for place, text in zip(places, texts, strict=True):
            for word in words(text):
                place[crc32(word.encode()) % 512] += 1
        return places


class SharedWords(BaseLLM):
    """Judges by the words that two texts share."""

    model = "shared words"

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer any request of the metrics that the examples use."""
        texts = [text for _, text in re.findall(r"^<(\w+) \w+>\n(.*?)\n</\1", request.user, re.MULTILINE | re.DOTALL)]
        first, items = texts[0], dict(re.findall(r"^\[(\d+)\] (.*)$", texts[-1], re.MULTILINE))
        step = request.task.partition(".")[2]
        some = sentences(first)
        most = request.schema["properties"].get("questions", {}).get("maxItems", 10)
        replies = {
            "response_relevancy.questions": {"questions": [{"question": first, "noncommittal": REFUSAL in first}] * 3},
            "summarization_score.questions": {"items": [{"keyphrase": each, "question": each} for each in some[:most]]},
            "alignment_coverage.questions": {"questions": (some * most)[:most]},
        }
        if step == "claims":
            reply: object = {"claims": sentences(first)}
        elif step == "sentences":
            reply = {"ids": [int(i) for i, text in items.items() if share(first, text) >= 0.5]}
        elif step == "verdicts":
            reply = {"verdicts": {i: _checked(text, first) for i, text in items.items()}}
        elif step.endswith("answers"):
            reply = {"answers": {i: "yes" if share(text, first) > 0.6 else "no" for i, text in items.items()}}
        else:
            reply = replies[request.task]
        return LLMReply(json.dumps(reply), len(request.user) // 4, len(str(reply)) // 4)


def _checked(claim: str, source: str) -> dict[str, object]:
    shown = [int(i) for i, text in re.findall(r"^\[(\d+)\] (.*)$", source, re.MULTILINE) if share(claim, text) > 0.6]
    return {"evidence": shown, "verdict": "supported" if shown else "not_in_source"}


def judge() -> tuple[LLM, Embedder]:
    """Return the judge and the embedder that JUDGE names, else those that compare words."""
    if name := os.environ.get("JUDGE"):
        return make_llm(name), make_embedder(None, name)
    print("judge: shared words; for a real one set JUDGE, such as JUDGE=openai:gpt-5-mini\n")
    return SharedWords(), WordEmbedder()
