"""Judges and embedders by name, as they are written on the command line."""

import click

from ragstone.clients import OpenAICompatible
from ragstone.judge import LLM, Embedder

JUDGE_HELP = (
    "The judge: local (the embedded model), local:PATH (another GGUF file), openai:MODEL (key from "
    "OPENAI_API_KEY), or the URL of an OpenAI-compatible server, as MODEL@URL where it has several models."
)
EMBEDDER_HELP = "The embedder, named in the same way. By default what goes with the judge."
_DEFAULT_OPENAI_EMBEDDER = "text-embedding-3-small"


def make_llm(spec: str, *, max_concurrency: int) -> LLM:
    """Return the judge that `--llm` names.

    Raises:
        click.UsageError: It names none, or what it takes is not installed.
    """
    try:
        if spec == "local" or spec.startswith("local:"):
            from ragstone.local import LocalLLM

            return LocalLLM(spec.removeprefix("local").removeprefix(":") or None)
        return _client(spec, "--llm", max_concurrency)
    except (ImportError, OSError, ValueError) as error:
        raise click.UsageError(f"--llm {spec}: {error}") from None


def make_embedder(spec: str | None, llm_spec: str, *, max_concurrency: int) -> Embedder:
    """Return the embedder that `--embedder` names, or the one that goes with the judge.

    Raises:
        click.UsageError: It names none, or what it takes is not installed.
    """
    if spec is None:
        if llm_spec.startswith("local"):
            spec = "local"
        elif llm_spec.startswith("openai:"):
            spec = f"openai:{_DEFAULT_OPENAI_EMBEDDER}"
        else:
            spec = llm_spec
    try:
        if spec == "local":
            from ragstone.local import LocalEmbedder

            return LocalEmbedder()
        return _client(spec, "--embedder", max_concurrency)
    except (ImportError, OSError, ValueError) as error:
        raise click.UsageError(f"--embedder {spec}: {error}") from None


def _client(spec: str, option: str, max_concurrency: int) -> OpenAICompatible:
    if spec.startswith("openai:") and spec != "openai:":
        return OpenAICompatible(spec.removeprefix("openai:"), max_concurrency=max_concurrency)
    if spec.startswith(("http://", "https://")):
        return OpenAICompatible.at(spec, max_concurrency=max_concurrency)
    model, at, url = spec.rpartition("@http")
    if at and model:
        return OpenAICompatible.at(f"http{url}", model, max_concurrency=max_concurrency)
    raise click.UsageError(f"{option} {spec}: is none of local, local:PATH, openai:MODEL, URL, MODEL@URL")
