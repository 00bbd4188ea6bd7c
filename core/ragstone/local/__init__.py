"""A real small judge and embedder in this process: no key, no server, no compiler.

Needs the extra `ragstone[local]` and the model files that `ragstone pull` (or `pull()`) fetches once.
"""

from ragstone.local.embedder import LocalEmbedder
from ragstone.local.files import ModelFile, cache_folder, model_files
from ragstone.local.llm import LocalLLM
from ragstone.local.pull import PullError, pull

__all__ = [
    "LocalEmbedder",
    "LocalLLM",
    "ModelFile",
    "PullError",
    "cache_folder",
    "model_files",
    "pull",
]
