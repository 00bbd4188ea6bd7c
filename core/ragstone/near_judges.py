"""Judges that a name may mean which is none: a provider's, a model's, an address without its scheme."""

import difflib
import re
from collections.abc import Sequence

_PROVIDERS = {
    **dict.fromkeys(
        ("azure", "azure_openai", "azure-openai"),
        "openai:{} with OPENAI_BASE_URL=https://RESOURCE.openai.azure.com/openai/v1",
    ),
    **dict.fromkeys(("bedrock", "aws"), "langchain:bedrock_converse:{}"),
    **dict.fromkeys(("gemini", "google", "google_genai", "vertex_ai"), "langchain:google_genai:{}"),
    **dict.fromkeys(("llama.cpp", "llamacpp"), "http://127.0.0.1:8080/v1"),
    **{name: f"langchain:{name}:{{}}" for name in ("anthropic", "cohere", "groq", "mistralai")},
    "ollama": "{}@http://127.0.0.1:11434/v1",
    "openai": "openai:{}",
    "openrouter": "openai:{} with OPENAI_BASE_URL=https://openrouter.ai/api/v1",
    "together": "openai:{} with OPENAI_BASE_URL=https://api.together.ai/v1",
    "vllm": "http://127.0.0.1:8000/v1",
}
"""The forms of docs/providers.md by what people call a provider."""
_MODELS = {
    "bespoke-minicheck": "checker:{}@http://127.0.0.1:11434/v1 (Ollama)",
    "claude": "langchain:anthropic:{}",
    "gemini": "langchain:google_genai:{}",
    **dict.fromkeys(("deepseek", "gemma", "llama", "mistral", "phi", "qwen"), "{}@http://127.0.0.1:11434/v1 (Ollama)"),
}
"""How models are named that are not OpenAI's, by how their names begin."""


def near_judge(name: str, packages: Sequence[str]) -> str:
    """The names that may be meant by a provider's or a model's name alone."""
    if not name.strip() or "://" in name:
        return ""
    if difflib.get_close_matches(name.lower(), ["local"]):
        return ". Did you mean local?"
    if address := re.fullmatch(r"(.+@)?(?:https?:?/*)?([\w.-]+:\d+)(/.*)?", name):
        return f". Did you mean {address[1] or ''}http://{address[2]}/v1?"
    first, _, rest = re.sub("[:/]", "\n", name.partition("?")[0], count=1).partition("\n")
    if form := _PROVIDERS.get(first.strip().lower()):
        return f". Did you mean {form.format(rest.strip() or 'MODEL')}?"
    provider, colon, model = name.partition(":")
    elsewhere = next((form for start, form in _MODELS.items() if name.lower().startswith(start)), "")
    if elsewhere and "_" not in provider:
        return f". Did you mean {elsewhere.format(name)}?"
    if not colon:
        return f". Did you mean openai:{name}, if it is OpenAI's?"
    near = difflib.get_close_matches(provider.lower(), ["openai", *packages], n=1)
    if near or not model:
        return f". Did you mean {near[0]}:{model}?" if model else ""
    meant = [f"{package}:{name}" for package in packages]
    return f". Did you mean {' or '.join(meant)}?" if meant else ""
