"""A real small judge and embedder in this process: no key, no server, no compiler.

Needs the extra `ragstone[local]` and the model files that `ragstone pull` (or `pull()`) fetches once.
"""

from ragstone.local.files import PullError, cache_folder, pull
from ragstone.local.models import LocalEmbedder, LocalLLM


def make_judge(path: str = "") -> LocalLLM:
    """Make the judge of the name "local" or "local:PATH"."""
    return LocalLLM(path or None)


def make_embedder(path: str = "") -> LocalEmbedder:
    """Make the embedder of the name "local" or "local:PATH"."""
    return LocalEmbedder(path or None)


__all__ = [
    "LocalEmbedder",
    "LocalLLM",
    "PullError",
    "cache_folder",
    "make_embedder",
    "make_judge",
    "pull",
]
