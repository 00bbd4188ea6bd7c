"""What makes a judge: two of one name share no score, and no key gets into what tells them apart."""

import json

import pytest
from pydantic import BaseModel, SecretStr

from ragstone import BaseLLM, ContextRelevancy, LLMReply, evaluate
from ragstone.clients import OpenAICompatible
from ragstone.identity import judge_key, metric_key, settings_of
from ragstone.local import LocalEmbedder, LocalLLM

from ..support.openai_server import chat  # noqa: TID252 - under importlib mode tests are no package

URL = "http://127.0.0.1:8080/v1"
ROWS = [{"user_input": "Who wrote Emma?", "retrieved_contexts": ["Jane Austen wrote it. It rains."]}]


def test_two_judges_of_one_name_share_no_score(tmp_path, openai_server):
    def scored(server, **settings):
        with OpenAICompatible("m", base_url=server.url, **settings) as judge:
            report = evaluate(ROWS, [ContextRelevancy(llm=judge)], journal=tmp_path / "j.db")
        return [result.outcome.value for result in report.results()]

    def thinking(body):
        return chat(json.dumps({"ids": [1] if body.get("think") else []}))

    strict, mild = openai_server(thinking), openai_server(lambda body: chat('{"ids": [1, 2]}'))
    assert scored(strict) == [0.0]
    assert scored(mild) == [1.0]
    assert scored(strict, extra_body={"think": True}) == [0.5]
    asked = len(strict.bodies), len(mild.bodies)
    assert (scored(strict), scored(mild)) == ([0.0], [1.0])
    assert (len(strict.bodies), len(mild.bodies)) == asked


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ({"base_url": "http://127.0.0.1:8081/v1"}, False),
        ({"base_url": f"{URL}?api-version=2"}, False),
        ({"extra_body": {"a": {"top_k": 3}}}, False),
        ({"base_url": "http://me:password@127.0.0.1:8080/v1"}, False),
        ({"base_url": "http://:password@127.0.0.1:8080/v1?key=abc"}, True),
        ({"api_key": "another", "base_url": f"{URL}/", "timeout": 5.0, "max_concurrency": 2}, True),
    ],
)
def test_what_makes_an_openai_compatible_judge(settings, same):
    plain, other = OpenAICompatible("m", base_url=URL), OpenAICompatible("m", **{"base_url": URL, **settings})
    assert (judge_key(plain) == judge_key(other)) == same
    assert (metric_key(ContextRelevancy(llm=plain)) == metric_key(ContextRelevancy(llm=other))) == same


FIELDS = ["tags", "metadata", "profile", "cache", "authority", "key_style", "draft_token_model", "reasoning_tokens"]


@pytest.mark.parametrize("holder", ["extra_body", "model_kwargs", "additional_kwargs"])
def test_fields_of_a_request_count_whole_and_keys_do_not(holder):
    def identity(body):
        if holder == "extra_body":
            return OpenAICompatible("m", base_url=URL, extra_body=body).identity
        return settings_of({holder: body})

    bodies = [{name: text} for name in FIELDS for text in ("a", "b")]
    bodies += [{"provider": {"name": text}} for text in "ab"] + [{"lora": [{"name": text}]} for text in "ab"]
    assert len({json.dumps(identity(body)) for body in bodies}) == len(bodies)
    one, other = ({"a": 1, "api_key": key, "b": [{"Authorization": key}]} for key in ("s3cret", "another"))
    assert identity(one) == identity(other) != identity({"a": 1})
    assert "s3cret" not in json.dumps(identity({"x_key": "s3cret"}))


def test_an_embedded_model_counts_by_its_content(tmp_path):
    """Another training of the same size and name is another judge; the same file elsewhere is not."""
    files = []
    for folder, training in (("a", b"1"), ("b", b"2"), ("c", b"1")):
        files.append(tmp_path / folder / "model.gguf")
        files[-1].parent.mkdir()
        files[-1].write_bytes(training * 2_000_000)
    one, other, copied = (judge_key(LocalLLM(file)) for file in files)
    assert one == copied != other
    assert judge_key(LocalLLM(files[0], cache_prompt=False)) != one
    assert judge_key(LocalEmbedder(files[0])) != judge_key(LocalEmbedder(files[1]))


class Own(BaseLLM):
    def __init__(self, model="m", **attributes):
        self.model = model
        vars(self).update(attributes)

    def generate(self, request, /):
        return LLMReply("yes")


class Other(Own):
    pass


def test_a_judge_of_ones_own_counts_by_its_class_and_model_or_by_its_identity():
    judges = Own(), Own("other"), Other(), Own(identity="one"), Own(identity={"server": 1}), Own(identity={"server": 2})
    keys = [judge_key(judge) for judge in judges]
    assert len(set(keys)) == len(keys)
    assert judge_key(Own(url="not asked about")) == keys[0]


SECRETS = {
    "api_key": "s3cret",
    "openai_api_key": SecretStr("s3cret"),
    "default_headers": {"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Cookie": "s3cret"},
    "extra_headers": {"x-auth-token": "s3cret", "Helicone-Auth": "Bearer s3cret"},
    "password": "s3cret",
    "client_secret": "s3cret",
    "access_token": "s3cret",
    "keys": ["s3cret"],
    "credentials": {"user": "s3cret"},
    "token_provider": lambda: "s3cret",
    "base_url": "https://me:s3cret@127.0.0.1/v1?sig=s3cret",
    "note": "Bearer s3cret",
    "prefix": "use sk-s3cret-123456",
}


def test_no_secret_is_in_it():
    class Model(BaseModel):
        settings: dict[str, object]
        inner: SecretStr

    for value in (SECRETS, Model(settings=SECRETS, inner=SecretStr("s3cret"))):
        assert "s3cret" not in json.dumps(settings_of(value))
