"""The answer of an embeddings endpoint as an array, and of a models endpoint as names: pure functions."""

import numpy as np
from numpy.typing import NDArray

from ragstone.clients.access import Access
from ragstone.clients.answer import AnswerError, missing, read_json
from ragstone.judging.values import as_dict, as_list


def read_vectors(content: bytes, count: int, server: Access) -> NDArray[np.float32]:
    """Return one row per text in the texts' order, shape (count, dim).

    Rows are put in the order of their `index`, or taken as they came from a server that gives none.

    Raises:
        AnswerError: There are not exactly `count` rows, one for each text, of the same length and finite.

    Example:
        >>> body = b'{"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}'
        >>> read_vectors(body, 2, Access("http://127.0.0.1/v1", "none", ambient=False)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    body = read_json(content, server)
    if not isinstance(body.get("data"), list):
        raise missing(body, "data", server)
    rows = [as_dict(row) for row in as_list(body["data"])]
    if len(rows) != count:
        raise AnswerError(f"{server.shown} answered with {len(rows)} embeddings for {count} texts")
    if any("index" in row for row in rows):
        placed = {index: row for row in rows if isinstance(index := row.get("index"), int)}
        if set(placed) != set(range(count)):
            raise AnswerError(f"{server.shown} answered with embeddings that are not numbered 0 to {count - 1}")
        rows = [placed[index] for index in range(count)]
    try:
        vectors = np.asarray([row.get("embedding") for row in rows], dtype=np.float32)
    except (TypeError, ValueError, OverflowError):  # text, null, rows of different lengths
        vectors = np.empty(0, dtype=np.float32)
    if vectors.ndim != 2 or vectors.size == 0 or not np.isfinite(vectors).all():
        raise AnswerError(f"{server.shown} answered with embeddings that are not lists of numbers of one length")
    return vectors


def read_models(content: bytes, server: Access) -> tuple[str, ...]:
    """Return the names of a server's models in its order.

    Raises:
        AnswerError: The body is not a list of models.

    Example:
        >>> read_models(b'{"data": [{"id": "qwen3"}]}', Access("http://127.0.0.1/v1", "none", ambient=False))
        ('qwen3',)
    """
    body = read_json(content, server)
    if not isinstance(body.get("data"), list):
        raise missing(body, "data", server)
    names = [as_dict(row).get("id") for row in as_list(body["data"])]
    return tuple(name for name in names if isinstance(name, str) and name)
