"""What a judge raises becomes an outcome, with its reason and what was spent, and without keys; what is no failure passes."""

import itertools
import json
import logging
import re
from urllib.parse import quote_plus

import pytest
from pydantic import BaseModel, SecretStr

from ragstone import ContextRelevancy, Monitor, Sample, evaluate
from ragstone.errors import describe, without_keys
from ragstone.held_keys import secrets_in
from ragstone.live import CallableSink, SQLiteSink
from ragstone.testing import FakeLLM

from ..support.keys import ERRORS, KEYS, OWN, leaked  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252

STAYS = [
    "max_tokens=4096 is more than 2048",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens",
    "No API key: set OPENAI_API_KEY",
    "Unknown key: response_relevancy_v2",
    "key for project proj_abcdef12345678 lacks scope model.request",
    "request id: req_011CSHoEeqs5C35K2UUqR7Fy",
    "the secret of successfulness",
    "no such file: /tmp/secrets/here.txt",
    "passwords must differ",
    'WWW-Authenticate: Basic realm="judges"',
    "Authorization: required",
    "credentials: default",
    "bad cookie: expired",
    "http://judge:8080/v1/of/me@example.org refused",
    "pass api_key=..., or base_url=...",
    'api_key="..."',
]
# A text, and what must not stand in what becomes of it.
HIDDEN = [
    (r"key \"abcd1234efgh\" invalid", "abcd1234efgh"),
    (r"{\"api_key\": \"abcd1234efgh\"}", "abcd1234efgh"),
    (r"{\\\"api_key\\\": \\\"abcdefgh\\\"}", "abcdefgh"),
    (r"{\"password\": \"hunter two\", \"user\": \"me\"}", "two"),
    (r"{\"Authorization\": \"Bearer abcdefgh1\"}", "abcdefgh1"),
    ("GET /v1?subscription-key=deadbeefdeadbeef refused", "deadbeef"),
    ("aws_secret_access_key wJalrXUtnFEMI/K7MDENG", "K7MDENG"),
    ("API key abcd****5678", "5678"),
    ("key you sent: abcd1234efgh5678", "abcd1234efgh5678"),
    ("key -> abcd1234efgh", "abcd1234efgh"),
    ("key\uff1aabcd1234efgh", "abcd1234efgh"),
    ("key=%22abcd1234efgh%22", "abcd1234efgh"),
    ("key abcd%2Fefgh1234ijkl", "1234ijkl"),
    ("key: Authorization abcd1234efgh5678", "abcd1234efgh5678"),
    ("postgresql://me:pa/ss@db/x", "pa/ss"),
    ("https://me:p1/pa@ss@db/x refused", "ss@"),
    ("password='p@ss; w0rd' refused", "w0rd"),
    ('password="it\\"s, w0rd" refused', "w0rd"),
    ("password='hunter two", "two"),
    ("api_key=EMPTYish", "EMPTYish"),
    ("api_key=...abcd1234", "abcd1234"),
    ("client_secret=hunter", "hunter"),
    ("Authorization: bearer: abcd1234", "abcd1234"),
    ('{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEow' + "x" * 400 + '"}', "MIIEow"),
]


