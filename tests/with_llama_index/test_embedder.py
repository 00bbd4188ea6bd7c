"""LlamaIndexEmbedder: one batch, the same rows from both halves, and where it runs."""

import asyncio
import threading

import numpy as np
import pytest
from llama_index.core import MockEmbedding, Settings
from llama_index.core.storage.kvstore import SimpleKVStore

from ragstone.testing import EmbedderContract
from ragstone_llama_index import LlamaIndexEmbedder

from .models import Placing, PlacingSync

TEXTS = ["Who wrote it?", "Who wrote Emma?", "Was it Austen?", "When?"]


class TestPlacing(EmbedderContract):
    def embedder(self):
        return LlamaIndexEmbedder(Placing())


def embed(embedder, texts):
    return embedder.embed(texts)


def aembed(embedder, texts):
    return asyncio.run(embedder.aembed(texts))


HALVES = pytest.mark.parametrize("place", [embed, aembed])


@HALVES
def test_all_texts_in_one_batch_as_texts_and_the_apps_cache_gets_nothing(place):
    cache = SimpleKVStore()
    embed_model = Placing(embeddings_cache=cache)
    embedder = LlamaIndexEmbedder(embed_model)
    rows = place(embedder, TEXTS)
    assert (rows.shape, rows.dtype) == ((4, 8), np.float32)
    assert [texts for _, texts in embed_model.batches] == [TEXTS]
    assert cache.get_all(collection="embeddings") == {}
    assert embed_model.embeddings_cache is cache
    assert place(embedder, []).shape == (0, 0)
    assert repr(embedder) == "LlamaIndexEmbedder('placing')"


def test_each_half_is_the_models_own():
    embed_model = Placing()
    embedder = LlamaIndexEmbedder(embed_model)
    embedder.embed(["a"])
    asyncio.run(embedder.aembed(["a"]))
    asyncio.run(embedder.aembed(["a"]))  # a second loop
    assert [half for half, _ in embed_model.batches] == ["sync", "async", "sync"]


async def test_a_sync_only_model_is_called_from_threads_side_by_side():
    together = threading.Barrier(3, timeout=30)

    class Meeting(PlacingSync):
        def _get_text_embeddings(self, texts):
            together.wait()
            return super()._get_text_embeddings(texts)

    embedder = LlamaIndexEmbedder(Meeting())
    assert [rows.shape for rows in await asyncio.gather(*(embedder.aembed(["a", "b"]) for _ in range(3)))] == [
        (2, 8)
    ] * 3


@HALVES
def test_settings_are_looked_up_at_each_call(place):
    embedder = LlamaIndexEmbedder()
    assert embedder.model == "Settings.embed_model"
    for dim in (2, 3):
        Settings.embed_model = MockEmbedding(embed_dim=dim)
        assert place(embedder, ["a"]).shape == (1, dim)
    assert embedder.model == "MockEmbedding"


@HALVES
def test_no_model_anywhere_is_said_with_what_to_set(place, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llama_index.embeddings.openai", None)
    with pytest.raises(ValueError, match=r"^embed_model: none was given, .* set llama_index\.core\.Settings\.embed"):
        place(LlamaIndexEmbedder(), ["a"])


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="embed_model: str is no LlamaIndex embedding model"):
        LlamaIndexEmbedder("text-embedding-3-small")
