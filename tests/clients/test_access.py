"""Whose key goes where."""

import pytest

from ragstone.clients.access import NO_KEY, Access, resolve, with_path

OURS = {"OPENAI_API_KEY": "sk-env"}
GATEWAY = {"OPENAI_API_KEY": "sk-env", "OPENAI_BASE_URL": "https://gateway.test/v1"}


@pytest.mark.parametrize(
    ("base_url", "api_key", "environ", "url", "key", "ambient"),
    [
        (None, None, OURS, "https://api.openai.com/v1", "sk-env", True),
        (None, None, GATEWAY, "https://gateway.test/v1", "sk-env", True),
        (None, None, {"OPENAI_BASE_URL": "http://127.0.0.1/v1"}, "http://127.0.0.1/v1", NO_KEY, True),
        ("https://api.openai.com@evil.test/v1", None, OURS, "https://api.openai.com@evil.test/v1", NO_KEY, False),
        ("http://127.0.0.1:8080/v1", None, GATEWAY, "http://127.0.0.1:8080/v1", NO_KEY, False),
        ("http://127.0.0.1:8080/v1", "sk-mine", OURS, "http://127.0.0.1:8080/v1", "sk-mine", False),
    ],
)
def test_key_and_address(base_url, api_key, environ, url, key, ambient):
    assert resolve(base_url, api_key, environ) == Access(url, key, ambient)


def test_what_is_no_address_and_who_needs_a_key():
    for url in ("127.0.0.1:8080", "ftp://host/v1", "http://", "/v1"):
        with pytest.raises(ValueError, match="must look like http"):
            resolve(url, None, {})
    with pytest.raises(ValueError, match="set OPENAI_API_KEY or pass api_key"):
        resolve(None, None, {})


def test_the_customary_path_is_added_only_where_there_is_none():
    assert with_path("http://h:1/") == "http://h:1/v1"
    assert with_path("http://h:1/api/v3/") == "http://h:1/api/v3/"


def test_secrets_are_not_shown():
    access = Access("https://me:pass@h:1/v1?key=pass", "own-key-1", ambient=False)
    assert access.shown == "https://h:1/v1"
    assert "own-key-1" not in repr(access)
    assert access.redact("bad own-key-1.") == "bad [hidden]."
    assert Access("http://h", NO_KEY, ambient=False).redact("none of it") == "none of it"
