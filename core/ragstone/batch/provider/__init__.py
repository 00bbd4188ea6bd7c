"""A run through a provider's batch endpoint: files of requests in, answers within a day, at half the price."""

from ragstone.batch.provider.batch import ProviderBatch
from ragstone.batch.provider.rounds import EmbedderError
from ragstone.batch.provider.state import BatchState, FolderError

__all__ = ["BatchState", "EmbedderError", "FolderError", "ProviderBatch"]
