"""What a judge raises becomes an outcome, with its reason and what was spent, and without keys; what is no failure passes."""

import itertools
import json
import logging

import pytest
from pydantic import BaseModel, SecretStr

from ragstone import ContextRelevancy, Monitor, Sample, evaluate
from ragstone.errors import describe, secrets_in, without_keys
from ragstone.sinks import CallableSink, JSONLSink, SQLiteSink
from ragstone.testing import FakeLLM

from ..support.keys import ERRORS, KEYS, OWN, leaked  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252

STAYS = [
    "max_tokens=4096 is more than 2048",
    "tokens: 128000000",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens",
    "Rate limit reached for gpt-5: Limit 10000, Used 9999, Requested 120. Please try again in 1.2s.",
    "No API key: set OPENAI_API_KEY",
    "Unknown key: response_relevancy_v2",
    "key for project proj_abcdef12345678 lacks scope model.request",
    "request id: req_011CSHoEeqs5C35K2UUqR7Fy",
    "Unexpected token < in JSON at position 1234567",
    "the secret of successfulness",
    "no such file: /tmp/secrets/here.txt",
    "passwords must differ",
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


def test_a_known_key_is_hidden_in_an_address_too():
    assert without_keys("GET /?k=a%2Fb%3Dlong-enough", ("a/b=long-enough",)) == "GET /?k=[hidden]"


# With a pattern that looks back and forth, each of these takes minutes.
@pytest.mark.parametrize(
    "text",
    [
        "api-" * 25_000,
        "authorization" + " " * 50_000,
        "://" * 30_000,
        "eyJabcdefghi-" * 8_000,
        "-----BEGIN PRIVATE KEY-----" * 3_000,
        "key='" * 20_000,
        "keys provided is " * 6_000,
        "token: " + "a-" * 50_000,
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
    assert secrets_in(object()) == ()


class KeyedLLM(FakeLLM):
    secrets = (OWN,)


def failing(request):
    return ConnectionError(next(text for i, text in enumerate(ERRORS.values()) if f"Question {i}?" in request.user))


ROWS = [{"user_input": f"Question {i}?", "contexts": ["One. Two."]} for i in range(len(KEYS))]


def test_no_key_is_in_anything_that_a_run_or_a_monitor_writes(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "ragstone")
    metric = ContextRelevancy(llm=KeyedLLM(failing))
    report = evaluate(ROWS, [metric], journal=tmp_path / "journal.db")
    report.to_json(tmp_path / "report.json")
    report.save(tmp_path / "report.html")
    with (tmp_path / "results.jsonl").open("w") as lines:
        lines.writelines(json.dumps(result.outcome.model_dump()) + "\n" for result in report.results())

    def refuses(records):
        raise OSError(next(texts))

    texts = itertools.cycle([text for key, text in ERRORS.items() if key != OWN])  # a sink does not know the judge's
    sinks = [SQLiteSink(tmp_path / "live.db"), JSONLSink(tmp_path / "live.jsonl"), CallableSink(refuses)]
    monitor = Monitor([metric], sinks=sinks, store_text=True)
    for row in ROWS:
        monitor.submit(Sample(user_input=row["user_input"], retrieved_contexts=row["contexts"]))
    soon(lambda: sum(sink.written for sink in monitor.stats().sinks.values()) == 2 * len(KEYS))
    soon(lambda: any(sink.failures for sink in monitor.stats().sinks.values()))
    stats = monitor.stats()
    monitor.close(0)
    written = {path.name: path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()}
    assert {"journal.db", "report.html", "live.db", "live.jsonl"} <= set(written)
    for name, text in [*written.items(), ("log", caplog.text), ("stats", str(stats)), ("report", str(report))]:
        assert leaked(text) == [], name
    for name in ("report.json", "results.jsonl", "live.db", "live.jsonl"):
        assert "[hidden]" in written[name], name
    assert "Traceback" in caplog.text
