"""What of addresses and settings may be shown, stored and compared: nothing that could be a key."""

import json
import re
from hashlib import sha256
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ragstone.plain import is_list, is_mapping, is_set

# Wider than what an error's text is cleaned of: who is in doubt leaves a setting out rather than keep a key.
_SECRET_NAME = re.compile(
    r"key(?!word)|token(?!iz)|secret|passw|auth(?!ors?\b)|credential|cookie|bearer|signature|^sig$|^pwd$|^proxies$|proxy$",
    re.IGNORECASE,
)
_TEXT_TOKEN = re.compile(r"(bos|eos|pad|unk|sep|stop|think\w*)_token", re.IGNORECASE)


def public_url(url: str) -> str:
    """Return an address without password and parameters that are keys; the user name is a digest, as it may be a key.

    Example:
        >>> public_url("https://me:pw@judge.test:8443/v1?api-version=2&key=abc")
        'https://2744ccd10c7533bd@judge.test:8443/v1?api-version=2'
    """
    try:
        parts = urlsplit(url)
        query = [(name, value) for name, value in parse_qsl(parts.query) if not is_secret(name, value)]
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    user = f"{sha256(parts.username.encode()).hexdigest()[:16]}@" if parts.username else ""
    return urlunsplit((parts.scheme, user + host, parts.path, urlencode(query), ""))


def request_digest(fields: object) -> str:
    """Return a digest of further fields of a request."""
    return sha256(json.dumps(fields, sort_keys=True, default=repr).encode()).hexdigest()


def is_secret(name: str, value: object) -> bool:
    """Whether a name is of a key, and the value can be one: numbers such as `max_tokens` cannot."""
    if "secret" in type(value).__name__.lower():
        return True
    inside = value.values() if is_mapping(value) else value if is_list(value) or is_set(value) else (value,)
    if all(item is None or isinstance(item, (bool, int, float)) for item in inside):
        return False
    return _SECRET_NAME.search(name) is not None and not _TEXT_TOKEN.fullmatch(name)