def test_an_error_whose_text_cannot_be_had():
    class NoWords(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError

    assert describe(NoWords()) == "NoWords: (it cannot say what it is: RuntimeError)"


def test_a_key_is_hidden_and_the_rest_stays():
    for key, (start, end) in itertools.product(KEYS, [("before ", " after"), ("\n", "\n"), ("('", "',)")]):
        hidden = without_keys(f"{start}{ERRORS[key]}{end}", (OWN,))
        assert leaked(hidden) == []
        assert "[hidden]" in hidden
        assert hidden.startswith(start)


def test_sentences_about_keys_stay():
    for text in STAYS:
        assert without_keys(text, ("EMPTY", "none", "key", "tokens")) == text  # what servers without keys are given


@pytest.mark.parametrize(("text", "secret"), HIDDEN, ids=[f"{i}" for i in range(len(HIDDEN))])
def test_a_secret_is_hidden_in_escapes_and_between_words(text, secret):
    hidden = without_keys(text)
    assert secret not in hidden
    assert "[hidden]" in hidden
    assert without_keys(hidden) == hidden  # a sink hides what the judge's error hid


def test_what_follows_a_hidden_value_stays():
    assert without_keys("Password=x;Database=y;User Id=me") == "Password=[hidden];Database=y;User Id=me"
    assert without_keys(r"{\"api_key\": \"abc\", \"n\": 1}") == r"{\"api_key\": \"[hidden]\", \"n\": 1}"
    assert without_keys("postgresql://me:pa/ss@db/x is down") == "postgresql://me:[hidden]@db/x is down"


@pytest.mark.parametrize(
    "written",
    [
        str,
        quote_plus,
        lambda key: re.sub("%..", lambda match: match[0].lower(), quote_plus(key)),
        json.dumps,
        repr,
        lambda key: repr(f"{key}'"),
        lambda key: json.dumps(json.dumps(key)),
        lambda key: repr(json.dumps(key)),
    ],
    ids=["raw", "encoded", "encoded-lower", "json", "repr", "repr-both-quotes", "json-in-json", "json-in-repr"],
)
@pytest.mark.parametrize("key", ['quo"te\\key12', 'it\'s "k\u00e9y"/12', "Corp7-internal"])
def test_a_known_key_is_hidden_however_it_is_written(written, key):
    bare = written(key).strip("\"'\\")
    hidden = without_keys(f"before {written(key)} after", (key[:9], key))
    assert bare not in hidden
    assert re.fullmatch(r"""before [\\"']*\[hidden\][\\"']* after""", hidden)


# With a pattern that looks back and forth, each of these takes minutes.
@pytest.mark.parametrize(
    "text",
    [
        "://" * 30_000,
        "eyJabcdefghi-" * 8_000,
        "-----BEGIN PRIVATE KEY-----" * 3_000,
        "key='" * 20_000,
        "keys provided is " * 6_000,
        "token: " + "a-" * 50_000,
        "key-" * 25_000,
        "password=" + "\\" * 50_000,
        'secret"' * 15_000,
        "http://a:b" * 10_000,
    ],
    ids=lambda text: text[:8],
)
def test_long_texts_come_to_an_end(text):
    assert len(without_keys(text)) <= len(text) * 3


def test_a_key_that_is_cut_off_with_the_text_is_not_shown():
    text = "sk-abcdefghijk " * 125 + "x" * 118 + " sk-cutoffhere"
    assert "sk-" not in describe(ValueError(text), most=2_000)


def test_the_keys_that_a_model_object_holds():
    class Inner(BaseModel):
        openai_api_key: SecretStr
        default_headers: dict[str, str]
        input_key: str = "question"

    class Outer(BaseModel):
        bound: Inner
        others: list[Inner] = []

    inner = Inner(openai_api_key="first", default_headers={"Authorization": "Bearer second", "host": "example.org"})
    outer = Outer(bound=inner)
    outer.others.append(inner.model_copy(update={"openai_api_key": SecretStr("third")}))
    assert set(secrets_in(outer)) == {"first", "second", "third"}
    headers = {
        "x-api-key": "correcthorsebattery",
        "X-Corp-Pass": "Bearer pass-0123",
        "accept": "application/json",
        "content-type": "text/plain; charset=utf-8",
        "cache-control": "no-cache",
        "x-short": "abc1",
    }
    inner.default_headers.clear()
    inner.default_headers.update(headers)
    assert set(secrets_in(inner)) == {"first", "correcthorsebattery", "pass-0123"}
    assert secrets_in(object()) == ()


def failing(request):
    return ConnectionError(next(text for i, text in enumerate(ERRORS.values()) if f"Question {i}?" in request.user))


ROWS = [{"user_input": f"Question {i}?", "contexts": ["One. Two."]} for i in range(len(KEYS))]


def test_no_key_is_in_anything_that_a_run_or_a_monitor_writes(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "ragstone")
    judge = FakeLLM(failing)
    judge.secrets = (OWN,)
    metric = ContextRelevancy(llm=judge)
    report = evaluate(ROWS, [metric], journal=tmp_path / "journal.db")
    report.to_json(tmp_path / "report.json")
    report.save(tmp_path / "report.html")
    with (tmp_path / "results.jsonl").open("w") as lines:
        lines.writelines(json.dumps(result.outcome.model_dump()) + "\n" for result in report.results())

    def refuses(records):
        raise OSError(next(texts))

    texts = itertools.cycle([text for key, text in ERRORS.items() if key != OWN])  # a sink does not know the judge's
    sinks = [SQLiteSink(tmp_path / "live.db"), CallableSink(refuses)]
    monitor = Monitor([metric], sinks=sinks, store_text=True)
    for row in ROWS:
        monitor.submit(Sample(user_input=row["user_input"], retrieved_contexts=row["contexts"]))
    soon(lambda: sum(sink.written for sink in monitor.stats().sinks.values()) == len(KEYS))
    soon(lambda: any(sink.failures for sink in monitor.stats().sinks.values()))
    stats = monitor.stats()
    monitor.close(0)
    written = {path.name: path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()}
    assert {"journal.db", "report.html", "live.db"} <= set(written)
    for name, text in [*written.items(), ("log", caplog.text), ("stats", str(stats)), ("report", str(report))]:
        assert leaked(text) == [], name
    for name in ("report.json", "results.jsonl", "live.db"):
        assert "[hidden]" in written[name], name
    assert "refuses: OSError" in caplog.text
