"""How both apps are monitored: which metrics, which judge, where the outcomes go."""

import json
import os
import time
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ragstone import LLM, BaseEmbedder, BaseLLM, ContextRelevancy, LLMReply, LLMRequest, Monitor, ResponseRelevancy
from ragstone.clients import OpenAICompatible
from ragstone.monitor import Budget
from ragstone.sinks import SQLiteSink


class ScriptedJudge(BaseLLM):
    """Stands in for a judge where none is named: replies of the asked form, after 20 ms, that mean nothing."""

    model = "scripted"

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer, always the same for the same request."""
        time.sleep(0.02)
        some = crc32(request.user.encode())
        if request.task == "response_relevancy.questions":
            asked = {"question": "What about the museum?", "noncommittal": some % 3 == 0}
            return LLMReply(json.dumps({"questions": [asked] * 3}), 300, 60)
        return LLMReply(json.dumps({"ids": [1, 2, 3][: some % 4]}), 250, 8)


class WordEmbedder(BaseEmbedder):
    """Places a text by its letters; enough for replies that mean nothing."""

    model = "letters"

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one vector per text."""
        return np.array([[text.count(letter) + 0.1 for letter in "aeinorst"] for text in texts], dtype=np.float32)


def judge() -> LLM:
    """Return the judge at JUDGE_URL, such as http://127.0.0.1:8080/v1, or the scripted one."""
    url = os.environ.get("JUDGE_URL")
    return OpenAICompatible.at(url) if url else ScriptedJudge()


def monitor(database: str) -> Monitor:
    """Return a monitor that keeps scores, and texts, in a database, and loses nothing when it is killed."""
    llm = judge()
    embedder = llm if isinstance(llm, OpenAICompatible) else WordEmbedder()
    return Monitor(
        [ContextRelevancy(llm=llm), ResponseRelevancy(llm=llm, embedder=embedder)],
        sinks=SQLiteSink(database),
        sample_rate={"response_relevancy": 0.5},
        always=("error", "empty_retrieval"),
        budget=Budget(calls_per_minute=6_000),
        outbox=f"{database}.outbox",
        workers=int(os.environ.get("MONITOR_WORKERS", "4")),  # 0: `ragstone worker` judges
        store_text=True,
    )
