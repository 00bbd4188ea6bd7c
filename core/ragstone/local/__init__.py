"""A real small judge and embedder in this process: no key, no server, no compiler.

Needs the extra `ragstone[local]` and the model files that `ragstone pull` (or `pull()`) fetches once.
"""

from ragstone.local.files import ModelFile, PullError, cache_folder, model_files, pull
from ragstone.local.models import LocalEmbedder, LocalLLM

__all__ = [
    "LocalEmbedder",
    "LocalLLM",
    "ModelFile",
    "PullError",
    "cache_folder",
    "model_files",
    "pull",
]
