"""Which server is asked, with which key, and what it answers: JSON objects, with nothing taken for granted."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from ragstone.errors import RagstoneError, without_keys
from ragstone.judging.reply import BadReply, no_duplicates
from ragstone.plain import as_dict

OPENAI_URL = "https://api.openai.com/v1"
# The openai package insists on a key; servers without authentication ignore it.
NO_KEY = "none"
_NOT_OF_A_KEY = r"[^ -~]|[\"'`]|^ | $"
_NOT_OF_A_HEADER = r"[^\n -~]"
# The first is sent to every server, the others to OpenAI's.
_SENT_ALONG = ("OPENAI_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")
_NOT_OF_AN_ADDRESS = r"[^\w!#-&(-/:;=?@\[\]~]"


@dataclass(frozen=True, slots=True)
class Access:
    """A server's address and the key that is sent to it."""

    # The API's root, such as "http://127.0.0.1:8080/v1".
    url: str
    # The bearer token; `NO_KEY` where there is none.
    key: str = field(repr=False)
    # Whether OpenAI's environment variables (organisation, project) are meant for this server.
    ambient: bool

    @property
    def shown(self) -> str:
        """The address for messages and logs: without user name, password and query."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, and the password in the address, where there are any."""
        return tuple([secret for secret in (self.key, urlsplit(self.url).password) if secret and secret != NO_KEY])

    def redact(self, text: str) -> str:
        """A text without keys."""
        return without_keys(text, self.secrets)


def resolve(base_url: str | None, api_key: str | None, environ: Mapping[str, str]) -> Access:
    """The server to ask and the key to send.

    The key in OPENAI_API_KEY is OpenAI's: it goes to OpenAI, or to the server in OPENAI_BASE_URL (whoever
    sets one sets both), but never to another `base_url` that was given in code.

    Raises:
        ValueError: `base_url` is no http(s) address, or what is sent has a character that cannot be sent.
        MissingKeyError: The server is OpenAI's and there is no key.
    """
    url = check_url(base_url or environ.get("OPENAI_BASE_URL") or OPENAI_URL)
    ours = _is_openai(url)
    ambient = base_url is None or ours
    key = api_key or (environ.get("OPENAI_API_KEY") if ambient else None)
    if not key and ours:
        raise MissingKeyError("no API key for OpenAI: set OPENAI_API_KEY or pass api_key or base_url")
    _check_characters("api_key" if api_key else "OPENAI_API_KEY", key or "", _NOT_OF_A_KEY)
    for name in _SENT_ALONG[: None if ambient else 1]:
        _check_characters(name, environ.get(name, ""), _NOT_OF_A_HEADER)
    return Access(url, key or NO_KEY, ambient)


def _check_characters(name: str, text: str, wrong: str) -> None:
    """Refuse a text with a character that it cannot have, without showing more of it."""
    if found := re.search(wrong, text):
        character = unicodedata.name(found[0], f"U+{ord(found[0]):04X}")
        raise ValueError(f"{name}: character {found.start() + 1} of {len(text)} is {character}; copy it anew")


def check_url(url: str) -> str:
    """Return `url` if it is an http(s) address with a host; else it is a ValueError."""
    _check_characters("base_url", url, _NOT_OF_AN_ADDRESS)
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # The brackets do not match, or the port is no number.
        is_address = False
    if not is_address:
        raise ValueError(f"base_url must look like http://127.0.0.1:8080/v1, not {url[:100]!r}")
    return url


def with_path(url: str) -> str:
    """Return `url`, with the customary /v1 if it has no path."""
    parts = urlsplit(check_url(url))
    return urlunsplit(parts._replace(path="/v1")) if parts.path in ("", "/") else url


def _is_openai(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "https" and (host == "api.openai.com" or host.endswith(".api.openai.com"))


class MissingKeyError(RagstoneError, ValueError):
    """There is no key for OpenAI; the message says where one may come from in Python."""


class AnswerError(RagstoneError, RuntimeError):
    """The server answered "200 OK" without an answer; the message says who, and with what text."""


def read_json(content: bytes, server: Access, *, strict: bool = False) -> dict[str, object]:
    """Return the JSON object that is the body of a server's answer. If `strict`, no key stands twice in an object.

    Raises:
        AnswerError: It is not UTF-8 (or another Unicode form that JSON allows), not JSON, or no object.
    """
    excerpt = repr(content[:80].decode("utf-8", "backslashreplace")) if content.strip() else "empty"
    start = server.redact(excerpt)
    try:
        value = json.loads(content, object_pairs_hook=no_duplicates if strict else None)
    except BadReply as bad:
        raise AnswerError(f"{server.shown} answered with JSON in which {server.redact(str(bad))}") from None
    except (ValueError, RecursionError):
        raise AnswerError(
            f"{server.shown} did not answer with JSON ({start}):"
            " check that the address is an OpenAI-compatible API, which usually ends in /v1"
        ) from None
    if not isinstance(value, dict):
        raise AnswerError(f"{server.shown} answered with JSON that is not an object ({start})")
    return cast("dict[str, object]", value)


def missing(body: dict[str, object], field: str, server: Access) -> AnswerError:
    """Return the error for an answer that lacks its main field, with the reason if the answer has one."""
    error = body.get("error")
    detail = as_dict(error).get("message") or error or body.get("message") or body.get("detail")
    reason = (
        f": {server.redact(str(detail))[:300]}" if detail else f" (it has {', '.join(list(body)[:8]) or 'nothing'})"
    )
    return AnswerError(f"{server.shown} answered without {field!r}{reason}")
