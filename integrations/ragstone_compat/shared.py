"""The judge of a script that names a model of OpenAI's, or none."""

import os
import sys

from ragstone.errors import RagstoneError
from ragstone.judge import Judge
from ragstone.metrics.models import judge_of as made
from ragstone.registry import RegistryError, check_name

_DEFAULT = "openai:gpt-5-mini"


def judge_of(model: object) -> Judge:
    """Return the judge of a model: by OpenAI's name or one of ragstone's, a model object, or for None the default.

    Raises:
        RagstoneError: None is named, and neither OpenAI's nor the embedded one is at hand.
        ValueError: The name cannot be used.
        TypeError: The object is no model.
    """
    if model is None:
        model = _default()
    elif isinstance(model, str):
        try:
            check_name(model)
        except RegistryError:
            model = f"openai:{model}"
    return made("llm", model)


def _default() -> str:
    if os.environ.get("OPENAI_API_KEY"):
        return _DEFAULT
    try:
        from ragstone.local.files import LLM_FILE, installed  # an extra

        installed(LLM_FILE)
    except (ImportError, FileNotFoundError):
        ways = 'set OPENAI_API_KEY, or run `pip install "ragstone[local,openai]"` and `ragstone pull` once'
        raise RagstoneError(f"no judge is named: name one, {ways}") from None
    print("ragstone: no judge is named and there is no OPENAI_API_KEY; the embedded judge answers", file=sys.stderr)
    return "local"
