"""Judges and embedders by name, as they are written on the command line."""

from functools import partial

import click

from ragstone.clients import AnswerError, OpenAICompatible
from ragstone.clients.access import check_url
from ragstone.clients.connection import load_openai
from ragstone.judge import LLM, Embedder

JUDGE_HELP = (
    "The judge: local (the embedded model), local:PATH (another GGUF file), openai:MODEL (key from "
    "OPENAI_API_KEY), or the URL of an OpenAI-compatible server, as MODEL@URL where it has several models. A server "
    "that wants a key: openai:MODEL with OPENAI_BASE_URL and OPENAI_API_KEY set."
)
EMBEDDER_HELP = (
    "The embedder of response_relevancy, named in the same way (local:PATH: an ONNX file). Default: what goes with "
    "the judge: the embedded one, text-embedding-3-small, or the judge's own server and model."
)
_DEFAULT_OPENAI_EMBEDDER = "text-embedding-3-small"
_PROBE_TIMEOUT = 10.0


class NotThere(click.ClickException):
    """A judge or an embedder that was rightly named cannot be had."""

    exit_code = 2


def is_local(spec: str) -> bool:
    """Return whether a judge or embedder is one in this process."""
    return spec == "local" or spec.startswith("local:")


def local_file(spec: str | None) -> str | None:
    """Return the file that local:PATH names; None where a judge or embedder has none of yours."""
    return _path(spec) if spec is not None and is_local(spec) else None


def model_of(option: str, spec: str) -> str:
    """Return what a judge or embedder would be called, with nobody loaded or asked; its name where only they know.

    Raises:
        click.UsageError: It names none.

    Example:
        >>> model_of("--llm", "openai:gpt-5-mini"), model_of("--llm", "http://127.0.0.1:8080")
        ('gpt-5-mini', 'http://127.0.0.1:8080')
    """
    if is_local(spec):
        return spec
    try:
        return _model_and_url(spec)[0] or spec
    except ValueError as error:
        raise click.UsageError(f"{option} {spec}: {error}") from None


def make_llm(spec: str, *, max_concurrency: int) -> LLM:
    """Return the judge that `--llm` names: loaded, or with a server that answers.

    Raises:
        click.UsageError: It names none.
        NotThere: What it takes is not installed or not pulled, or nobody answers.
    """
    try:
        if is_local(spec):
            from ragstone.local import LocalLLM

            llm = LocalLLM(_path(spec))
            llm.load()
            return llm
        return _client(spec, max_concurrency)
    except ValueError as error:
        raise click.UsageError(f"--llm {spec}: {error}") from None
    except (ImportError, OSError, RuntimeError) as error:
        raise NotThere(f"--llm {spec}: {error}") from error


def make_embedder(spec: str | None, llm_spec: str, llm: LLM | None = None, *, max_concurrency: int) -> Embedder:
    """Return the embedder that `--embedder` names, or the one that goes with the judge.

    Raises:
        click.UsageError: It names none.
        NotThere: What it takes is not installed or not pulled, or nobody answers.
    """
    if spec is None and isinstance(llm, OpenAICompatible) and not llm_spec.startswith("openai:"):
        return llm
    if spec is None and is_local(llm_spec):
        spec = "local"
    elif spec is None:
        spec = f"openai:{_DEFAULT_OPENAI_EMBEDDER}" if llm_spec.startswith("openai:") else llm_spec
    try:
        if is_local(spec):
            from ragstone.local import LocalEmbedder

            embedder = LocalEmbedder(_path(spec))
            embedder.embed(["load"])
            return embedder
        return _client(spec, max_concurrency)
    except ValueError as error:
        raise click.UsageError(f"--embedder {spec}: {error}") from None
    except (ImportError, OSError, RuntimeError) as error:
        raise NotThere(f"--embedder {spec}: {error}") from error


def _path(spec: str) -> str | None:
    return spec.removeprefix("local").removeprefix(":") or None


def _client(spec: str, max_concurrency: int) -> OpenAICompatible:
    model, url = _model_and_url(spec)
    if url is None:
        make = partial(OpenAICompatible, model)
    elif model:
        make = partial(OpenAICompatible.at, url, model)
    else:
        return OpenAICompatible.at(url, max_concurrency=max_concurrency)  # asks the server for its model
    with make(timeout=_PROBE_TIMEOUT, max_retries=1) as probe:
        _check_reached(probe)
    return make(max_concurrency=max_concurrency)


def _model_and_url(spec: str) -> tuple[str, str | None]:
    """Return the model, "" for the server's own, and the server, None for OpenAI's.

    Raises:
        ValueError: It is no such name.
    """
    if spec.startswith(("http://", "https://")):
        return "", check_url(spec)
    if spec.startswith("openai:") and spec != "openai:":
        return spec.removeprefix("openai:"), None
    model, at, url = spec.rpartition("@http")
    if not (at and model):
        raise ValueError("is none of local, local:PATH, openai:MODEL, URL, MODEL@URL")
    return model, check_url(f"http{url}")


def _check_reached(client: OpenAICompatible) -> None:
    """Find out in seconds, at no cost, what each row would otherwise find out after all retries.

    Raises:
        ConnectionError: Nobody answers, or the key is wrong. A server that lists no models may be a good judge.
    """
    openai = load_openai()
    try:
        client.models()
    except (openai.APIConnectionError, openai.AuthenticationError) as error:
        raise ConnectionError(str(error)) from error
    except (openai.OpenAIError, AnswerError):
        return
