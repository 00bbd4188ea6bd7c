"""Reading what a server answered: plain JSON values, with nothing taken for granted."""

import json
from typing import cast

from ragstone.clients.access import Access
from ragstone.judging.values import as_dict


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
            f"{server.shown} answered with bytes that are not UTF-8 ({server.redact(excerpt(content))})"
        ) from None
    except (ValueError, RecursionError):
        raise AnswerError(
            f"{server.shown} answered with something that is not JSON ({server.redact(excerpt(content))}):"
            " is it the root of an OpenAI-compatible API, which usually ends in /v1?"
        ) from None
    if not isinstance(value, dict):
        raise AnswerError(f"{server.shown} answered with JSON that is no object ({server.redact(excerpt(content))})")
    return cast("dict[str, object]", value)


def missing(body: dict[str, object], field: str, server: Access) -> AnswerError:
    """Return the error for an answer that lacks its main field, with the reason if the answer has one."""
    error = body.get("error")
    detail = as_dict(error).get("message") or error or body.get("message") or body.get("detail")
    said = f": {server.redact(str(detail))[:300]}" if detail else f" (it has {', '.join(list(body)[:8]) or 'nothing'})"
    return AnswerError(f"{server.shown} answered without {field!r}{said}")


def excerpt(content: bytes) -> str:
    """Return the start of a body for a message.

    Example:
        >>> excerpt(b"")
        'empty'
    """
    return repr(content[:80].decode("utf-8", "backslashreplace")) if content.strip() else "empty"
