"""LlamaIndexEmbedder: one batch, the same rows from both halves, and where it runs."""

import asyncio
import sys

import numpy as np
import pytest
from llama_index.core import MockEmbedding, Settings
from llama_index.core.storage.kvstore import SimpleKVStore

from ragstone.testing import EmbedderContract
from ragstone_llama_index import LlamaIndexEmbedder

from .models import Placing

TEXTS = ["Who wrote it?", "Who wrote Emma?", "Was it Austen?", "When?"]


class TestPlacing(EmbedderContract):
    def embedder(self):
        return LlamaIndexEmbedder(Placing())


def aembed(embedder, texts):
    return asyncio.run(embedder.aembed(texts))


@pytest.mark.parametrize("place", [LlamaIndexEmbedder.embed, aembed])
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


def test_each_half_is_the_models_own_and_no_second_loop_awaits_it():
    embed_model = Placing()
    embedder = LlamaIndexEmbedder(embed_model)
    embedder.embed(["a"])
    for _ in range(2):
        aembed(embedder, ["a"])
    assert [half for half, _ in embed_model.batches] == ["sync", "async", "sync"]


def test_settings_are_looked_up_at_each_call_and_what_is_missing_is_said(monkeypatch):
    embedder = LlamaIndexEmbedder()
    for dim in (2, 3):
        Settings.embed_model = MockEmbedding(embed_dim=dim)
        assert embedder.embed(["a"]).shape == (1, dim)
    Settings._embed_model = None
    monkeypatch.setitem(sys.modules, "llama_index.embeddings.openai", None)
    with pytest.raises(ValueError, match=r"^embed_model: none was given, .* set llama_index\.core\.Settings\.embed"):
        embedder.embed(["a"])
    with pytest.raises(TypeError, match="embed_model: str is no LlamaIndex embedding model"):
        LlamaIndexEmbedder("text-embedding-3-small")
