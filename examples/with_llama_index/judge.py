"""The judge for the examples: the embedded one if it is there, else scripted replies."""

from typing import Any

from app import WordEmbedding

from ragstone import LLM, Embedder, LLMRequest
from ragstone.testing import FakeLLM
from ragstone_llama_index import LlamaIndexEmbedder


def judge() -> tuple[LLM, Embedder]:
    """Return a judge and an embedder by what is installed, and say which.

    With a model of your own: LlamaIndexLLM(OpenAI("gpt-5-mini")), LlamaIndexEmbedder(OpenAIEmbedding()). The
    evaluators also take LlamaIndex's models as they are, and those of `Settings` when none is named.
    """
    try:
        from ragstone.local import LocalEmbedder, LocalLLM

        local = LocalLLM(), LocalEmbedder()
        local[1].embed(["Are the files there?"])
    except (ImportError, FileNotFoundError):
        print("judge: scripted replies (no judge is installed), so the scores say nothing about the answers\n")
        return FakeLLM(lambda request: scripted(request)), LlamaIndexEmbedder(WordEmbedding())
    print("judge: the embedded 1.5B model; this takes some minutes\n")
    return local


def scripted(request: LLMRequest) -> Any:  # noqa: ANN401 - JSON
    """Return the plainest reply of the asked form."""
    return plainest(request.schema)


def plainest(schema: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return the plainest value that a schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: plainest(part) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [plainest(schema["items"])] * max(1, schema.get("minItems", 1))
    return {"integer": schema.get("minimum", 0), "boolean": False}.get(schema["type"], "Is the museum open?")
