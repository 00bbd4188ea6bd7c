"""The judge for the examples: the server at JUDGE_URL, else the embedded one, else scripted replies."""

import json
import os
from zlib import crc32

from ragstone import LLM, Embedder, LLMReply, LLMRequest
from ragstone.clients import OpenAICompatible
from ragstone.testing import FakeEmbedder, FakeLLM


def judge() -> tuple[LLM, Embedder]:
    """Return a judge and an embedder by what is there, and say which."""
    if url := os.environ.get("JUDGE_URL"):
        server = OpenAICompatible.at(url)
        print(f"judge: {server.model} at {url}\n")
        return server, server
    try:
        from ragstone.local import LocalEmbedder, LocalLLM

        local = LocalLLM(), LocalEmbedder()
        local[1].embed(["Are the files there?"])
    except (ImportError, FileNotFoundError):
        print("judge: scripted replies (no judge is installed), so the scores say nothing about the answers\n")
        return FakeLLM(scripted), FakeEmbedder()
    print("judge: the embedded 1.5B model; this takes some minutes\n")
    return local


def scripted(request: LLMRequest) -> LLMReply:
    """Return a reply of the asked form, the same for the same request."""
    some = crc32(request.user.encode())
    if request.task == "response_relevancy.questions":
        asked = {"question": "What about the museum?", "noncommittal": some % 3 == 0}
        return LLMReply(json.dumps({"questions": [asked] * 3}), 300, 60)
    return LLMReply(json.dumps({"ids": [1, 2, 3][: some % 4]}), 250, 8)
