"""What makes a judge: two of one name share no score, and no key gets into what tells them apart."""

import json

import pytest

from ragstone import BaseLLM, ContextRelevancy, LLMReply, evaluate
from ragstone.clients import OpenAICompatible
from ragstone.identity import judge_key, metric_key
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
        ({"extra_body": {"a": {"top_k": 4}, "tags": ["b"]}}, False),
        ({"base_url": "http://me:password@127.0.0.1:8080/v1"}, False),
        ({"base_url": "http://:password@127.0.0.1:8080/v1?key=abc"}, True),
        ({"api_key": "another", "base_url": f"{URL}/", "timeout": 5.0, "max_concurrency": 2}, True),
    ],
)
def test_what_makes_an_openai_compatible_judge(settings, same):
    plain, other = OpenAICompatible("m", base_url=URL), OpenAICompatible("m", **{"base_url": URL, **settings})
    assert (judge_key(plain) == judge_key(other)) == same
    assert (metric_key(ContextRelevancy(llm=plain)) == metric_key(ContextRelevancy(llm=other))) == same


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


def test_a_judge_that_declares_nothing_is_told_of_where_there_is_a_journal(tmp_path, caplog):
    metrics = [ContextRelevancy(llm=Own(asking="one_by_one"))]
    report = evaluate(ROWS, metrics, journal=tmp_path / "j.db")
    assert [note for note in report.notes if note.startswith("Own('m') declares no identity: ")] == [*report.notes]
    assert caplog.text.count("declares no identity") == 1
    assert evaluate(ROWS, metrics).notes == ()
    declared = [ContextRelevancy(llm=Own(asking="one_by_one", identity="v1"))]
    assert evaluate(ROWS, declared, journal=tmp_path / "j.db").notes == ()
