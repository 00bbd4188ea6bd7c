"""Whose key goes where."""

import pytest

from ragstone.clients import OpenAICompatible, OpenAIDecisions
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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"api_key": "sk-SECRET1\u2026"}, "api_key: character 11 of 11 is HORIZONTAL ELLIPSIS; copy it anew"),
        ({"api_key": "\u201csk-SECRET1"}, "api_key: character 1 of 11 is LEFT DOUBLE QUOTATION MARK; "),
        ({"api_key": '"sk-SECRET1"'}, "api_key: character 1 of 12 is QUOTATION MARK; "),
        ({"api_key": "sk-SECRET1\n"}, r"api_key: character 11 of 11 is U\+000A; "),
        ({"api_key": " "}, "api_key: character 1 of 1 is SPACE; "),
        ({"OPENAI_API_KEY": "sk-SECRET1\u200b"}, "OPENAI_API_KEY: character 11 of 11 is ZERO WIDTH SPACE; "),
        ({"OPENAI_BASE_URL": "http://me:SECRET1@h\u200b/v1"}, "base_url: character 20 of 23 is ZERO WIDTH SPACE; "),
        ({"base_url": "http://me:SECRET1@h/v1\r"}, r"base_url: character 23 of 23 is U\+000D; "),
        ({"base_url": "\u201chttp://h/v1\u201d"}, "base_url: character 1 of 13 is LEFT DOUBLE QUOTATION MARK; "),
        ({"OPENAI_ORG_ID": "org-SECRET1\xa0"}, "OPENAI_ORG_ID: character 12 of 12 is NO-BREAK SPACE; "),
        (
            {"OPENAI_CUSTOM_HEADERS": "a: b\nc: SECRET1\u2013", "base_url": "http://h"},
            "CUSTOM_HEADERS: .* is EN DASH; ",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_by_its_place_and_not_shown(monkeypatch, given, said):
    environ = {"OPENAI_API_KEY": "sk-env", **given}
    arguments = {name: environ.pop(name) for name in ("base_url", "api_key") if name in given}
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    for client in (OpenAICompatible, OpenAIDecisions):
        with pytest.raises(ValueError, match=said) as caught:
            client("m", **arguments)
        assert "SECRET" not in str(caught.value)


def test_the_customary_path_is_added_only_where_there_is_none():
    assert with_path("http://h:1/") == "http://h:1/v1"
    assert with_path("http://h:1/api/v3/") == "http://h:1/api/v3/"


def test_secrets_are_not_shown():
    access = Access("https://me:pass@h:1/v1?key=pass", "own-key-1", ambient=False)
    assert access.shown == "https://h:1/v1"
    assert "own-key-1" not in repr(access)
    assert access.redact("bad own-key-1.") == "bad [hidden]."
    assert Access("http://h", NO_KEY, ambient=False).redact("none of it") == "none of it"
