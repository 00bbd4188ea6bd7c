"""A real small judge and embedder in this process: no key, no server, no compiler.

Needs the extra `ragstone[local]` and the model files that `ragstone pull` (or `pull()`) fetches once.
"""

from ragstone.local.files import PullError, cache_folder, pull
from ragstone.local.models import LocalEmbedder, LocalLLM


# The entry points "local" and "local:PATH" name these.
make_judge, make_embedder = LocalLLM, LocalEmbedder
__all__ = ["LocalEmbedder", "LocalLLM", "PullError", "cache_folder", "pull"]
