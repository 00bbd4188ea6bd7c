"""The judge for the examples: the model that is named, else the embedded one, else scripted replies."""

import argparse
from typing import Any

from app import WordEmbeddings

from ragstone import LLM, Embedder, LLMRequest
from ragstone.testing import FakeLLM
from ragstone_langchain import LangChainEmbedder, LangChainLLM


def judge() -> tuple[LLM, Embedder]:
    """Return a judge and an embedder by the command line and by what is installed, and say which."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", metavar="PROVIDER:MODEL", help="a chat model as init_chat_model takes it")
    parser.add_argument("--embeddings", metavar="PROVIDER:MODEL", help="embeddings as init_embeddings takes them")
    named = parser.parse_args()
    if named.model:
        from langchain.chat_models import init_chat_model
        from langchain.embeddings import init_embeddings

        print(f"judge: {named.model}\n")
        embeddings = init_embeddings(named.embeddings or "openai:text-embedding-3-small")
        return LangChainLLM(init_chat_model(named.model, temperature=0)), LangChainEmbedder(embeddings)
    try:
        from ragstone.local import LocalEmbedder, LocalLLM

        local = LocalLLM(), LocalEmbedder()
        local[1].embed(["Are the files there?"])
    except (ImportError, FileNotFoundError):
        print("judge: scripted replies (no judge is installed), so the scores say nothing about the answers\n")
        return FakeLLM(scripted), LangChainEmbedder(WordEmbeddings())
    print("judge: the embedded 1.5B model; this takes a minute\n")
    return local


def scripted(request: LLMRequest) -> dict[str, Any]:
    """Return a reply of the asked form."""
    if request.task == "response_relevancy.questions":
        return {"questions": [{"question": f"What about the museum, {i}?", "noncommittal": False} for i in (1, 2, 3)]}
    return {"ids": [1]}
