"""A run through a provider's batch endpoint: files of requests in, answers within a day, at half the price."""

from ragstone.batch.provider.batch import ProviderBatch
from ragstone.batch.provider.step import BatchState, EmbedderError, FolderError

__all__ = ["BatchState", "EmbedderError", "FolderError", "ProviderBatch"]
