"""What a judge's tokens cost, by its provider's list."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

PRICES = Path(__file__).with_name("prices.json")
HOSTS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.x.ai": "xai",
    "api.together.xyz": "together_ai",
    "api.fireworks.ai": "fireworks_ai",
    "api.deepinfra.com": "deepinfra",
}
"""The providers of which prices are known, by the host of their address."""
_LANGCHAIN = {"google_genai": "gemini", "mistralai": "mistral", "together": "together_ai", "fireworks": "fireworks_ai"}


class Price(NamedTuple):
    """What a million prompt tokens and a million reply tokens cost, and where that is from."""

    input: float
    output: float
    source: str = "at the price that was given"

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """Return what so many tokens cost.

        Example:
            >>> Price(0.25, 2.0).of(1_000_000, 500_000)
            1.25
        """
        return (self.input * input_tokens + self.output * output_tokens) / 1e6


def list_price(judge: object) -> Price | None:
    """Return the list price of a judge, or of what a judge's name names; None where none is known.

    A judge's provider is known by its address, never by the model's name alone: others serve the same models.

    Example:
        >>> list_price("gpt-5-mini@http://127.0.0.1:8080/v1") is None
        True
    """
    provider, model = _named(judge) if isinstance(judge, str) else _made(judge)
    file = _file() if provider else {}
    costs = file["prices"].get(f"{provider}/{model}") if file else None
    if costs is None:
        return None
    return Price(costs[0], costs[1], f"at list price in USD, {file['source']}, {file['date']}")


def _named(name: str) -> tuple[str, str]:
    if name.startswith("langchain:"):
        _, provider, model = (*name.split(":", 2), "")[:3]
        return _LANGCHAIN.get(provider, provider if provider in HOSTS.values() else ""), model
    if name.startswith("openai:"):
        return _provider(os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com"), name.removeprefix("openai:")
    model, _, url = name.partition("@http")
    return _provider(f"http{url}"), model


def _made(judge: object) -> tuple[str, str]:
    if not type(judge).__module__.startswith("ragstone.clients"):
        return "", ""
    of_server: Any = judge
    return _provider(of_server.identity["base_url"]), of_server.model


def _provider(url: str) -> str:
    return HOSTS.get(urlsplit(url).hostname or "", "")


@cache
def _file() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(PRICES.read_text("utf-8"))
    return made
