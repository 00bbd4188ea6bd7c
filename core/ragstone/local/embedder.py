"""A small sentence embedding model in this process."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.judge import BaseEmbedder
from ragstone.local.files import EMBEDDER_FILE, TOKENIZER_FILE, content_of, installed, load_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MAX_TOKENS = 256  # what all-MiniLM-L6-v2 was made for; the rest of a longer text is not read
_BATCH_TEXTS = 32
_BATCH_TOKENS = 512  # padded; more takes memory (texts x tokens^2) and time: long texts are slower together


class LocalEmbedder(BaseEmbedder):
    """The embedded embedder: all-MiniLM-L6-v2, 8-bit ONNX, 384 dimensions, English.

    A text's vector is the mean of its tokens' vectors (at most 256 tokens), divided by its length, so that the
    dot product of two rows is their cosine. The same text gets the same vector, in any company. About 350
    sentences a second on one core. The model is loaded by the first call; calls may run at once.

    Args:
        path: An ONNX export of a sentence-transformers model with mean pooling, with its `tokenizer.json`
            beside it; by default the files that `ragstone pull` fetched.
        threads: Threads that compute one batch.

    Attributes:
        model: "local:" and the model's name.

    Raises:
        ValueError: `threads` is less than 1.

    Example:
        >>> LocalEmbedder().embed(["A dog barks.", "A cat purrs."]).shape  # doctest: +SKIP
        (2, 384)
        >>> LocalEmbedder().model
        'local:all-minilm-l6-v2-int8'
    """

    _threads = 1  # on the async path more calls at once would only share the same cores

    def __init__(self, path: str | Path | None = None, threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads must be 1 or more, not {threads}")
        self._path = None if path is None else Path(path).expanduser()
        self._compute_threads = threads
        self.model = f"local:{Path(EMBEDDER_FILE.name if path is None else path).stem}"
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def identity(self) -> dict[str, object]:
        """What makes this embedder, for journals: model and tokenizer by their content."""
        path = self._path
        files = (EMBEDDER_FILE.path, TOKENIZER_FILE.path) if path is None else (path, path.with_name("tokenizer.json"))
        return {"class": "LocalEmbedder", "files": [content_of(file) for file in files]}

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one unit row per text, float32, shape (len(texts), 384).

        Raises:
            FileNotFoundError: The model files are not there; the message says how to get them.
            ImportError: The extra `ragstone[local]` is not installed.
        """
        import numpy as np

        session, tokenizer = self._load()
        rows = np.zeros((len(texts), session.get_outputs()[0].shape[-1]), dtype=np.float32)
        tokens = [tokenizer.encode(_clean(text)).ids for text in texts]
        names = [item.name for item in session.get_inputs()]
        order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))  # alike lengths: little padding
        for batch in _batches(order, [len(ids) for ids in tokens]):
            rows[batch] = _embed_batch(session.run, names, [tokens[i] for i in batch])
        return rows

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                onnx, vocabulary = self._files()
                tokenizer = load_extra("tokenizers").Tokenizer.from_file(str(vocabulary))
                tokenizer.no_padding()
                tokenizer.enable_truncation(_MAX_TOKENS)
                runtime = load_extra("onnxruntime")
                options = runtime.SessionOptions()
                options.intra_op_num_threads = self._compute_threads
                options.inter_op_num_threads = 1
                options.enable_mem_pattern = False  # a plan kept per shape of batch: memory that only grows
                session = runtime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
                self._loaded = session, tokenizer
            return self._loaded

    def _files(self) -> tuple[Path, Path]:
        if self._path is None:
            return installed(EMBEDDER_FILE), installed(TOKENIZER_FILE)
        files = self._path, self._path.with_name("tokenizer.json")
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(f"no such model file: {file}")
        return files


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates are not text to the tokenizer


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Cut `order`, sorted by length, into batches whose padded size is bounded."""
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) == _BATCH_TEXTS or (len(batch) + 1) * lengths[i] > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _embed_batch(run: Callable[..., Any], inputs: Sequence[str], tokens: list[list[int]]) -> "NDArray[np.float32]":
    import numpy as np

    ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, row_ids in enumerate(tokens):
        ids[row, : len(row_ids)] = row_ids
        mask[row, : len(row_ids)] = 1
    arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = run(None, {name: arrays[name] for name in inputs})[0]
    weights = mask[:, :, None].astype(np.float32)
    mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)  # the tokenizer's [CLS] keeps the sum above 0
    length = np.sqrt(np.square(mean).sum(axis=1, keepdims=True))
    rows: NDArray[np.float32] = mean / np.maximum(length, np.float32(1e-12))
    return rows
