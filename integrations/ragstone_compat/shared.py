"""The models of a script that names one of OpenAI's, or none."""

import os
import sys
from collections.abc import Iterable

from ragstone.errors import RagstoneError
from ragstone.judge import Embedder, Judge
from ragstone.judge_names import RegistryError, check_name, is_embedded
from ragstone.metrics.models import embedder_of, judge_of

GRADES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Grades are words, because a number may be two tokens."""
_DEFAULT = "openai:gpt-5-mini"
_DEFAULT_EMBEDDER = "openai:text-embedding-3-small"


def judge_by_name(model: object) -> Judge:
    """Return the judge of a model: by OpenAI's name or one of ragstone's, a model object, or for None the default.

    Raises:
        RagstoneError: None is named, and neither OpenAI's nor the embedded one is at hand.
        ValueError: The name cannot be used.
        TypeError: The object is no model.
    """
    if model is None:
        model = _default_judge()
    elif isinstance(model, str):
        try:
            check_name(model)
        except RegistryError:
            model = f"openai:{model}"
    return judge_of("llm", model)


def embedder_by_name(model: object, judge: Judge | None) -> Embedder:
    """Return the embedder of a model; for None the embedded judge's own, else OpenAI's where there is a key.

    Raises:
        RegistryError: None is named, there is no key, and the judge does not embed.
        TypeError: The object is no model.
    """
    named = model is not None
    if not named and not is_embedded(judge) and os.environ.get("OPENAI_API_KEY"):
        model = _DEFAULT_EMBEDDER
    embedder = embedder_of(model, judge)
    if not named:
        print(f"ragstone: no embeddings are named; {model or embedder.model} places the texts", file=sys.stderr)
    return embedder


def check_names(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a keyword that the library refuses, too: what it was meant for would be another thing."""
    if strange := [name for name in given if name not in known]:
        raise TypeError(f"{function}() got an unexpected keyword argument {strange[0]!r}")


def _default_judge() -> str:
    if os.environ.get("OPENAI_API_KEY"):
        print(f"ragstone: no judge is named; {_DEFAULT} answers", file=sys.stderr)
        return _DEFAULT
    try:
        from ragstone.local.files import LLM_FILE, installed_path

        installed_path(LLM_FILE)
    except (ImportError, FileNotFoundError):
        ways = 'set OPENAI_API_KEY, or run `pip install "ragstone[local,openai]"` and `ragstone pull` once'
        raise RagstoneError(f"no judge is named: name one, {ways}") from None
    print("ragstone: no judge is named and there is no OPENAI_API_KEY; the embedded judge answers", file=sys.stderr)
    return "local"
