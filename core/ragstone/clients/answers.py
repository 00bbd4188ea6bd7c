"""Reading what a server answered: JSON objects, embeddings and names of models, with nothing taken for granted."""

import json
from typing import TYPE_CHECKING, cast

from ragstone.clients.access import Access
from ragstone.plain import as_dict, as_list

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class AnswerError(RuntimeError):
    """The server answered "200 OK" with something that is not an answer; the message says what and who."""


def read_json(content: bytes, server: Access) -> dict[str, object]:
    """Return the JSON object that is the body of an answer.

    Args:
        content: The body.
        server: Who answered, for the message.

    Raises:
        AnswerError: It is not UTF-8 (or another Unicode form that JSON allows), not JSON, or no object.

    Example:
        >>> read_json(b'{"a": 1}', Access("http://127.0.0.1/v1", "none", ambient=False))
        {'a': 1}
    """
    try:
        value = json.loads(content)
    except UnicodeDecodeError:
        raise AnswerError(
            f"{server.shown} answered with bytes that are not UTF-8 ({server.redact(_excerpt(content))})"
        ) from None
    except (ValueError, RecursionError):
        raise AnswerError(
            f"{server.shown} answered with something that is not JSON ({server.redact(_excerpt(content))}):"
            " is it the root of an OpenAI-compatible API, which usually ends in /v1?"
        ) from None
    if not isinstance(value, dict):
        raise AnswerError(f"{server.shown} answered with JSON that is no object ({server.redact(_excerpt(content))})")
    return cast("dict[str, object]", value)


def missing(body: dict[str, object], field: str, server: Access) -> AnswerError:
    """Return the error for an answer that lacks its main field, with the reason if the answer has one."""
    error = body.get("error")
    detail = as_dict(error).get("message") or error or body.get("message") or body.get("detail")
    reason = (
        f": {server.redact(str(detail))[:300]}" if detail else f" (it has {', '.join(list(body)[:8]) or 'nothing'})"
    )
    return AnswerError(f"{server.shown} answered without {field!r}{reason}")


def read_vectors(content: bytes, count: int, server: Access) -> "NDArray[np.float32]":
    """Return one row per text in the texts' order, shape (count, dim).

    Rows are put in the order of their `index`, or taken as they came from a server that gives none.

    Raises:
        AnswerError: There are not exactly `count` rows, one for each text, of the same length and finite.

    Example:
        >>> body = b'{"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}'
        >>> read_vectors(body, 2, Access("http://127.0.0.1/v1", "none", ambient=False)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    import numpy as np

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


def _excerpt(content: bytes) -> str:
    """Return the start of a body for a message."""
    return repr(content[:80].decode("utf-8", "backslashreplace")) if content.strip() else "empty"
