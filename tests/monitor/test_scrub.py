"""What is taken out of error texts and outcomes before they are kept."""

import string
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone import Sample, Score, Unscored, Verdict
from ragstone.monitor.scrub import kept, scrubbed, without, words
from ragstone.outcome import Evidence

SECRETS = [
    "Authorization: Bearer {}",
    "Authorization: {}",
    "Authorization: Basic {}",
    "Authorization: ApiKey {}",
    "{{'Authorization': 'Bearer {}'}}",
    "headers=[(b'authorization', b'Bearer {}')]",
    "Headers({{'x-api-key': '{}', 'host': 'example.org'}})",
    "(b'api-key', b'{}')",
    "bearer   {}",
    '{{"api_key": "{}"}}',
    '{{"apiKey":"{}"}}',
    "api_key={}&model=x",
    "AZURE_OPENAI_API_KEY={}",
    "https://example.org/v1?key={}&alt=json",
    "https://example.org/v1?alt=json&access_token={}",
    "https://example.org/?sv=2020&sig={}",
    "https://user:{}@example.org/path",
    "postgresql+psycopg://me:{}@db.example.org:5432/x",
    "redis://:{}@localhost",
    "Server=x;Password={};Database=y",
    "password: '{}'",
    "client_secret = {}",
    "aws_secret_access_key={}",
    "AccountKey={};EndpointSuffix=core.windows.net",
    "refresh_token: {}",
    "Cookie: session={}; theme=dark",
    "Incorrect API key provided: {}. You can find yours at https://example.org.",
    "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
]
KEYS = [
    "sk-proj-abc123DEF456",
    "sk-ant-api03-abcDEF_123-xyz",
    "sk-abcd************wxyz",
    "xai-abcdefgh1234",
    "gsk_abcdefgh12345678",
    "hf_abcdefghijklmnop",
    "ghp_abcdefghijklmnop0123",
    "github_pat_11ABCDEFG0_abcdefgh",
    "glpat-abcdefgh12345",
    "xoxb-1234567890-abcdefgh",
    "nvapi-abcdefgh-12345",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
]
HARMLESS = [
    "ConnectionError: refused",
    "max_tokens=4096 is more than 2048",
    "the secret of success",
    "Rate limit reached for gpt-5: Limit 10000, Used 9999, Requested 120. Please try again in 1.2s.",
    "risk-management-framework and task-specific-adapter",
    "http://localhost:8000/v1/chat/completions",
    "status code=404",
    "no such file: /tmp/secrets/here.txt",
    "passwords must differ",
]


def test_secrets_by_their_surroundings() -> None:
    for form in SECRETS:
        text = scrubbed(f"before {form.format('Zq9-x_7TuVw')} after")
        assert text.startswith("before "), form
        assert ("Zq9" in text, "TuVw" in text, "[hidden]" in text) == (False, False, True), form


def test_keys_by_their_form() -> None:
    for key, around in zip(KEYS, cycle(["{}", "key {} was refused", "('{}',)", "x={}", "\n{}\n", "at:{}."])):
        text = scrubbed(around.format(key))
        assert (key[6:] in text, "[hidden]" in text) == (False, True), key


def test_other_texts_stay() -> None:
    assert [scrubbed(text) for text in HARMLESS] == HARMLESS


@given(st.text(alphabet=string.ascii_letters + string.digits, min_size=4, max_size=40))
def test_any_key_in_a_header(key: str) -> None:
    assert key not in scrubbed(f"401 for Authorization: Bearer {key}").removeprefix("401 for Authorization: Bearer ")


@given(st.text(max_size=200))
def test_any_text_can_be_scrubbed(text: str) -> None:
    assert scrubbed(scrubbed(text)).count("[hidden]") >= scrubbed(text).count("[hidden]")
    assert isinstance(words(ValueError(text), 50), str)
    assert len(words(ValueError(text), 50)) <= len("ValueError: ") + 50


# Each of these took minutes with a pattern that looked back and forth.
@pytest.mark.parametrize(
    "text",
    [
        "api-" * 25_000,
        "authorization" + " " * 50_000,
        "://" * 30_000,
        "-----BEGIN PRIVATE KEY-----" * 3_000,
        "api_key" + ":" * 50_000,
    ],
    ids=lambda text: text[:8],
)
def test_long_texts_come_to_an_end(text: str) -> None:
    assert len(scrubbed(text)) <= len(text) * 3


def test_of_a_very_long_error_the_beginning_is_looked_at() -> None:
    assert words(ValueError("x" * 10_000_000), 200) == f"ValueError: {'x' * 200}"


def test_an_error_whose_words_cannot_be_had() -> None:
    class NoWords(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    assert words(NoWords(), 100) == "NoWords: (it does not say what)"


QUOTED = "The green heron nests in trees near the water."


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        (QUOTED, "[text]"),
        (f"400: {QUOTED}!", "400: [text]!"),
        (f"{QUOTED[:30]}... was too long", "[text]... was too long"),
        (f"a {QUOTED[:24]} b", "a [text]b"),
        (f"a {QUOTED[:23]}", f"a {QUOTED[:23]}"),
        ("Who? Who nests?", "Who? [text]"),
    ],
)
def test_what_a_message_quotes(detail: str, expected: str) -> None:
    assert without(detail, [QUOTED, "Who nests?", "Who?", ""]) == expected


def test_what_is_kept_of_an_outcome() -> None:
    evidence = Evidence(field="retrieved_contexts", chunk=0, start=4, end=9, text="green")
    verdict = Verdict(id="1", kind="sentence", text=QUOTED, verdict="relevant", probability=0.5, evidence=(evidence,))
    score = Score(metric="m", value=0.5, reason=QUOTED, breakdown={"a": 1.0}, verdicts=(verdict,), version="1")
    sample = Sample(user_input="Where?", retrieved_contexts=[QUOTED])
    assert kept(score, sample, store_text=True) == score
    found = kept(score, sample, store_text=False)
    assert "green" not in found.model_dump_json()
    assert isinstance(found, Score)
    assert (found.value, found.breakdown, found.verdicts[0].verdict) == (0.5, {"a": 1.0}, "relevant")
    assert (found.verdicts[0].evidence[0].start, found.verdicts[0].evidence[0].end) == (4, 9)


@pytest.mark.parametrize("store_text", [True, False])
def test_what_is_kept_of_an_unscored_one(store_text: bool) -> None:
    sample = Sample(retrieved_contexts=[QUOTED])
    detail = f"ValueError: sk-abcdefghijkl cannot read {QUOTED}"
    error = Unscored(metric="m", reason="judge_error", detail=detail, version="1")
    found = kept(error, sample, store_text=store_text)
    assert found.detail == f"ValueError: [hidden] cannot read {QUOTED if store_text else '[text]'}"  # type: ignore[union-attr]
    unread = Unscored(metric="m", reason="judge_unparseable", detail="two objects: {'a': 'green'}", version="1")
    found = kept(unread, sample, store_text=store_text)
    assert ("green" in found.detail) == store_text  # type: ignore[union-attr]
