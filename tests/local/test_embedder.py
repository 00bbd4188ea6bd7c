"""LocalEmbedder against stand-ins for onnxruntime and tokenizers: the arithmetic."""

import sys
import types

import numpy as np
import pytest

from ragstone.local import LocalEmbedder

DIM = 5


def hidden(token: int) -> np.ndarray:
    return np.random.default_rng(token).normal(size=DIM).astype(np.float32)


class Session:
    def __init__(self, path, options, providers):
        pass

    def get_inputs(self):
        return [types.SimpleNamespace(name=name) for name in ("input_ids", "attention_mask")]

    def get_outputs(self):
        return [types.SimpleNamespace(shape=["batch", "sequence", DIM])]

    def run(self, outputs, inputs):
        assert set(inputs) == {"input_ids", "attention_mask"}
        assert inputs["attention_mask"].all()
        return [np.stack([np.stack([hidden(token) for token in row]) for row in inputs["input_ids"]])]


class Tokenizer:
    limit = 10**9

    @classmethod
    def from_file(cls, path):
        return cls()

    def no_padding(self):
        pass

    def enable_truncation(self, limit):
        self.limit = limit

    def encode(self, text):
        text.encode()
        return types.SimpleNamespace(ids=[1, *(ord(c) for c in text)][: self.limit])


@pytest.fixture
def embedder(monkeypatch, tmp_path):
    runtime = types.ModuleType("onnxruntime")
    runtime.SessionOptions = types.SimpleNamespace
    runtime.InferenceSession = Session
    tokenizers = types.ModuleType("tokenizers")
    tokenizers.Tokenizer = Tokenizer
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setitem(sys.modules, "tokenizers", tokenizers)
    (tmp_path / "my-model.onnx").touch()
    (tmp_path / "tokenizer.json").touch()
    return LocalEmbedder(tmp_path / "my-model.onnx")


def expected(text):
    tokens = [1, *map(ord, text)][:256]
    mean = np.mean([hidden(token).astype(np.float64) for token in tokens], axis=0)
    return mean / np.linalg.norm(mean)


def test_mean_of_the_tokens_of_length_one(embedder):
    texts = ["long text here", "b", "x" * 300, "\ud800", "\0"]
    rows = embedder.embed(texts)
    assert rows.dtype == embedder.embed([]).dtype == np.float32
    assert embedder.embed([]).shape == (0, DIM)
    assert embedder.model == "local:my-model"
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    np.testing.assert_allclose(rows, [expected(text) for text in clean], atol=1e-5)


def test_missing_files(monkeypatch, tmp_path, embedder):
    monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=r"all-minilm-l6-v2-int8.onnx .*`ragstone pull`"):
        LocalEmbedder().embed(["a"])
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no such model file: .*tokenizer.json"):
        embedder.embed(["a"])


def test_missing_extra(monkeypatch, embedder):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r'pip install "ragstone\[local\]"'):
        embedder.embed(["a"])
